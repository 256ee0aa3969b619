#include "tests/golden/samples.h"

#include <algorithm>
#include <cctype>

#include "net/wire/icrc.h"
#include "tests/support/frames.h"

namespace urxe::golden {
namespace {

using wire::PayloadRule;

constexpr std::size_t kSmallestMtu = 256;

// Field values: SplitMix64, so that the bytes of all fields differ, the same on every machine.
class Values {
 public:
  explicit Values(std::uint64_t seed) : state_(seed) {}
  template <typename T>
  T next() {
    state_ += 0x9E3779B97F4A7C15;
    std::uint64_t value = state_;
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
    value = (value ^ value >> 27) * 0x94D049BB133111EB;
    return static_cast<T>(value ^ value >> 31);
  }
  bool flag() { return next<std::uint64_t>() % 2 != 0; }

 private:
  std::uint64_t state_;
};

std::vector<std::size_t> payload_sizes(PayloadRule rule) {
  switch (rule) {
    case PayloadRule::none:
      return {0};
    case PayloadRule::exact_mtu:
      return {kSmallestMtu};
    case PayloadRule::up_to_mtu:
      return {8, 7, 6, 5};  // pad 0 to 3
    case PayloadRule::eight:
      return {8};
    case PayloadRule::reserved:
      return {wire::kCnpReservedSize};
  }
  return {};
}

wire::Path make_path(Values& values, bool v4) {
  wire::Path path;
  path.source = *wire::IpAddress::parse(v4 ? "192.0.2.17" : "2001:db8:1:2:3:4:5:6");
  path.destination = *wire::IpAddress::parse(v4 ? "198.51.100.34" : "2001:db8:a:b:c:d:e:f");
  path.source_port = static_cast<std::uint16_t>(values.next<std::uint16_t>() | 0xC000);
  path.traffic_class = values.next<std::uint8_t>();
  path.hop_limit = values.next<std::uint8_t>();
  if (!v4) path.flow_label = values.next<std::uint32_t>() & 0xFFFFF;
  return path;
}

wire::Packet make_packet(Values& values, const wire::OpcodeInfo& info) {
  wire::Packet packet = test::packet_of(info.opcode);
  packet.bth.solicited = values.flag();
  packet.bth.migration = values.flag();
  packet.bth.pkey = wire::PKey{values.next<std::uint16_t>()};
  packet.bth.fecn = values.flag();
  packet.bth.becn = values.flag();
  packet.bth.destination = wire::Qpn{values.next<std::uint32_t>()};
  packet.bth.ack_request = values.flag();
  packet.bth.psn = wire::Psn{values.next<std::uint32_t>()};
  packet.deth = {.qkey = wire::QKey{values.next<std::uint32_t>()},
                 .source = wire::Qpn{values.next<std::uint32_t>()}};
  packet.feth = {.placement = static_cast<std::uint8_t>(values.next<std::uint8_t>() & 0xF),
                 .selectivity = static_cast<std::uint8_t>(values.next<std::uint8_t>() & 3)};
  packet.reth = {.address = values.next<std::uint64_t>(),
                 .rkey = wire::RKey{values.next<std::uint32_t>()},
                 .length = values.next<std::uint32_t>()};
  packet.atomic = {.address = values.next<std::uint64_t>(),
                   .rkey = wire::RKey{values.next<std::uint32_t>()},
                   .swap_or_add = values.next<std::uint64_t>(),
                   .compare = values.next<std::uint64_t>()};
  packet.aeth = {.syndrome = wire::Syndrome{values.next<std::uint8_t>()},
                 .msn = wire::Msn{values.next<std::uint32_t>()}};
  packet.atomic_result = values.next<std::uint64_t>();
  packet.immediate = values.next<std::uint32_t>();
  packet.invalidate = wire::RKey{values.next<std::uint32_t>()};
  return packet;
}

Block make_block(Values& values, const wire::OpcodeInfo& info, bool v4, std::size_t size) {
  const wire::Path path = make_path(values, v4);
  const wire::Ipv4Fragment fragment{.id = values.next<std::uint16_t>(),
                                    .dont_fragment = values.flag()};
  wire::Packet packet = make_packet(values, info);
  std::vector<std::uint8_t> payload(size);
  if (info.payload != PayloadRule::reserved) {
    for (std::uint8_t& byte : payload) byte = values.next<std::uint8_t>();
  }
  Block block;
  block.bytes = test::build_frame(path, fragment, packet, payload);
  packet.payload = payload;
  packet.bth.pad_count = wire::pad_count(size);
  block.fields = describe(path, fragment, packet, wire::load_icrc(block.bytes));
  block.name = std::string(info.name) + (v4 ? ", IPv4" : ", IPv6") + ", pad " +
               std::to_string(packet.bth.pad_count);
  return block;
}

}  // namespace

std::string file_name(const wire::OpcodeInfo& info) {
  std::string name(info.name);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
    return c == ' ' ? '_' : static_cast<char>(std::tolower(c));
  });
  return name + ".txt";
}

std::vector<Block> samples(const wire::OpcodeInfo& info) {
  Values values(static_cast<std::uint64_t>(info.opcode));
  std::vector<Block> blocks;
  for (const bool v4 : {true, false}) {
    for (const std::size_t size : payload_sizes(info.payload)) {
      blocks.push_back(make_block(values, info, v4, size));
    }
  }
  return blocks;
}

std::string file_text(const wire::OpcodeInfo& info) {
  std::string text = "# " + std::string(info.name) + ". The format: tests/golden/README.md\n";
  for (const Block& block : samples(info)) text += '\n' + to_text(block);
  return text;
}

}  // namespace urxe::golden
