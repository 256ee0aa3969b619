// Many seeds, in several processes.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/sim/swarm/options.h"

namespace urxe::swarm {

struct Totals {
  std::uint64_t seeds = 0;
  std::uint64_t packets = 0;
  std::uint64_t messages = 0;
  std::uint64_t retransmissions = 0;
  std::uint64_t placements = 0;
  std::uint64_t refusals = 0;
  std::uint64_t multicasts = 0;
  std::vector<std::uint64_t> failed;
};

// A seed that ends its process (an assertion, a sanitizer) is a failure like any other. Stops after
// a few of them.
[[nodiscard]] Totals run_seeds(const std::vector<std::uint64_t>& seeds, const Options& options);

}  // namespace urxe::swarm
