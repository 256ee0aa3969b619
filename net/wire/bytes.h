// Big-endian integers in byte strings. Every multi-byte field of RoCEv2 is big-endian but the ICRC.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace urxe::wire {

using Bytes = std::span<const std::uint8_t>;
using MutableBytes = std::span<std::uint8_t>;

// Reads `Width` bytes at `at`, most significant first. The caller has checked that they exist.
template <std::unsigned_integral T, std::size_t Width = sizeof(T)>
constexpr T load_be(Bytes bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < Width; ++i) value = static_cast<T>(value << 8 | bytes[at + i]);
  return value;
}

template <std::unsigned_integral T, std::size_t Width = sizeof(T)>
constexpr void store_be(MutableBytes bytes, std::size_t at, T value) {
  for (std::size_t i = 0; i < Width; ++i) {
    bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * (Width - 1 - i)));
  }
}

}  // namespace urxe::wire
