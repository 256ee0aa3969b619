// The IP and UDP headers around a RoCEv2 packet.
#pragma once

#include <cstdint>
#include <string_view>

#include <tl/expected.hpp>

#include "net/wire/bytes.h"
#include "net/wire/path.h"

namespace urxe::wire {

inline constexpr std::size_t kIpv4Size = 20;
inline constexpr std::size_t kIpv6Size = 40;
inline constexpr std::size_t kUdpSize = 8;

[[nodiscard]] constexpr std::size_t ip_udp_size(bool v4) {
  return (v4 ? kIpv4Size : kIpv6Size) + kUdpSize;
}

// What an IPv4 header says about fragments. IPv6 has nothing of it.
struct Ipv4Fragment {
  std::uint16_t id = 0;
  bool dont_fragment = true;
};

// An IP packet that carries RoCEv2.
struct Frame {
  Path path;
  Ipv4Fragment fragment;
  Bytes roce;  // BTH to ICRC, borrowed
};

enum class FrameError : std::uint8_t {
  too_short,    // the bytes end before the headers do
  not_ip,       // neither IPv4 nor IPv6
  not_udp,      // another protocol, IPv4 options, an IPv6 extension header, or a fragment
  not_roce,     // another UDP destination port
  mapped_v4,    // an IPv4-mapped address in an IPv6 header: on the wire it means nothing
  length_lies,  // the IP and UDP lengths contradict each other or the bytes
};
[[nodiscard]] std::string_view to_string(FrameError error);

// Takes a packet from its IP header on, as strictly as IBA CA17-24 asks. Bytes after the IP packet
// (Ethernet padding) are ignored.
[[nodiscard]] tl::expected<Frame, FrameError> parse_frame(Bytes ip_packet);

// Writes IP and UDP headers before `roce_size` bytes of RoCEv2; returns their size. The IPv4
// header's checksum is right; the UDP checksum is 0 as IBTA A17.3.2.4 asks.
std::size_t write_ip_udp(MutableBytes bytes, const Path& path, Ipv4Fragment fragment,
                         std::size_t roce_size);

}  // namespace urxe::wire
