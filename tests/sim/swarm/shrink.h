// Makes a failing plan smaller.
#pragma once

#include <functional>
#include <string>

#include "tests/sim/swarm/capture.h"
#include "tests/sim/swarm/plan.h"

namespace urxe::swarm {

// Plays the plan in a process of its own, so that an assertion that fails there ends only that.
// What was found, one sentence; empty if nothing was.
[[nodiscard]] std::string try_plan(const Plan& plan, Capture* capture = nullptr);

// Leaves out steps and faults while the plan fails at all, for at most so many tries.
[[nodiscard]] Plan shrink(const Plan& plan, int tries = 400);
// The same with another notion of failing.
[[nodiscard]] Plan shrink(const Plan& plan, const std::function<bool(const Plan&)>& fails,
                          int tries);

}  // namespace urxe::swarm
