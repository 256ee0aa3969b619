#include "net/random.h"

#include <array>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

namespace urxe::net {
namespace {

TEST_CASE("one seed gives the same numbers on every machine") {
  Random random(0);
  CHECK(random.next() == 0xE220A8397B1DCDAF);  // the first of SplitMix64's reference output
  CHECK(random.next() == 0x6E789E6AA1B965F4);
  CHECK(random.next() == 0x06C45D188009454F);
}

TEST_CASE("numbers below a bound cover it evenly") {
  Random random(1);
  std::array<int, 10> seen{};
  for (int i = 0; i < 100000; ++i) ++seen.at(random.below(10));
  for (const int count : seen) CHECK(std::abs(count - 10000) < 500);
  CHECK(random.below(1) == 0);
  CHECK(random.below(0) == 0);
}

TEST_CASE("both ends of a range are drawn") {
  Random random(2);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(random.between(5, 8));
  CHECK(seen == std::set<std::uint64_t>{5, 6, 7, 8});
  CHECK_NOTHROW(random.between(0, ~std::uint64_t{0}));
}

TEST_CASE("a chance comes true as often as it says") {
  Random random(3);
  int hits = 0;
  for (int i = 0; i < 100000; ++i) hits += random.chance(0.01) ? 1 : 0;
  CHECK(std::abs(hits - 1000) < 150);
  CHECK_FALSE(random.chance(0));
  CHECK(random.chance(1));
}

TEST_CASE("a forked stream neither follows nor disturbs its parent") {
  Random parent(4);
  Random twin(4);
  Random child = parent.fork(0);
  CHECK(child.next() != Random(4).next());
  CHECK(child.next() != parent.fork(1).next());
  CHECK(parent.next() == twin.next());
}

}  // namespace
}  // namespace urxe::net
