// How many bytes a second go from a client to a server.
#pragma once

#include "tests/bench/yardstick/two_processes.h"

namespace urxe::bench {

// Writes of `size` bytes; the reader spins or blocks.
Outcome measure_tcp(const Options& options);

// Datagrams of `size` bytes as fast as they go, whether they arrive or not; counts those that do.
// With segmentation the kernel splits and coalesces buffers of up to 64 KiB (UDP_SEGMENT,
// UDP_GRO); without, sendmmsg and recvmmsg take 64 datagrams each. The reader spins.
Outcome measure_udp_segmented(const Options& options);
Outcome measure_udp_single(const Options& options);

}  // namespace urxe::bench
