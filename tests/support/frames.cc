#include "tests/support/frames.h"

#include <algorithm>

#include "net/wire/icrc.h"

namespace urxe::test {

wire::Packet packet_of(wire::Opcode opcode) {
  wire::Packet packet;
  packet.info = &wire::info(opcode);
  packet.bth.opcode = static_cast<std::uint8_t>(opcode);
  return packet;
}

std::vector<std::uint8_t> build_frame(const wire::Path& path, wire::Ipv4Fragment fragment,
                                      wire::Packet packet, wire::Bytes payload) {
  const std::size_t pad = wire::pad_count(payload.size());
  const std::size_t roce_size = packet.info->header_size() + payload.size() + pad + wire::kIcrcSize;
  const std::size_t ip_udp = wire::ip_udp_size(path.source.is_v4());
  std::vector<std::uint8_t> frame(ip_udp +
                                  std::max(roce_size, wire::kMaxHeaderSize + wire::kIcrcSize));
  const wire::MutableBytes roce = wire::MutableBytes(frame).subspan(ip_udp);
  packet.bth.pad_count = static_cast<std::uint8_t>(pad);
  wire::write_ip_udp(frame, path, fragment, roce_size);
  const std::size_t headers = wire::write_headers(packet, roce);
  std::copy(payload.begin(), payload.end(), roce.begin() + static_cast<std::ptrdiff_t>(headers));
  const std::uint32_t seed = wire::IcrcSeed(path, roce_size).value(fragment);
  const wire::Bytes covered = wire::Bytes(roce).first(roce_size - wire::kIcrcSize);
  wire::store_icrc(roce.first(roce_size), wire::icrc(seed, covered));
  frame.resize(ip_udp + roce_size);
  return frame;
}

bool frame_is_right(wire::Bytes ip_packet) {
  const auto frame = wire::parse_frame(ip_packet);
  if (!frame) return false;
  const wire::IcrcSeed seed(frame->path, frame->roce.size());
  return wire::icrc_matches(seed.value(frame->fragment), frame->roce);
}

}  // namespace urxe::test
