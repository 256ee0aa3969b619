// RoCEv2 packets in a capture file.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "net/wire/frame.h"
#include "net/wire/packet.h"

namespace urxe::tools {

// One packet, as the file has it.
struct CapturedPacket {
  std::chrono::nanoseconds time{};  // since the epoch
  wire::Frame frame;                // borrows from the bytes below
  tl::expected<wire::Packet, wire::ParseError> packet = tl::unexpected(wire::ParseError::too_short);
  bool icrc_is_right = false;
};

// What else is in the file.
struct CaptureTotals {
  std::uint64_t frames = 0;
  std::uint64_t roce = 0;
};

// Calls `visit` for each RoCEv2 packet of a pcap or pcapng file, in file order; what it gets is
// borrowed for the call. The error is a sentence.
tl::expected<CaptureTotals, std::string> read_capture(
    const std::string& path, const std::function<void(const CapturedPacket&)>& visit);

}  // namespace urxe::tools
