#include "emulator/congestion.h"

#include <cmath>

#include <catch2/catch.hpp>

namespace urxe::emulator {
namespace {

using namespace std::chrono_literals;

constexpr Time kStart{1s};
constexpr double kGigabit = 1e9;

TEST_CASE("a receiver sends one CNP in an interval") {
  NotificationPoint point(CongestionOptions{});
  CHECK(point.packet_was_marked(kStart));
  CHECK_FALSE(point.packet_was_marked(kStart + 1us));
  CHECK_FALSE(point.packet_was_marked(kStart + 49us));
  CHECK(point.packet_was_marked(kStart + 50us));
}

TEST_CASE("a queue pair without CNPs has no rate and no timer") {
  ReactionPoint point(CongestionOptions{});
  point.sent(kStart, 1U << 30);
  CHECK_FALSE(point.is_limited());
  CHECK(point.free_at() <= kStart);
  CHECK(point.deadline() == kNever);
}

TEST_CASE("the first CNP halves the rate, later ones take less the rarer they were") {
  ReactionPoint point(CongestionOptions{});
  point.notified(kStart);
  CHECK(point.rate() == Approx(5 * kGigabit));
  for (int i = 0; i < 3; ++i) point.notified(kStart);
  CHECK(point.rate() == Approx(10 * kGigabit / 16));
  Time now = kStart;
  for (int i = 0; i < 200; ++i) {
    now += 55us;
    point.handle_timer(now);
  }
  const double rate = point.rate();
  const double alpha = point.alpha();
  CHECK(alpha == Approx(std::pow(255.0 / 256, 200)).epsilon(0.01));
  point.notified(now);
  CHECK(point.rate() == Approx(rate * (1 - alpha / 2)));
}

TEST_CASE("a rate has a floor") {
  ReactionPoint point(CongestionOptions{});
  for (int i = 0; i < 100; ++i) point.notified(kStart);
  CHECK(point.rate() == Approx(10e6));
}

TEST_CASE("packets leave at the rate, and a little can be caught up with") {
  ReactionPoint point(CongestionOptions{});
  point.notified(kStart);                                 // 5 Gb/s
  for (int i = 0; i < 100; ++i) point.sent(kStart, 625);  // 1 us each, of which 50 are given
  CHECK(point.free_at() == kStart + 50us);
  point.sent(kStart + 10ms, 625);
  CHECK(point.free_at() == kStart + 10ms - 49us);
}

TEST_CASE("without CNPs the rate goes half of the way back each time, then beyond, then is free") {
  ReactionPoint point(CongestionOptions{});
  point.notified(kStart);
  point.notified(kStart);  // from 5 Gb/s
  const double low = point.rate();
  Time now = kStart + 300us;
  point.handle_timer(now);
  CHECK(point.rate() == Approx((low + 5 * kGigabit) / 2));
  for (int i = 0; i < 4; ++i) point.handle_timer(now += 300us);
  CHECK(point.rate() < 5 * kGigabit);
  for (int i = 0; i < 5; ++i) point.handle_timer(now += 300us);
  CHECK(point.rate() > 5 * kGigabit);
  for (int i = 0; i < 2000; ++i) point.handle_timer(now += 300us);
  CHECK_FALSE(point.is_limited());
  CHECK(point.deadline() == kNever);
}

TEST_CASE("bytes make the rate rise too, and both together make it rise fast") {
  CongestionOptions options;
  options.rise_bytes = 1'000'000;
  ReactionPoint by_time(options);
  ReactionPoint by_both(options);
  for (ReactionPoint* point : {&by_time, &by_both}) {
    for (int i = 0; i < 6; ++i) point->notified(kStart);
  }
  Time now = kStart;
  for (int i = 0; i < 8; ++i) {
    now += 300us;
    by_time.handle_timer(now);
    by_both.handle_timer(now);
    by_both.sent(now, 1'000'000);
  }
  CHECK(by_both.rate() > by_time.rate() + 0.02 * kGigabit);
}

}  // namespace
}  // namespace urxe::emulator
