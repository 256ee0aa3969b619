// One run of a plan.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/faults/fault_fabric.h"
#include "net/sim/network.h"
#include "tests/sim/swarm/endpoint.h"
#include "tests/sim/swarm/machine.h"
#include "tests/sim/swarm/plan.h"

namespace urxe::swarm {

struct Verdict {
  std::vector<std::string> findings;  // empty: nothing was wrong
  // Of all devices, so that a swarm that does nothing is noticed.
  std::uint64_t packets = 0;
  std::uint64_t messages = 0;  // that completed
  std::uint64_t retransmissions = 0;
  std::uint64_t placements = 0;  // ATOMIC WRITEs and FLUSHes that completed
  std::uint64_t refusals = 0;    // accesses to memory that was taken away
  std::uint64_t multicasts = 0;  // multicast datagrams that were received
};

// Plays the plan until everything has come to rest. `observer` sees what goes on the wire; it may
// be nullptr.
[[nodiscard]] Verdict play(const Plan& plan, net::Observer* observer = nullptr);

}  // namespace urxe::swarm
