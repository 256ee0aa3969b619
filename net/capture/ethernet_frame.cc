#include "net/capture/ethernet_frame.h"

#include <algorithm>

#include "net/wire/frame.h"
#include "net/wire/icrc.h"
#include "net/wire/opcode.h"

namespace urxe::net {
namespace {

constexpr std::size_t kMacSize = 6;
constexpr std::size_t kEthernetSize = 14;
constexpr std::uint16_t kIpv4 = 0x0800;
constexpr std::uint16_t kIpv6 = 0x86DD;
constexpr std::uint32_t kProtocolUdp = 17;

// Of a group as RFC 1112 and RFC 2464 say; else a locally administered one.
void write_mac(const wire::IpAddress& address, wire::MutableBytes mac) {
  const wire::Bytes ip = address.bytes();
  std::copy_n(ip.begin() + 12, 4, mac.begin() + 2);
  if (!address.is_multicast()) {
    mac[0] = 0x02;
    mac[1] = 0;
  } else if (address.is_v4()) {
    mac[0] = 0x01;
    mac[1] = 0x00;
    mac[2] = 0x5E;
    mac[3] &= 0x7F;
  } else {
    mac[0] = mac[1] = 0x33;
  }
}

std::uint32_t sum_of(wire::Bytes bytes) {
  std::uint32_t sum = 0;
  std::size_t at = 0;
  for (; at + 1 < bytes.size(); at += 2) sum += wire::load_be<std::uint16_t>(bytes, at);
  if (at < bytes.size()) sum += std::uint32_t{bytes[at]} << 8;
  return sum;
}

// RFC 768 and RFC 8200, 8.1. A sum of 0 is written as its other form: 0 means none.
std::uint16_t udp_checksum(const wire::Path& path, wire::Bytes udp) {
  const std::size_t first = path.source.is_v4() ? 12 : 0;
  std::uint32_t sum = kProtocolUdp + static_cast<std::uint32_t>(udp.size()) + sum_of(udp);
  for (const wire::IpAddress* address : {&path.source, &path.destination}) {
    sum += sum_of(wire::Bytes(address->bytes()).subspan(first));
  }
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return sum == 0xFFFF ? std::uint16_t{0xFFFF} : static_cast<std::uint16_t>(~sum);
}

}  // namespace

void write_ethernet_frame(const wire::Path& path, wire::Bytes packet, std::uint32_t icrc_error,
                          std::vector<std::uint8_t>& frame) {
  const bool v4 = path.source.is_v4();
  const std::size_t roce_size = packet.size() + wire::kIcrcSize;
  const std::size_t ip_udp_size = wire::ip_udp_size(v4);
  frame.assign(kEthernetSize + ip_udp_size + roce_size, 0);
  const wire::MutableBytes bytes(frame);
  write_mac(path.destination, bytes.first(kMacSize));
  write_mac(path.source, bytes.subspan(kMacSize, kMacSize));
  wire::store_be(bytes, 2 * kMacSize, v4 ? kIpv4 : kIpv6);
  const wire::MutableBytes ip = bytes.subspan(kEthernetSize);
  wire::write_ip_udp(ip, path, wire::Ipv4Fragment{}, roce_size);
  const wire::MutableBytes roce = ip.subspan(ip_udp_size);
  std::copy(packet.begin(), packet.end(), roce.begin());
  const std::uint32_t seed = wire::IcrcSeed(path, roce_size).value(wire::Ipv4Fragment{});
  wire::store_icrc(roce, wire::icrc(seed, packet) ^ icrc_error);
  const wire::MutableBytes udp = ip.subspan(ip_udp_size - wire::kUdpSize);
  wire::store_be(udp, 6, udp_checksum(path, udp));
}

}  // namespace urxe::net
