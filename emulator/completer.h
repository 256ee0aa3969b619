// The requester's ear: takes acknowledgements and the responses of READs and atomics (IBTA 9.7.5,
// 9.7.7, 9.9.2).
#pragma once

#include <cstdint>

#include "emulator/qp_context.h"
#include "emulator/requester.h"
#include "emulator/send_queue.h"
#include "net/wire/packet.h"
#include "net/wire/time.h"

namespace urxe::emulator {

// RC only. Owner: the queue pair. Not thread-safe.
class Completer {
 public:
  Completer(QpContext& context, SendQueue& queue, Requester& requester)
      : context_(context), queue_(queue), requester_(requester) {}

  void handle_response(Time now, const wire::Packet& packet);

 private:
  void handle_acknowledge(Time now, const wire::Packet& packet);
  void handle_ack(Time now, wire::Psn psn);
  void handle_rnr_nak(Time now, const wire::Packet& packet);
  void handle_nak(Time now, const wire::Packet& packet);
  void handle_sequence_nak(Time now, wire::Psn psn);
  void handle_read_response(Time now, const wire::Packet& packet);
  void handle_placement_response(Time now, const wire::Packet& packet);
  void handle_atomic_response(Time now, const wire::Packet& packet);

  // Acknowledges all before `psn`, but not past a READ or an atomic whose response is missing. True
  // if it got there; else the response was lost and is asked for again.
  bool acknowledge_before(Time now, wire::Psn psn);
  [[nodiscard]] wire::Psn first_missing_response_before(wire::Psn psn);
  // The request at `psn`, if that is the oldest unacknowledged packet and it waits for a response.
  [[nodiscard]] Work* awaited(Time now, wire::Psn psn);
  void retry(Time now);
  // Writes `data` of a response into the request's list at `offset`; false if that failed.
  bool deliver(const Work& work, std::uint64_t offset, wire::Bytes data);
  void refuse_response(const wire::Packet& packet, VendorError why);

  QpContext& context_;
  SendQueue& queue_;
  Requester& requester_;
  // Where in its list the next response of a READ goes, so that a long READ does not search each
  // time.
  SgePosition position_;
  wire::Psn position_psn_;
  bool position_is_known_ = false;
};

}  // namespace urxe::emulator
