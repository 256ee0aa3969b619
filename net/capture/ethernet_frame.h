// A RoCEv2 packet as it looks on a cable.
#pragma once

#include <cstdint>
#include <vector>

#include "net/wire/bytes.h"
#include "net/wire/path.h"

namespace urxe::net {

// Writes Ethernet, IP and UDP headers, the packet (BTH to pad) and its ICRC, with every checksum
// right but for `icrc_error`, which is exclusive-ored into the ICRC. The Ethernet addresses, which
// a UDP socket does not show, are made from the IP addresses.
void write_ethernet_frame(const wire::Path& path, wire::Bytes packet, std::uint32_t icrc_error,
                          std::vector<std::uint8_t>& frame);

}  // namespace urxe::net
