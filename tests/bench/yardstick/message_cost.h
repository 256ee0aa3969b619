// What a message to the kernel costs, whatever else the machine does.
#pragma once

#include "tests/bench/yardstick/two_processes.h"

namespace urxe::bench {

// One thread sends UDP messages to itself, in the shapes that a stream of raw datagrams, of SENDs
// and of RDMA WRITEs of 64 KiB have (the kernel splits: UDP_SEGMENT), and receives them.
// Prints its CPU time for each, in microseconds for 64 KiB: the best of several rounds, so that
// another load does not matter. It copies nothing itself, computes no CRC and acknowledges nothing:
// less no implementation over UDP sockets can need. Of `options` the address counts, and the size:
// of a packet's UDP payload, 16 bytes more than the MTU (4112 if it is larger than that).
int print_message_costs(const Options& options);

}  // namespace urxe::bench
