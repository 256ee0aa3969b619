#include "emulator/timers.h"

#include <array>
#include <random>

#include <catch2/catch.hpp>

namespace urxe::emulator {
namespace {

using namespace std::chrono_literals;

TEST_CASE("objects come due in the order of their deadlines, and once") {
  TimerQueue queue;
  Timed a;
  Timed b;
  queue.set(a, Time{20us});
  queue.set(b, Time{10us});
  CHECK(queue.next() == Time{10us});
  CHECK(queue.pop_due(Time{9us}) == nullptr);
  CHECK(queue.pop_due(Time{10us}) == &b);
  CHECK(queue.pop_due(Time{10us}) == nullptr);
  CHECK(b.deadline() == kNever);
  CHECK(queue.pop_due(Time{1s}) == &a);
  CHECK(queue.next() == kNever);
}

TEST_CASE("a deadline may move either way, and go") {
  TimerQueue queue;
  Timed a;
  queue.set(a, Time{10us});
  queue.set(a, Time{30us});
  CHECK(queue.next() == Time{30us});
  CHECK(queue.pop_due(Time{29us}) == nullptr);
  queue.set(a, Time{5us});
  CHECK(queue.next() == Time{5us});
  queue.set(a, kNever);
  CHECK(queue.next() == kNever);
  CHECK(queue.pop_due(Time{1s}) == nullptr);
}

TEST_CASE("an object that is forgotten is not touched again") {
  TimerQueue queue;
  Timed kept;
  {
    Timed gone;
    queue.set(gone, Time{10us});
    queue.set(gone, Time{5us});
    queue.set(kept, Time{20us});
    queue.forget(gone);
  }
  CHECK(queue.next() == Time{20us});
  CHECK(queue.pop_due(Time{1s}) == &kept);
}

TEST_CASE("the queue agrees with a plain list, whatever is done to it") {
  std::mt19937 random(GENERATE(1, 2, 3, 4));
  TimerQueue queue;
  std::array<Timed, 20> objects;
  Time now{};
  for (int i = 0; i < 20000; ++i) {
    Timed& chosen = objects.at(random() % objects.size());
    switch (random() % 6) {
      case 0:
        queue.set(chosen, kNever);
        break;
      case 1:
        queue.forget(chosen);
        break;
      case 2:
        now += Duration(random() % 50);
        break;
      default:
        queue.set(chosen, now + Duration(random() % 100));
    }
    Time earliest = kNever;
    for (const Timed& timed : objects) earliest = std::min(earliest, timed.deadline());
    REQUIRE(queue.next() == earliest);
    while (earliest <= now) {
      const Timed* due = queue.pop_due(now);
      REQUIRE(due != nullptr);
      CHECK(due->deadline() == kNever);
      earliest = kNever;
      for (const Timed& timed : objects) earliest = std::min(earliest, timed.deadline());
    }
    CHECK(queue.pop_due(now) == nullptr);
  }
}

}  // namespace
}  // namespace urxe::emulator
