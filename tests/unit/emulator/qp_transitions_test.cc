#include <catch2/catch.hpp>

#include "tests/support/transition_rules.h"

namespace urxe::test {
namespace {

using namespace emulator;

constexpr std::size_t kTypes = 4;

TEST_CASE("state transitions and their attributes are those of Linux's ib_core, all of them") {
  const auto rules = transition_rules();
  REQUIRE(rules.size() == std::size_t{kQpStates} * kQpStates * kTypes);
  for (const TransitionRule& rule : rules) {
    INFO(rule.line);
    const auto check = [&rule](AttributeMask given) {
      return check_transition(rule.from, rule.to, rule.type, given | kAttrState);
    };
    CHECK(check({}).exists == rule.allowed);
    if (!rule.allowed) continue;
    CHECK(check(rule.must).ok());
    CHECK(check(rule.must | rule.may).ok());
    CHECK(check({}).missing == rule.must);
    for (std::uint32_t bit = 0; bit < 32; ++bit) {
      const AttributeMask one{1U << bit};
      if (one == kAttrState) continue;
      const bool known = (rule.must | rule.may).has(one);
      CHECK(check(rule.must | one).ok() == known);
      CHECK(check(rule.must | rule.may.without(one)).ok());
      if (rule.must.has(one)) CHECK(check(rule.must.without(one)).missing == one);
    }
  }
}

}  // namespace
}  // namespace urxe::test
