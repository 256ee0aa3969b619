// Reads what devices put on the wire, and holds it against the rules of PSNs, MSNs and
// acknowledgements (IBTA 9.7): with nothing but the packets themselves and the queue pairs'
// attributes.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emulator/qp_attributes.h"
#include "net/wire/packet.h"
#include "net/wire/time.h"
#include "tests/sim/swarm/findings.h"

namespace urxe::swarm {

// The requests of one connection in one direction, from the first PSN on, and their answers.
class Flow {
 public:
  struct Limits {
    std::uint32_t mtu = 0;
    wire::Psn first;
    std::uint8_t retry_count = 0;
    std::uint8_t rnr_retry = 0;
    std::uint8_t max_read_atomic = 0;
    Duration ack_timeout{};  // the longest; 0: none
    bool reliable = false;
  };
  Flow(Findings& findings, std::string name, const Limits& limits)
      : findings_(findings), name_(std::move(name)), limits_(limits) {}

  // At the requester.
  void on_request_sent(Time now, const wire::Packet& packet);
  void on_response_received(Time now, const wire::Packet& packet);
  // At the responder.
  void on_request_received(const wire::Packet& packet);
  void on_response_sent(const wire::Packet& packet);
  // If this PSN is that of a FLUSH: which of the flow's it is, from 0 on.
  [[nodiscard]] std::optional<std::size_t> flush_at(wire::Psn psn) const;
  // Nothing is under way any more, and the responder lived all the time.
  void check_at_rest();

 private:
  // What one PSN stands for.
  struct Slot {
    wire::Opcode opcode{};
    std::uint64_t address = 0;   // RETH's or AtomicETH's; of a READ, where this packet's data are
    std::uint32_t payload = 0;   // of the request, or of a READ's response with this PSN
    std::uint32_t checksum = 0;  // of the payload
    std::uint32_t messages = 0;  // that end before or with this PSN
    std::size_t flushes = 0;     // before this PSN
    bool ends_message = false;
    bool asks_for_answer = false;  // by a response of its own: the first packet of a READ, others
    std::uint32_t arrivals = 0;    // at the responder
    std::uint32_t naks = 0;        // that asked for this PSN
    std::uint32_t rnr_naks = 0;
  };

  [[nodiscard]] std::int64_t index_of(wire::Psn psn) const { return psn.ahead_of(limits_.first); }
  // Messages that end with a PSN of at most this index.
  [[nodiscard]] std::uint32_t messages_up_to(std::int64_t index) const;
  void add_request(const wire::Packet& packet);
  void add_read(const wire::Packet& packet);
  void check_order(const wire::Packet& packet);
  void check_answers_asked_for(const wire::Packet& packet);
  void check_repetition(std::int64_t index, const wire::Packet& packet);
  void check_retries(Time now, std::int64_t index);
  void answered_before(std::int64_t index);
  void check_acknowledge(const wire::Packet& packet);
  void check_nak(std::int64_t index, const wire::Packet& packet);
  void check_read_response(std::int64_t index, const wire::Packet& packet);
  void check_placement_response(const wire::Packet& packet);
  [[nodiscard]] bool has_msn(const wire::Packet& packet, std::uint32_t low, std::uint32_t high);

  Findings& findings_;
  std::string name_;
  Limits limits_;
  std::vector<Slot> slots_;
  std::size_t flushes_ = 0;
  std::int64_t received_ = 0;        // PSNs that came to the responder without a gap
  std::int64_t acknowledged_ = -1;   // the furthest that the responder acknowledged
  std::set<std::int64_t> naks_due_;  // gaps that the responder saw and did not complain about yet
  std::set<std::int64_t> naks_said_;
  bool had_rnr_ = false;
  Time alive_at_{};           // when the requester last had reason not to count
  std::int64_t una_ = 0;      // the oldest PSN that is not answered, as far as the requester knows
  bool rnr_pending_ = false;  // an RNR NAK came for it
  int rnr_retries_ = 0;       // of it
  Time rnr_until_{};          // when it may be sent again
};

}  // namespace urxe::swarm
