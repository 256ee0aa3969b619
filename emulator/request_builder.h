// Request packets from send requests: nothing but the bytes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "emulator/qp_context.h"
#include "emulator/send_queue.h"
#include "net/wire/packet.h"

namespace urxe::emulator {

// PSNs that a message of `length` bytes takes: at least one.
[[nodiscard]] constexpr std::uint32_t packets_of(std::uint64_t length, std::uint32_t mtu) {
  return length == 0 ? 1 : static_cast<std::uint32_t>((length + mtu - 1) / mtu);
}

// Payload bytes of packets [first, first + count) of a message.
[[nodiscard]] constexpr std::uint32_t payload_of(std::uint64_t length, std::uint32_t mtu,
                                                 std::uint32_t first, std::uint32_t count) {
  const std::uint64_t begin = std::uint64_t{first} * mtu;
  const std::uint64_t end = std::min(length, begin + std::uint64_t{count} * mtu);
  return end > begin ? static_cast<std::uint32_t>(end - begin) : 0;
}

// Whether queue pairs of this type have this operation (IBTA table 37; RC has all).
[[nodiscard]] bool supports(QpType type, WorkOpcode opcode);

// Which packet of a request, and what its BTH says besides.
struct RequestPart {
  std::uint32_t index;      // of its first packet within the request
  std::uint32_t count = 1;  // READ: for how many response packets it asks
  bool ack_request = false;
};

// Writes the packet of a request. `position` is where its data start in the scatter/gather list and
// moves behind them. Returns the size up to the pad.
[[nodiscard]] tl::expected<std::size_t, LocalFault> build_request(const QpContext& context,
                                                                  const Work& work,
                                                                  const RequestPart& part,
                                                                  SgePosition& position,
                                                                  wire::MutableBytes slot);

// Appends zero bytes up to a multiple of four; returns the padded size.
[[nodiscard]] std::size_t pad(wire::MutableBytes slot, std::size_t size);

}  // namespace urxe::emulator
