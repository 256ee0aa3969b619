// What two queue pairs said to each other in a capture: the requests of one, the answers of the
// other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/wire/packet.h"
#include "net/wire/path.h"
#include "tests/support/pcap_file.h"

namespace urxe::replay {

// One packet. `bytes` are BTH to ICRC; `packet` borrows from them.
struct Step {
  bool is_answer = false;
  bool made_up = false;  // the capture lacks it, but what came before and after it says what it was
  wire::Path path;
  std::vector<std::uint8_t> bytes;
  wire::Packet packet;

  [[nodiscard]] wire::Psn psn() const { return packet.bth.psn; }
};

// The answer to a packet, without what a device may choose: credits and reserved bits.
struct Answer {
  wire::Opcode opcode{};
  wire::Psn psn;
  wire::Syndrome syndrome;
  wire::Msn msn;
  std::uint64_t atomic_result = 0;
  std::vector<std::uint8_t> payload;

  // An acknowledgement that a later one may stand for.
  [[nodiscard]] bool may_be_coalesced() const {
    return opcode == wire::Opcode::rc_acknowledge && syndrome.kind() == wire::Syndrome::Kind::ack;
  }
  friend bool operator==(const Answer&, const Answer&) = default;
};
[[nodiscard]] Answer answer_of(const wire::Packet& packet);
[[nodiscard]] std::string to_string(const Answer& answer);

struct Conversation {
  wire::Service service{};
  wire::IpAddress requester;
  wire::IpAddress responder;
  wire::Qpn responder_qpn;
  wire::Qpn requester_qpn;  // unknown (0) if there are no answers
  std::uint32_t mtu = 0;
  std::vector<std::unique_ptr<Step>> steps;  // in the order of the capture

  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::size_t answers() const;
};

// All conversations of queue pairs above QP 1, in the order of their first packets.
[[nodiscard]] std::vector<Conversation> conversations_of(
    const std::vector<test::FrameBytes>& frames);

// Puts requests in where the sniffer lost some, on condition that every message is one SEND of
// `message_packets` packets.
void fill_gaps(Conversation& conversation, std::uint32_t message_packets);
// Undoes a mirror's reordering: requests by PSN, then answers by PSN.
void sort_by_psn(Conversation& conversation);

// How many PSNs a request takes.
[[nodiscard]] std::uint32_t psns_of(const wire::Packet& request, std::uint32_t mtu);

}  // namespace urxe::replay
