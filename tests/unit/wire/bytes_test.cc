#include "net/wire/bytes.h"

#include <array>
#include <cstdint>

#include <catch2/catch.hpp>

namespace urxe::wire {
namespace {

constexpr std::array<std::uint8_t, 10> kBytes{0x00, 0x81, 0x92, 0xA3, 0xB4,
                                              0xC5, 0xD6, 0xE7, 0xF8, 0x09};

TEST_CASE("integers are read most significant byte first, at any alignment") {
  CHECK(load_be<std::uint8_t>(kBytes, 1) == 0x81);
  CHECK(load_be<std::uint16_t>(kBytes, 1) == 0x8192);
  CHECK(load_be<std::uint32_t>(kBytes, 1) == 0x8192A3B4);
  CHECK(load_be<std::uint32_t>(kBytes, 2) == 0x92A3B4C5);
  CHECK(load_be<std::uint64_t>(kBytes, 1) == 0x8192A3B4C5D6E7F8);
  CHECK(load_be<std::uint32_t, 3>(kBytes, 1) == 0x8192A3);
}

TEST_CASE("integers are read the same by the compiler") {
  STATIC_REQUIRE(load_be<std::uint16_t>(kBytes, 1) == 0x8192);
  STATIC_REQUIRE(load_be<std::uint32_t>(kBytes, 1) == 0x8192A3B4);
  STATIC_REQUIRE(load_be<std::uint64_t>(kBytes, 1) == 0x8192A3B4C5D6E7F8);
  STATIC_REQUIRE(load_be<std::uint32_t, 3>(kBytes, 1) == 0x8192A3);
}

template <typename T, std::size_t Width = sizeof(T)>
constexpr std::array<std::uint8_t, 10> stored(T value) {
  std::array<std::uint8_t, 10> bytes{};
  store_be<T, Width>(bytes, 1, value);
  return bytes;
}

TEST_CASE("integers are written most significant byte first, and nothing beside them") {
  using Ten = std::array<std::uint8_t, 10>;
  CHECK(stored<std::uint8_t>(0x81) == Ten{0, 0x81});
  CHECK(stored<std::uint16_t>(0x8192) == Ten{0, 0x81, 0x92});
  CHECK(stored<std::uint32_t>(0x8192A3B4) == Ten{0, 0x81, 0x92, 0xA3, 0xB4});
  CHECK(stored<std::uint64_t>(0x8192A3B4C5D6E7F8) ==
        Ten{0, 0x81, 0x92, 0xA3, 0xB4, 0xC5, 0xD6, 0xE7, 0xF8, 0});
  CHECK(stored<std::uint32_t, 3>(0xFF8192A3) == Ten{0, 0x81, 0x92, 0xA3, 0});
}

TEST_CASE("integers are written the same by the compiler") {
  STATIC_REQUIRE(stored<std::uint16_t>(0x8192)[2] == 0x92);
  STATIC_REQUIRE(stored<std::uint32_t>(0x8192A3B4)[4] == 0xB4);
  STATIC_REQUIRE(stored<std::uint64_t>(0x8192A3B4C5D6E7F8)[8] == 0xF8);
}

}  // namespace
}  // namespace urxe::wire
