// How long a small message takes there and back.
#pragma once

#include <vector>

#include "tests/bench/yardstick/two_processes.h"

namespace urxe::bench {

// Messages of `size` bytes. How each side waits: "spin" reads the socket without blocking, again
// and again; "block" sleeps in the read; "flag" spins on a variable that another thread, which
// sleeps in the read, sets (as a program does that waits for an RDMA WRITE by looking at memory).
// The round trips in nanoseconds, sorted.
std::vector<std::uint64_t> measure_ping_pong(const Options& options);

}  // namespace urxe::bench
