// Big-endian integers in byte strings. Every multi-byte field of RoCEv2 is big-endian but the ICRC.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace urxe::wire {

using Bytes = std::span<const std::uint8_t>;
using MutableBytes = std::span<std::uint8_t>;

namespace detail {

static_assert(std::endian::native == std::endian::little, "urxe runs on little-endian machines");

template <std::unsigned_integral T>
constexpr T swap_bytes(T value) {
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
}

// Whether a field can be loaded as one word. Compilers do not see that in the loops below.
template <typename T, std::size_t Width>
inline constexpr bool kIsWord = Width == sizeof(T) && Width > 1;

}  // namespace detail

// Reads `Width` bytes at `at`, most significant first. The caller has checked that they exist.
template <std::unsigned_integral T, std::size_t Width = sizeof(T)>
constexpr T load_be(Bytes bytes, std::size_t at) {
  if constexpr (detail::kIsWord<T, Width>) {
    if (!std::is_constant_evaluated()) {
      T word;
      std::memcpy(&word, bytes.data() + at, sizeof(word));
      return detail::swap_bytes(word);
    }
  }
  T value = 0;
  for (std::size_t i = 0; i < Width; ++i) value = static_cast<T>(value << 8 | bytes[at + i]);
  return value;
}

template <std::unsigned_integral T, std::size_t Width = sizeof(T)>
constexpr void store_be(MutableBytes bytes, std::size_t at, T value) {
  if constexpr (detail::kIsWord<T, Width>) {
    if (!std::is_constant_evaluated()) {
      const T word = detail::swap_bytes(value);
      std::memcpy(bytes.data() + at, &word, sizeof(word));
      return;
    }
  }
  for (std::size_t i = 0; i < Width; ++i) {
    bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * (Width - 1 - i)));
  }
}

}  // namespace urxe::wire
