// IP addresses, which in RoCEv2 are the GIDs.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "net/wire/bytes.h"

namespace urxe::wire {

// An IPv6 address, or an IPv4 address in its IPv4-mapped form (::ffff:a.b.c.d): what a GID of a
// RoCEv2 port holds (IBTA annex A17).
class IpAddress {
 public:
  static constexpr std::size_t kSize = 16;

  constexpr IpAddress() = default;
  constexpr explicit IpAddress(const std::array<std::uint8_t, kSize>& bytes) : bytes_(bytes) {}

  // `host_order`: 127.0.0.1 is 0x7F000001.
  static constexpr IpAddress from_v4(std::uint32_t host_order) {
    IpAddress address;
    address.bytes_[10] = address.bytes_[11] = 0xFF;
    store_be(MutableBytes(address.bytes_), 12, host_order);
    return address;
  }
  static constexpr IpAddress from_bytes(Bytes sixteen) {
    IpAddress address;
    for (std::size_t i = 0; i < kSize; ++i) address.bytes_[i] = sixteen[i];
    return address;
  }
  // Takes the text forms of both families; nothing if it is neither.
  static std::optional<IpAddress> parse(const std::string& text);

  [[nodiscard]] constexpr const std::array<std::uint8_t, kSize>& bytes() const { return bytes_; }
  [[nodiscard]] constexpr bool is_v4() const {
    for (std::size_t i = 0; i < 10; ++i) {
      if (bytes_[i] != 0) return false;
    }
    return bytes_[10] == 0xFF && bytes_[11] == 0xFF;
  }
  // The IPv4 address in host order. Only for is_v4().
  [[nodiscard]] constexpr std::uint32_t v4() const { return load_be<std::uint32_t>(bytes_, 12); }
  [[nodiscard]] constexpr bool is_unspecified() const { return *this == IpAddress{}; }
  [[nodiscard]] constexpr bool is_link_local() const {
    return bytes_[0] == 0xFE && (bytes_[1] & 0xC0) == 0x80;
  }
  [[nodiscard]] constexpr bool is_loopback() const {
    return is_v4() ? bytes_[12] == 127
                   : *this == IpAddress({0, 0, 0, 0, 0, 0, 0, 0,  //
                                         0, 0, 0, 0, 0, 0, 0, 1});
  }
  [[nodiscard]] constexpr bool is_multicast() const {
    return is_v4() ? (bytes_[12] & 0xF0) == 0xE0 : bytes_[0] == 0xFF;
  }
  [[nodiscard]] std::string to_string() const;

  friend constexpr auto operator<=>(const IpAddress&, const IpAddress&) = default;

 private:
  std::array<std::uint8_t, kSize> bytes_{};
};

}  // namespace urxe::wire
