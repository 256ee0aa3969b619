// The device's limits and tunables, with the reason for each default.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/types.h"
#include "net/wire/time.h"

namespace urxe::emulator {

// What a program reads with ibv_query_device and what the device enforces. The numbers are those of
// Linux's rxe, the reference: a program that runs there finds as much here.
struct DeviceLimits {
  std::uint64_t max_region_size = ~std::uint64_t{0};
  std::uint32_t max_qp = 1048560;
  std::uint32_t max_qp_wr = 1048576;
  std::uint32_t max_sge = 32;
  std::uint32_t max_inline_data = 1024;  // bytes; rxe: 512, NICs about 1 KiB
  std::uint32_t max_cq = 1048576;
  std::uint32_t max_cqe = 1048576;  // rxe: 32767, which ML transports exceed
  std::uint32_t max_regions = 1048576;
  std::uint32_t max_windows = 1048576;
  std::uint32_t max_pd = 1048576;
  std::uint32_t max_qp_read_atomic = 128;
  std::uint32_t max_ah = 1048576;
  std::uint32_t max_srq = 917503;
  std::uint32_t max_srq_wr = 1048576;
  std::uint32_t max_srq_sge = 32;
  std::uint32_t max_multicast_groups = 8192;
  std::uint32_t max_multicast_attach = 1024;  // queue pairs in one group
};

// DCQCN (congestion.h). Intervals and gain are those of its paper and of NICs; the steps, which
// depend on the line rate, are a quarter of the paper's, which has 40 Gb/s.
struct CongestionOptions {
  bool enabled = false;  // as in Linux's rxe, which has none of it; NICs usually have it on
  // Where a queue pair starts to slow down from, in bit/s: the device cannot ask the switch.
  std::uint64_t line_rate = 10'000'000'000;
  std::uint64_t min_rate = 10'000'000;
  // At most one CNP for a queue pair in this time.
  Duration notification_interval = std::chrono::microseconds(50);
  Duration alpha_interval = std::chrono::microseconds(55);
  double gain = 1.0 / 256;
  Duration rise_interval = std::chrono::microseconds(300);
  std::uint64_t rise_bytes = 10 * 1024 * 1024;
  std::uint32_t fast_rises = 5;  // that lead back to the old rate; later ones lead beyond
  std::uint64_t additive_step = 10'000'000;
  std::uint64_t hyper_step = 50'000'000;
  // Time that a sender which was held up may make up for.
  Duration catch_up = std::chrono::microseconds(50);
};

struct DeviceOptions {
  DeviceLimits limits;

  Mtu port_mtu = Mtu::bytes1024;  // active MTU: what the interface carries
  std::uint32_t seed = 0;         // varies keys and queue pair numbers from run to run
  std::uint64_t node_guid = 0;    // what CM messages say of their sender

  // Bytes in flight to one peer. Its socket buffer is unknown: start with what the usual 208 KiB
  // hold (payload counts about double there), grow while nothing is lost, up to what 4 MiB hold.
  std::uint32_t initial_window = 64 * 1024;
  std::uint32_t max_window = 1024 * 1024;
  std::uint32_t min_window = 16 * 1024;
  // Bytes that this device asks for with READs at one time: what its own socket buffer holds.
  std::uint32_t read_window = 256 * 1024;

  // A timer of a few microseconds cannot be kept in user space: a peer's thread may not run for
  // milliseconds. Hardware has such a floor too.
  Duration min_ack_timeout = std::chrono::milliseconds(4);
  // Each retry waits twice as long as the one before, up to this and to four times what was asked
  // for (IBTA 9.7.6.1.3 allows that): an overloaded machine may let a peer wait for half a second.
  Duration max_stretched_ack_timeout = std::chrono::milliseconds(500);
  // When an answer is late by far more than the round trip, one packet is sent again to find out.
  Duration min_probe_delay = std::chrono::microseconds(500);
  Duration initial_probe_delay = std::chrono::milliseconds(10);
  Duration max_probe_delay = std::chrono::seconds(2);

  // How often the peer of a connection that rdma_cm made is asked whether it lives, and how many
  // questions may stay unanswered. Zero: it is not asked.
  Duration cm_probe_interval{};
  std::uint32_t max_cm_probes = 4;

  CongestionOptions congestion;

  // Packets that one queue pair sends before another gets its turn: enough for a full batch.
  std::uint32_t transmit_quantum = 32;
};

}  // namespace urxe::emulator
