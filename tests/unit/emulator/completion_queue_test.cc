#include "emulator/completion_queue.h"

#include <catch2/catch.hpp>

#include "tests/support/work_doubles.h"

namespace urxe::test {
namespace {

using namespace emulator;

struct Cq {
  explicit Cq(std::size_t capacity = SIZE_MAX) : sink(capacity) {}
  // Whether a completion makes an event.
  bool tells(bool solicited = false, CompletionStatus status = CompletionStatus::success) {
    cq.push({.status = status}, solicited);
    const bool told = events.poll_completion_event() == &cq;
    CHECK(events.poll_completion_event() == nullptr);
    return told;
  }
  EventQueue events;
  Explanations explanations;
  CompletionDouble sink;
  CompletionQueue cq{events, explanations, sink};
};

TEST_CASE("a queue that is not armed makes no event") {
  Cq t;
  CHECK_FALSE(t.tells());
  CHECK_FALSE(t.tells(true));
  CHECK(t.sink.completions.size() == 2);
}

TEST_CASE("an armed queue makes one event, then is disarmed") {
  Cq t;
  t.cq.request_notification(Notify::any);
  CHECK(t.tells());
  CHECK_FALSE(t.tells());
}

TEST_CASE("armed for solicited completions, it waits for one, or for a failure") {
  Cq t;
  t.cq.request_notification(Notify::solicited);
  CHECK_FALSE(t.tells());
  CHECK(t.tells(true));
  t.cq.request_notification(Notify::solicited);
  CHECK_FALSE(t.tells());
  CHECK(t.tells(false, CompletionStatus::flushed));
}

TEST_CASE("asking for less than what is armed changes nothing, asking for more does") {
  Cq t;
  t.cq.request_notification(Notify::any);
  t.cq.request_notification(Notify::solicited);
  CHECK(t.cq.armed() == Notify::any);
  CHECK(t.tells());
  t.cq.request_notification(Notify::solicited);
  t.cq.request_notification(Notify::any);
  CHECK(t.tells());
}

TEST_CASE("arming makes no event for what is there already") {
  Cq t;
  t.cq.push({}, true);
  t.cq.request_notification(Notify::any);
  CHECK(t.events.poll_completion_event() == nullptr);
}

TEST_CASE("an overflow is told once, and nothing more is said") {
  Cq t(1);
  t.explanations.listen(true);
  CHECK_FALSE(t.tells());
  t.cq.request_notification(Notify::any);
  CHECK_FALSE(t.tells());
  CHECK(t.cq.overflowed());
  CHECK_FALSE(t.tells());
  const auto event = t.events.poll_async_event();
  REQUIRE(event);
  CHECK(event->type == AsyncEventType::cq_error);
  CHECK(std::get<CompletionQueue*>(event->source) == &t.cq);
  CHECK_FALSE(t.events.poll_async_event());
  CHECK(t.explanations.take().size() == 1);
}

}  // namespace
}  // namespace urxe::test
