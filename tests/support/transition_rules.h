// tests/golden/qp_transitions.txt: the rules of Linux's ib_core for the states of queue pairs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "emulator/qp_attributes.h"

namespace urxe::test {

struct TransitionRule {
  emulator::QpState from;
  emulator::QpState to;
  emulator::QpType type;
  bool allowed = false;
  emulator::AttributeMask must;
  emulator::AttributeMask may;
  std::string line;  // of the file
};

// All combinations of two states and a type. Throws if the file is not readable, or not what it
// should be.
std::vector<TransitionRule> transition_rules();

// The kernel's names of states, and of the attributes that the rules name, in ascending order of
// their bits.
std::string_view state_name(emulator::QpState state);
struct NamedAttribute {
  std::string_view name;
  emulator::AttributeMask bit;
};
const std::vector<NamedAttribute>& named_attributes();

}  // namespace urxe::test
