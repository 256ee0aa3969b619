#include "tests/unit/faults/packets.h"

#include <stdexcept>

#include "net/fabric.h"
#include "net/faults/rule_parser.h"

namespace urxe::test {

std::vector<std::uint8_t> roce(const Sample& sample) {
  wire::Packet packet;
  packet.info = &wire::info(sample.opcode);
  packet.bth = {.opcode = static_cast<std::uint8_t>(sample.opcode),
                .pad_count = wire::pad_count(sample.payload),
                .destination = wire::Qpn{sample.qpn},
                .psn = wire::Psn{sample.psn}};
  packet.aeth.syndrome = sample.syndrome;
  packet.reth.length = sample.read_length;
  std::vector<std::uint8_t> bytes(net::kMaxPacketSize);
  bytes.resize(wire::write_headers(packet, bytes) + sample.payload + packet.bth.pad_count);
  return bytes;
}

net::Observed observed(const Sample& sample, net::Direction direction, std::uint32_t peer) {
  return *net::observe(direction, host(peer), roce(sample));
}

std::vector<net::Rule> rules(std::string_view text) {
  auto parsed = net::parse_rules(text);
  if (!parsed) throw std::invalid_argument(net::describe(parsed.error(), text));
  return *parsed;
}

}  // namespace urxe::test
