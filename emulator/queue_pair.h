// A queue pair: state, attributes, and the halves that send and receive (IBTA 10.3).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "emulator/completer.h"
#include "emulator/congestion.h"
#include "emulator/error.h"
#include "emulator/qp_attributes.h"
#include "emulator/qp_context.h"
#include "emulator/requester.h"
#include "emulator/responder.h"
#include "emulator/send_queue.h"
#include "emulator/timers.h"
#include "net/wire/packet.h"
#include "net/wire/path.h"
#include "net/wire/time.h"

namespace urxe::emulator {

// What a queue pair is made of. The sources outlive it.
struct QueuePairSpec {
  QpType type = QpType::rc;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* receive_cq = nullptr;
  SharedReceiveQueue* srq = nullptr;  // nullptr: it has a receive queue of its own
  SendSource* send_source = nullptr;
  ReceiveSource* receive_source = nullptr;  // unless it has an srq
  QpCapabilities capabilities;
  bool signal_all = false;
};

// Owner: the device. Not thread-safe.
class QueuePair final : public Shared,
                        public Timed,
                        public Transmitter,
                        public Flusher,
                        private Requester::Owner {
 public:
  QueuePair(Engine& engine, ProtectionDomain& pd, const QueuePairSpec& spec, wire::Qpn qpn);
  ~QueuePair();

  [[nodiscard]] wire::Qpn qpn() const { return context_.qpn; }
  [[nodiscard]] QpType type() const { return context_.type; }
  [[nodiscard]] QpState state() const { return context_.attributes.state; }
  [[nodiscard]] const QpAttributes& attributes() const { return context_.attributes; }
  [[nodiscard]] ProtectionDomain& pd() const { return *context_.pd; }
  [[nodiscard]] const wire::Path& path() const { return context_.path; }

  // Changes the attributes that `mask` names (ibv_modify_qp). On error nothing has changed.
  Result<void> modify(const QpAttributes& wanted, AttributeMask mask);

  // The program posted send requests. Fails in states that take none (IBTA C10-96): they are thrown
  // away.
  Result<void> ring_doorbell();
  // The program may have posted receive requests: the error state flushes them.
  void flush_posted_receives();

  void handle_packet(Time now, const wire::Packet& packet, const wire::Inbound& inbound);
  void handle_timer(Time now);
  [[nodiscard]] std::optional<wire::Outbound> poll_transmit(Time now, wire::MutableBytes slot);
  // A READ's answer waits: send it before more requests change what it reads.
  [[nodiscard]] bool must_answer_now() const { return responder_.reads_memory(); }

  // Puts it in error from outside (its CQ overflowed, the device is dying).
  void force_error(AsyncEventType event);

 private:
  void requester_has_output() override { activate(); }
  void activate() { context_.engine.transmitters.push_back(*this); }

  [[nodiscard]] Result<void> check_values(const QpAttributes& wanted, AttributeMask mask) const;
  [[nodiscard]] Result<void> check_ranges(const QpAttributes& wanted, AttributeMask mask) const;
  [[nodiscard]] Result<void> check_states(const QpAttributes& wanted, AttributeMask mask) const;
  void apply(const QpAttributes& wanted, AttributeMask mask);
  void apply_connection(const QpAttributes& wanted, AttributeMask mask);
  void set_state(QpState state);
  void enter_state(QpState from, QpState to);
  void enter_error();

  [[nodiscard]] std::optional<wire::Outbound> poll_halves(Time now, wire::MutableBytes slot);
  // With congestion control (queue_pair_congestion.cc).
  void note_congestion(Time now, const wire::Packet& packet, const wire::Inbound& inbound);
  [[nodiscard]] std::optional<wire::Outbound> poll_limited(Time now, wire::MutableBytes slot);
  [[nodiscard]] wire::Outbound write_notification(wire::MutableBytes slot);
  void arm_timer();
  [[nodiscard]] std::optional<wire::Outbound> poll_answer(wire::MutableBytes slot);
  [[nodiscard]] std::optional<wire::Outbound> poll_request(Time now, wire::MutableBytes slot);
  [[nodiscard]] bool accepts(const wire::Packet& packet, const wire::Inbound& inbound);
  [[nodiscard]] bool accepts_keys(const wire::Packet& packet);
  void note_established();
  // The end of every entry point: acts on a collapse, arms the timer.
  void settle();
  void note_drained();

  std::optional<ReceiveQueue> own_receives_;
  QpContext context_;
  SendQueue send_queue_;
  Requester requester_;
  Completer completer_;
  Responder responder_;
  SendSource& send_source_;
  std::unique_ptr<Congestion> congestion_;  // connected, and the device does that
  bool sent_request_ = false;  // by the last poll_transmit, before what waited to be answered
  bool drain_is_pending_ = false;
  bool established_ = false;
};

}  // namespace urxe::emulator
