#include "net/wire/numbers.h"

#include <array>
#include <cstdint>

#include <catch2/catch.hpp>

namespace urxe::wire {
namespace {

constexpr std::int64_t kHalf = std::int64_t{1} << 23;
constexpr std::int64_t kWhole = std::int64_t{1} << 24;

// Where arithmetic modulo 2^24 could go wrong: zero, the middle, the wrap.
constexpr std::array<std::uint32_t, 15> kEdges{0,        1,        2,        0x7FFFFD, 0x7FFFFE,
                                               0x7FFFFF, 0x800000, 0x800001, 0x800002, 0xFFFFFC,
                                               0xFFFFFD, 0xFFFFFE, 0xFFFFFF, 0x123456, 0xABCDEF};

// The distance by definition, in arithmetic that cannot wrap.
std::int64_t distance(std::int64_t from, std::int64_t to) {
  std::int64_t d = (to - from + kWhole) % kWhole;
  return d < kHalf ? d : d - kWhole;
}

TEST_CASE("a PSN keeps 24 bits") {
  CHECK(Psn{}.value() == 0);
  CHECK(Psn{0xFFFFFF}.value() == 0xFFFFFF);
  CHECK(Psn{0x1000000}.value() == 0);
  CHECK(Psn{0xAB123456}.value() == 0x123456);
}

TEST_CASE("a PSN wraps in both directions") {
  CHECK(Psn{0xFFFFFF} + 1 == Psn{0});
  CHECK(Psn{0xFFFFF0} + 0x20 == Psn{0x10});
  CHECK(Psn{0} - 1 == Psn{0xFFFFFF});
  CHECK(Psn{5} - 0xFFFFFF == Psn{6});
  Psn psn{0xFFFFFF};
  CHECK(++psn == Psn{0});
  CHECK(psn.value() == 0);
}

TEST_CASE("the distance between PSNs is signed and at most half of the number space") {
  for (const std::uint32_t origin : kEdges) {
    for (const std::uint32_t other : kEdges) {
      INFO("from " << origin << " to " << other);
      CHECK(Psn{other}.ahead_of(Psn{origin}) == distance(origin, other));
    }
  }
}

TEST_CASE("adding a distance and taking it again is the identity, around every edge") {
  for (const std::uint32_t origin : kEdges) {
    for (std::int32_t step = -300; step <= 300; ++step) {
      const Psn moved = step >= 0 ? Psn{origin} + static_cast<std::uint32_t>(step)
                                  : Psn{origin} - static_cast<std::uint32_t>(-step);
      if (moved.ahead_of(Psn{origin}) != step) FAIL(origin << " " << step);
      if ((moved == Psn{origin}) != (step == 0)) FAIL(origin << " " << step);
    }
  }
}

// The number opposite counts as behind: a request 2^23 back is still a duplicate.
TEST_CASE("before means in the half of the number space that lies behind") {
  const Psn here{0xFFFFFE};
  CHECK_FALSE(here.is_before(here));
  CHECK(here.is_before(here + 1));
  CHECK(here.is_before(here + 0x7FFFFF));
  CHECK((here - 0x7FFFFF).is_before(here));
  CHECK_FALSE(here.is_before(here - 1));
  CHECK_FALSE(here.is_before(here - 0x7FFFFF));
  CHECK((here - 0x800000).is_before(here));
  CHECK(here.is_before(here + 0x800000));
}

TEST_CASE("of two different PSNs exactly one is before the other, unless they are opposite") {
  for (const std::uint32_t a : kEdges) {
    for (const std::uint32_t b : kEdges) {
      if (a == b || distance(a, b) == -kHalf) continue;
      INFO(a << " and " << b);
      CHECK(Psn{a}.is_before(Psn{b}) != Psn{b}.is_before(Psn{a}));
    }
  }
}

TEST_CASE("a window holds its first PSN and count - 1 more, over the wrap too") {
  constexpr std::array<std::uint32_t, 6> kCounts{0, 1, 2, 128, 0x800000, 0xFFFFFF};
  for (const std::uint32_t first : kEdges) {
    for (const std::uint32_t count : kCounts) {
      INFO("from " << first << ", " << count);
      CHECK(Psn{first}.in_window(Psn{first}, count) == (count > 0));
      CHECK_FALSE((Psn{first} - 1).in_window(Psn{first}, count));
      CHECK_FALSE((Psn{first} + count).in_window(Psn{first}, count));
      if (count > 0) CHECK((Psn{first} + (count - 1)).in_window(Psn{first}, count));
    }
  }
}

TEST_CASE("PSN arithmetic is known to the compiler") {
  STATIC_REQUIRE((Psn{0xFFFFFF} + 2).ahead_of(Psn{0xFFFFFF}) == 2);
  STATIC_REQUIRE(Psn{0xFFFFFF}.is_before(Psn{3}));
  STATIC_REQUIRE(Psn{2}.in_window(Psn{0xFFFFFF}, 4));
}

TEST_CASE("numbers keep their width on the wire") {
  CHECK(Qpn{0xFF000001}.value() == 1);
  CHECK(Msn{0x1000000}.value() == 0);
  CHECK(RKey{0xFFFFFFFF}.value() == 0xFFFFFFFF);
  CHECK(LKey{0x80000001}.value() == 0x80000001);
  CHECK(QKey{0xFEDCBA98}.value() == 0xFEDCBA98);
  CHECK(PKey{0xFFFF}.value() == 0xFFFF);
}

TEST_CASE("message sequence numbers wrap") {
  CHECK(next(Msn{0}) == Msn{1});
  CHECK(next(Msn{0xFFFFFF}) == Msn{0});
}

TEST_CASE("the well-known numbers are those of the specification") {
  CHECK(kGsiQpn.value() == 1);
  CHECK(kMulticastQpn.value() == 0xFFFFFF);
  CHECK(kDefaultPKey.value() == 0xFFFF);
  CHECK(kGsiQKey.value() == 0x80010000);
}

}  // namespace
}  // namespace urxe::wire
