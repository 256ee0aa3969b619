#include "emulator/ring.h"

#include <deque>
#include <memory>
#include <random>

#include <catch2/catch.hpp>

namespace urxe::emulator {
namespace {

TEST_CASE("a ring is a queue, whatever is done to it") {
  std::mt19937 random(1);
  Ring<int> ring;
  std::deque<int> model;
  for (int i = 0; i < 20000; ++i) {
    switch (random() % 8) {
      case 0:
      case 1:
      case 2:
      case 3:
        ring.push(i);
        model.push_back(i);
        break;
      case 4:
      case 5:
        if (model.empty()) break;
        CHECK(ring.front() == model.front());
        ring.pop_front();
        model.pop_front();
        break;
      case 6:
        if (model.empty()) break;
        CHECK(ring.back() == model.back());
        ring.pop_back();
        model.pop_back();
        break;
      default:
        if (random() % 500 == 0) {
          ring.clear();
          model.clear();
        } else if (random() % 500 == 0) {
          ring.release();
          model.clear();
        }
    }
    REQUIRE(ring.size() == model.size());
    CHECK(ring.empty() == model.empty());
    if (model.empty()) continue;
    const auto at = static_cast<std::uint32_t>(random() % model.size());
    CHECK(ring[at] == model[at]);
  }
}

TEST_CASE("growing keeps the elements and their order when the ring has wrapped") {
  Ring<std::unique_ptr<int>> ring;
  for (int i = 0; i < 3; ++i) ring.push(std::make_unique<int>(i));
  ring.pop_front();
  ring.pop_front();
  for (int i = 3; i < 20; ++i) ring.push(std::make_unique<int>(i));
  REQUIRE(ring.size() == 18);
  for (std::uint32_t i = 0; i < 18; ++i) CHECK(*ring[i] == static_cast<int>(i) + 2);
}

}  // namespace
}  // namespace urxe::emulator
