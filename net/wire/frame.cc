#include "net/wire/frame.h"

namespace urxe::wire {
namespace {

constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::uint16_t kDontFragment = 0x4000;

std::uint16_t ipv4_checksum(Bytes header) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < header.size(); i += 2) sum += load_be<std::uint16_t>(header, i);
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

struct IpPart {
  Frame frame;
  Bytes udp;
};

tl::expected<IpPart, FrameError> parse_ipv4(Bytes bytes) {
  if (bytes.size() < kIpv4Size) return tl::unexpected(FrameError::too_short);
  const std::size_t header_size = std::size_t{bytes[0]} % 16 * 4;
  const std::size_t total = load_be<std::uint16_t>(bytes, 2);
  if (header_size < kIpv4Size || total < header_size) {
    return tl::unexpected(FrameError::length_lies);
  }
  if (total > bytes.size()) return tl::unexpected(FrameError::too_short);
  if (header_size != kIpv4Size) return tl::unexpected(FrameError::not_udp);  // IBA CA17-3
  const std::uint16_t fragment = load_be<std::uint16_t>(bytes, 6);
  // IBA CA17-8, CA17-10. Of the flags only DF may be set; where it is not, nothing is lost.
  if (bytes[9] != kProtocolUdp || (fragment & ~kDontFragment) != 0) {
    return tl::unexpected(FrameError::not_udp);
  }
  IpPart part;
  part.frame.path.traffic_class = bytes[1];
  part.frame.path.hop_limit = bytes[8];
  part.frame.path.source = IpAddress::from_v4(load_be<std::uint32_t>(bytes, 12));
  part.frame.path.destination = IpAddress::from_v4(load_be<std::uint32_t>(bytes, 16));
  part.frame.fragment = {.id = load_be<std::uint16_t>(bytes, 4),
                         .dont_fragment = (fragment & kDontFragment) != 0};
  part.udp = bytes.subspan(header_size, total - header_size);
  return part;
}

tl::expected<IpPart, FrameError> parse_ipv6(Bytes bytes) {
  if (bytes.size() < kIpv6Size) return tl::unexpected(FrameError::too_short);
  const std::size_t payload = load_be<std::uint16_t>(bytes, 4);
  if (payload > bytes.size() - kIpv6Size) return tl::unexpected(FrameError::too_short);
  // IBA CA17-16: no extension headers.
  if (bytes[6] != kProtocolUdp) return tl::unexpected(FrameError::not_udp);
  const std::uint32_t first_word = load_be<std::uint32_t>(bytes, 0);
  IpPart part;
  part.frame.path.traffic_class = static_cast<std::uint8_t>(first_word >> 20);
  part.frame.path.flow_label = first_word & 0xFFFFF;
  part.frame.path.hop_limit = bytes[7];
  part.frame.path.source = IpAddress::from_bytes(bytes.subspan(8, IpAddress::kSize));
  part.frame.path.destination = IpAddress::from_bytes(bytes.subspan(24, IpAddress::kSize));
  if (part.frame.path.source.is_v4() || part.frame.path.destination.is_v4()) {
    return tl::unexpected(FrameError::mapped_v4);
  }
  part.udp = bytes.subspan(kIpv6Size, payload);
  return part;
}

tl::expected<IpPart, FrameError> parse_ip(Bytes bytes) {
  if (bytes.empty()) return tl::unexpected(FrameError::too_short);
  switch (bytes[0] >> 4) {  // IBA CA17-1, CA17-27
    case 4:
      return parse_ipv4(bytes);
    case 6:
      return parse_ipv6(bytes);
    default:
      return tl::unexpected(FrameError::not_ip);
  }
}

void write_ipv4(MutableBytes bytes, const Path& path, Ipv4Fragment fragment, std::size_t udp_size) {
  bytes[0] = 0x45;
  bytes[1] = path.traffic_class;
  store_be(bytes, 2, static_cast<std::uint16_t>(kIpv4Size + udp_size));
  store_be(bytes, 4, fragment.id);
  store_be(bytes, 6, fragment.dont_fragment ? kDontFragment : std::uint16_t{0});
  bytes[8] = path.hop_limit;
  bytes[9] = kProtocolUdp;
  store_be(bytes, 10, std::uint16_t{0});
  store_be(bytes, 12, path.source.v4());
  store_be(bytes, 16, path.destination.v4());
  store_be(bytes, 10, ipv4_checksum(bytes.first(kIpv4Size)));
}

void write_ipv6(MutableBytes bytes, const Path& path, std::size_t udp_size) {
  store_be(bytes, 0,
           std::uint32_t{6} << 28 | std::uint32_t{path.traffic_class} << 20 |
               (path.flow_label & 0xFFFFF));
  store_be(bytes, 4, static_cast<std::uint16_t>(udp_size));
  bytes[6] = kProtocolUdp;
  bytes[7] = path.hop_limit;
  for (std::size_t i = 0; i < IpAddress::kSize; ++i) {
    bytes[8 + i] = path.source.bytes()[i];
    bytes[24 + i] = path.destination.bytes()[i];
  }
}

}  // namespace

std::string_view to_string(FrameError error) {
  switch (error) {
    case FrameError::too_short:
      return "the bytes end too early";
    case FrameError::not_ip:
      return "not an IP packet";
    case FrameError::not_udp:
      return "not a plain, whole UDP packet";
    case FrameError::not_roce:
      return "not to UDP port 4791";
    case FrameError::mapped_v4:
      return "an IPv4-mapped address over IPv6";
    case FrameError::length_lies:
      return "contradicting lengths";
  }
  return "";
}

tl::expected<Frame, FrameError> parse_frame(Bytes ip_packet) {
  auto part = parse_ip(ip_packet);
  if (!part) return tl::unexpected(part.error());
  const Bytes udp = part->udp;
  if (udp.size() < kUdpSize) return tl::unexpected(FrameError::length_lies);
  if (load_be<std::uint16_t>(udp, 2) != kRoceUdpPort) return tl::unexpected(FrameError::not_roce);
  const std::size_t udp_size = load_be<std::uint16_t>(udp, 4);
  // IBA CA17-6, CA17-15, CA17-21: all lengths end with the ICRC.
  if (udp_size != udp.size()) return tl::unexpected(FrameError::length_lies);
  part->frame.path.source_port = load_be<std::uint16_t>(udp, 0);
  part->frame.roce = udp.subspan(kUdpSize);
  return part->frame;
}

std::size_t write_ip_udp(MutableBytes bytes, const Path& path, Ipv4Fragment fragment,
                         std::size_t roce_size) {
  const std::size_t udp_size = kUdpSize + roce_size;
  const bool v4 = path.source.is_v4();
  if (v4) {
    write_ipv4(bytes, path, fragment, udp_size);
  } else {
    write_ipv6(bytes, path, udp_size);
  }
  const MutableBytes udp = bytes.subspan(v4 ? kIpv4Size : kIpv6Size);
  store_be(udp, 0, path.source_port);
  store_be(udp, 2, kRoceUdpPort);
  store_be(udp, 4, static_cast<std::uint16_t>(udp_size));
  store_be(udp, 6, std::uint16_t{0});
  return ip_udp_size(v4);
}

}  // namespace urxe::wire
