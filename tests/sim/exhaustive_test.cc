// Every small fault on every small conversation: what the programs see is what they would have seen
// without it.
#include "tests/sim/exhaustive.h"

#include <bitset>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace urxe::test {
namespace {

constexpr std::uint64_t kPackets = 8;  // the first so many of each direction
constexpr std::uint64_t kMasks = 1U << kPackets;

// A case for each verb, so that each is short.
#define RC_VERBS                                                                            \
  WorkOpcode::send, WorkOpcode::send_with_immediate, WorkOpcode::send_with_invalidate,      \
      WorkOpcode::rdma_write, WorkOpcode::rdma_write_with_immediate, WorkOpcode::rdma_read, \
      WorkOpcode::compare_swap, WorkOpcode::fetch_add, WorkOpcode::atomic_write, WorkOpcode::flush

using emulator::WorkOpcode;
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

// A run that ended after few packets never asked the mask's upper bits: masks that differ only
// there make the same run, and one of them is enough.
std::uint64_t asked_bits(std::uint64_t packets) {
  return packets < kPackets ? (1U << packets) - 1 : kMasks - 1;
}

class Masks {
 public:
  [[nodiscard]] bool made(std::uint64_t mask) const { return made_.test(mask); }
  void note(std::uint64_t mask, std::uint64_t packets) {
    const std::uint64_t asked = asked_bits(packets);
    for (std::uint64_t other = mask; other < kMasks; ++other) {
      if (((mask ^ other) & asked) == 0) made_.set(other);
    }
  }

 private:
  std::bitset<kMasks> made_;
};

// Compares a run with faults to the one without.
class Comparison {
 public:
  explicit Comparison(const Conversation& conversation)
      : conversation_(conversation), clean_(converse(conversation, {}).outcome) {
    INFO(to_string(conversation));
    REQUIRE(clean_.at_rest);
    REQUIRE(clean_.requests_held == 0);
    REQUIRE(clean_.client_state == emulator::QpState::ready_to_send);
  }
  // Returns how many packets each fault could have hit.
  std::vector<std::uint64_t> check(const std::vector<net::Rule>& faults) const {
    const auto [outcome, matches] = converse(conversation_, faults);
    if (outcome == clean_) return matches;
    std::string text = to_string(conversation_);
    for (const net::Rule& rule : faults) text += "; " + rule.text;
    FAIL(text << "\nwith faults: " << to_string(outcome) << "\nwithout: " << to_string(clean_)
              << (outcome.memory == clean_.memory ? "" : "\nand the memory differs"));
    return matches;
  }

 private:
  const Conversation& conversation_;
  Outcome clean_;
};

TEMPLATE_TEST_CASE_SIG("no loss among the first eight packets of a direction shows", "",
                       ((WorkOpcode verb), verb), RC_VERBS) {
  for (const Conversation& conversation : conversations_of(verb)) {
    const Comparison comparison(conversation);
    for (const Direction direction : {Direction::transmit, Direction::receive}) {
      Masks masks;
      for (std::uint64_t mask = 1; mask < kMasks; ++mask) {
        if (masks.made(mask)) continue;
        masks.note(mask, comparison.check({loss(direction, mask)}).at(0));
      }
    }
  }
}

// Every mask for one direction, together with every mask for the other.
void lose_both_ways(const Comparison& comparison) {
  std::vector<Masks> back_masks(kMasks);
  for (std::uint64_t there = 1; there < kMasks; ++there) {
    for (std::uint64_t back = 1; back < kMasks; ++back) {
      if (back_masks[there].made(back)) continue;
      const auto matches =
          comparison.check({loss(Direction::transmit, there), loss(Direction::receive, back)});
      const std::uint64_t asked = asked_bits(matches[0]);
      for (std::uint64_t other = there; other < kMasks; ++other) {
        if (((there ^ other) & asked) == 0) back_masks[other].note(back, matches[1]);
      }
    }
  }
}

TEMPLATE_TEST_CASE_SIG("no loss among the first eight packets of both directions shows", "[.slow]",
                       ((WorkOpcode verb), verb), RC_VERBS) {
  for (const Conversation& conversation : conversations_of(verb)) {
    lose_both_ways(Comparison(conversation));
  }
}

TEMPLATE_TEST_CASE_SIG("no single duplicate and no swap of neighbours shows", "",
                       ((WorkOpcode verb), verb), RC_VERBS) {
  const Action action = GENERATE(Action::duplicate, Action::reorder);
  for (const Conversation& conversation : conversations_of(verb)) {
    const Comparison comparison(conversation);
    for (const Direction direction : {Direction::transmit, Direction::receive}) {
      for (std::uint64_t nth = 1; nth <= kPackets; ++nth) {
        comparison.check({on_nth(action, direction, nth)});
      }
    }
  }
}

// Every loss in one direction, together with one other fault.
void lose_besides(const Comparison& comparison, Direction lost, const net::Rule& other) {
  Masks masks;
  for (std::uint64_t mask = 1; mask < kMasks; ++mask) {
    if (masks.made(mask)) continue;
    masks.note(mask, comparison.check({loss(lost, mask), other}).at(0));
  }
}

TEMPLATE_TEST_CASE_SIG("no loss together with a duplicate or a swap shows", "[.slow]",
                       ((WorkOpcode verb), verb), RC_VERBS) {
  const Action action = GENERATE(Action::duplicate, Action::reorder);
  for (const Conversation& conversation : conversations_of(verb)) {
    const Comparison comparison(conversation);
    for (const Direction lost : {Direction::transmit, Direction::receive}) {
      for (const Direction direction : {Direction::transmit, Direction::receive}) {
        for (std::uint64_t nth = 1; nth <= kPackets; ++nth) {
          lose_besides(comparison, lost, on_nth(action, direction, nth));
        }
      }
    }
  }
}

}  // namespace
}  // namespace urxe::test
