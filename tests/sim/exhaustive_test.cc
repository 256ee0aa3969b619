// Every small fault on every small conversation: what the programs see is what they would have seen
// without it.
#include "tests/sim/exhaustive.h"

#include <cstdio>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace urxe::test {
namespace {

constexpr std::uint64_t kPackets = 8;  // the first so many of each direction
constexpr std::uint64_t kMasks = 1U << kPackets;

using net::Action;
using net::Direction;

net::Rule loss(Direction direction, std::uint64_t mask) {
  return {.effect = {.action = Action::drop},
          .match = {.direction = direction, .mask = mask},
          .text = fmt::format("drop {} mask={:#x}",
                              direction == Direction::transmit ? "dir=tx" : "dir=rx", mask)};
}

net::Rule on_nth(Action action, Direction direction, std::uint64_t nth) {
  return {.effect = {.action = action, .within = 50us},
          .match = {.direction = direction, .nth = nth},
          .text = fmt::format("{} {} nth={}", action == Action::reorder ? "reorder" : "duplicate",
                              direction == Direction::transmit ? "dir=tx" : "dir=rx", nth)};
}

// Compares a run with faults to the one without.
class Comparison {
 public:
  explicit Comparison(const Conversation& conversation)
      : conversation_(conversation), clean_(converse(conversation, {})) {
    INFO(to_string(conversation));
    REQUIRE(clean_.at_rest);
    REQUIRE(clean_.requests_held == 0);
    REQUIRE(clean_.client_state == emulator::QpState::ready_to_send);
  }
  void check(const std::vector<net::Rule>& faults) const {
    const Outcome outcome = converse(conversation_, faults);
    if (outcome == clean_) return;
    std::string text = to_string(conversation_);
    for (const net::Rule& rule : faults) text += "; " + rule.text;
    FAIL(text << "\nwith faults: " << to_string(outcome) << "\nwithout: " << to_string(clean_)
              << (outcome.memory == clean_.memory ? "" : "\nand the memory differs"));
  }

 private:
  const Conversation& conversation_;
  Outcome clean_;
};

TEST_CASE("no loss among the first eight packets of a direction shows") {
  for (const Conversation& conversation : all_conversations()) {
    const Comparison comparison(conversation);
    for (const Direction direction : {Direction::transmit, Direction::receive}) {
      for (std::uint64_t mask = 1; mask < kMasks; ++mask) comparison.check({loss(direction, mask)});
    }
  }
}

TEST_CASE("no loss among the first eight packets of both directions shows", "[.slow]") {
  for (const Conversation& conversation : all_conversations()) {
    const Comparison comparison(conversation);
    for (std::uint64_t there = 1; there < kMasks; ++there) {
      for (std::uint64_t back = 1; back < kMasks; ++back) {
        comparison.check({loss(Direction::transmit, there), loss(Direction::receive, back)});
      }
    }
  }
}

TEST_CASE("no single duplicate and no swap of neighbours shows") {
  const Action action = GENERATE(Action::duplicate, Action::reorder);
  for (const Conversation& conversation : all_conversations()) {
    const Comparison comparison(conversation);
    for (const Direction direction : {Direction::transmit, Direction::receive}) {
      for (std::uint64_t nth = 1; nth <= kPackets; ++nth) {
        comparison.check({on_nth(action, direction, nth)});
      }
    }
  }
}

TEST_CASE("no loss together with a duplicate or a swap shows", "[.slow]") {
  const Action action = GENERATE(Action::duplicate, Action::reorder);
  for (const Conversation& conversation : all_conversations()) {
    const Comparison comparison(conversation);
    for (const Direction lost : {Direction::transmit, Direction::receive}) {
      for (std::uint64_t mask = 1; mask < kMasks; ++mask) {
        for (const Direction direction : {Direction::transmit, Direction::receive}) {
          for (std::uint64_t nth = 1; nth <= kPackets; ++nth) {
            comparison.check({loss(lost, mask), on_nth(action, direction, nth)});
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace urxe::test
