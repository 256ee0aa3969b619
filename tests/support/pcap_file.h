// Capture files, for tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <tl/expected.hpp>

#include "net/wire/bytes.h"

namespace urxe::test {

using FrameBytes = std::vector<std::uint8_t>;

// All frames of a file, as captured. The error is libpcap's sentence.
[[nodiscard]] tl::expected<std::vector<FrameBytes>, std::string> read_pcap(
    const std::filesystem::path& path);

// What follows the Ethernet header and its VLAN tags if the EtherType is IPv4, IPv6 or RoCEv1;
// else empty.
[[nodiscard]] wire::Bytes ethernet_payload(wire::Bytes frame);

}  // namespace urxe::test
