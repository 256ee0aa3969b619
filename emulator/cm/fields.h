// Small things that the halves of the connection manager share.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/core.h>

#include "emulator/error.h"
#include "net/wire/cm.h"

namespace urxe::emulator {

// rxe's local_ca_ack_delay: 4.096 us * 2^n.
inline constexpr std::uint8_t kLocalAckDelay = 15;

[[nodiscard]] constexpr std::size_t cm_index(wire::CmAttribute attribute) {
  return static_cast<std::size_t>(attribute) - static_cast<std::size_t>(wire::CmAttribute::req);
}

// Private data of a message has a fixed size: what the user gives is followed by zeros.
template <std::size_t Size>
Result<void> copy_private(wire::Bytes from, std::array<std::uint8_t, Size>& to) {
  if (from.size() > Size) {
    return fail(
        Failure::invalid,
        fmt::format("{} bytes of private data, the message has room for {}", from.size(), Size));
  }
  std::copy(from.begin(), from.end(), to.begin());
  return {};
}

}  // namespace urxe::emulator
