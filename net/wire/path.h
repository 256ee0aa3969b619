// What a packet's IP and UDP headers say besides lengths.
#pragma once

#include <cstdint>

#include "net/wire/address.h"
#include "net/wire/bytes.h"

namespace urxe::wire {

inline constexpr std::uint16_t kRoceUdpPort = 4791;  // IBA CA17-20
inline constexpr std::uint8_t kDefaultHopLimit = 64;

// The two low bits of an IP traffic class (RFC 3168).
enum class Ecn : std::uint8_t { not_ect = 0, ect1 = 1, ect0 = 2, ce = 3 };
inline constexpr std::uint8_t kEcnMask = 3;

// Addresses and marks of one packet or of a flow of packets. `source` and `destination` are of one
// family. The UDP destination port is always kRoceUdpPort.
struct Path {
  IpAddress source;
  IpAddress destination;
  std::uint16_t source_port = 0;
  std::uint8_t traffic_class = 0;  // DSCP and ECN: the TOS byte of IPv4
  std::uint8_t hop_limit = kDefaultHopLimit;
  std::uint32_t flow_label = 0;  // IPv6 only, 20 bits

  [[nodiscard]] constexpr Ecn ecn() const { return static_cast<Ecn>(traffic_class & kEcnMask); }
  friend bool operator==(const Path&, const Path&) = default;
};

// A packet that the device wants sent: `size` bytes (BTH to the end of the pad) stand in the slot
// that the caller gave. The ICRC is not among them: it covers the IP header, which the fabric
// writes.
struct Outbound {
  const Path* path = nullptr;  // valid until the device is called again
  std::size_t size = 0;
  std::uint32_t icrc_error = 0;  // exclusive-ored into the ICRC: how the fault injector spoils it
};

// A packet as it came: `bytes` are the UDP payload, BTH to ICRC, borrowed for the call.
struct Inbound {
  Path path;  // source and destination as in the packet: the destination is ours
  Bytes bytes;
  bool icrc_is_right = false;
};

}  // namespace urxe::wire
