#include "tests/unit/sim/traffic.h"

#include <algorithm>

#include "net/wire/frame.h"

namespace urxe::test {
namespace {

std::size_t write_roce(wire::MutableBytes slot, wire::Opcode opcode, std::uint32_t number,
                       std::size_t payload) {
  wire::Packet packet;
  packet.info = &wire::info(opcode);
  packet.bth.opcode = static_cast<std::uint8_t>(opcode);
  packet.bth.pad_count = wire::pad_count(payload);
  packet.bth.psn = wire::Psn{number};
  const std::size_t header = wire::write_headers(packet, slot);
  const std::size_t size = header + payload + packet.bth.pad_count;
  std::fill(slot.begin() + static_cast<std::ptrdiff_t>(header),
            slot.begin() + static_cast<std::ptrdiff_t>(size), std::uint8_t{0x5A});
  return size;
}

}  // namespace

wire::Path path_between(std::uint32_t from, std::uint32_t to, wire::Ecn ecn) {
  return {.source = address_of(from),
          .destination = address_of(to),
          .source_port = 0xC123,
          .traffic_class = static_cast<std::uint8_t>(ecn)};
}

net::SimPacket ip_packet(const wire::Path& path, std::uint32_t number, std::size_t payload) {
  std::array<std::uint8_t, net::kMaxPacketSize> roce{};
  const std::size_t size =
      write_roce(roce, wire::Opcode::rc_write_middle, number, payload) + wire::kIcrcSize;
  net::SimPacket packet(wire::ip_udp_size(path.source.is_v4()) + size);
  const std::size_t header = wire::write_ip_udp(packet, path, wire::Ipv4Fragment{}, size);
  std::copy_n(roce.begin(), size, packet.begin() + static_cast<std::ptrdiff_t>(header));
  return packet;
}

bool send(net::Fabric& fabric, Time now, const wire::Path& path, std::uint32_t number,
          std::size_t payload, std::uint32_t icrc_error) {
  const wire::MutableBytes slot = fabric.reserve();
  if (slot.empty()) return false;
  const std::size_t size = write_roce(slot, wire::Opcode::rc_send_only, number, payload);
  fabric.commit(now, {.path = &path, .size = size, .icrc_error = icrc_error});
  return true;
}

void Arrivals::on_packet(Time now, const wire::Inbound& packet) {
  all.push_back({now, wire::Bth::parse(packet.bytes).psn.value(), packet.path, packet.icrc_is_right,
                 std::vector(packet.bytes.begin(), packet.bytes.end())});
}

void Arrivals::take(Time now, net::SimPacket packet) {
  const auto frame = wire::parse_frame(packet);
  all.push_back({now, wire::Bth::parse(frame->roce).psn.value(), frame->path, false,
                 std::vector(frame->roce.begin(), frame->roce.end())});
}

std::vector<std::uint32_t> Arrivals::numbers() const {
  std::vector<std::uint32_t> numbers;
  for (const Arrival& arrival : all) numbers.push_back(arrival.number);
  return numbers;
}

}  // namespace urxe::test
