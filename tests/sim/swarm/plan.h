// What one seed of the swarm does: devices, connections, faults and steps, all drawn before the run
// so that a run that fails can be made smaller by leaving parts out.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/options.h"
#include "emulator/types.h"
#include "net/sim/link.h"
#include "net/wire/time.h"

namespace urxe::swarm {

struct DevicePlan {
  emulator::DeviceOptions options;
  net::LinkSpec link;
  std::size_t receive_buffer = 0;  // bytes
  Duration time_per_packet{};
};

// How an end registers its memory.
enum class Paging : std::uint8_t {
  pinned,
  on_demand,  // each piece with on-demand paging
  implicit,   // each by a region that is the whole address space
};

struct EndPlan {
  std::uint8_t device = 0;
  bool shares_receives = false;
  bool signal_all = false;
  emulator::Access access;
  std::uint32_t first_psn = 0;
  std::uint8_t max_dest_read_atomic = 0;
  Paging paging{};
};

// Two queue pairs: connected to each other, or, if they are UD, one of those that talk to all.
struct ConnectionPlan {
  emulator::QpType type{};
  emulator::Mtu mtu{};
  std::array<EndPlan, 2> ends;
  std::uint8_t timeout = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry = 0;
  std::uint8_t min_rnr_timer = 0;
  std::uint8_t max_read_atomic = 0;
  bool draws_placements = false;  // ATOMIC WRITE and FLUSH
};

enum class StepKind : std::uint8_t {
  send,        // posts requests
  receive,     // posts receives
  bind,        // binds the end's window
  invalidate,  // ends that
  change,      // deregisters a region, or registers it again
  reconnect,   // resets both ends and connects them anew
  reset,       // resets one end
  fail,        // puts one end in error
  recreate,    // destroys both ends and makes new ones
  drain,       // SQD, and back
  page,        // takes pages of the end's memory away, or brings them back
  group,       // attaches an end to a multicast group, or detaches it
};
[[nodiscard]] const char* to_string(StepKind kind);

struct Step {
  StepKind kind{};
  std::uint8_t end = 0;    // connection * 2 + end
  std::uint64_t dice = 0;  // whatever else is random about it
  Duration pause{};        // after it
};

// What a seed may stand for. Seeds that failed once must stay what they were, so what was added
// later can be left out.
enum class Draws : std::uint8_t {
  first,  // without ATOMIC WRITE, FLUSH, on-demand paging, multicast
  all,
};

struct FaultPlan {
  std::uint8_t device = 0;
  std::string rule;
};

struct Plan {
  std::uint64_t seed = 0;
  Draws draws{};
  std::vector<DevicePlan> devices;
  std::vector<ConnectionPlan> connections;
  std::vector<FaultPlan> faults;
  std::vector<Step> steps;
  // Packets are damaged and get a right ICRC: what they then say is believed, so only the
  // checkers of safety count.
  bool hostile = false;
  // Nothing is lost and nobody is slow: no request may run out of retries.
  bool calm = false;

  // Of the plan as drawn: which steps and faults are still in (for the command that replays it).
  std::vector<std::size_t> step_numbers;
  std::vector<std::size_t> fault_numbers;
};

inline constexpr std::size_t kUsualSteps = 60;

[[nodiscard]] Plan draw_plan(std::uint64_t seed, std::size_t steps = kUsualSteps,
                             Draws draws = Draws::all);
// The plan with these of its steps and faults only. They are counted as they stand in `plan`, which
// may be a part itself; `step_numbers` and `fault_numbers` stay those of the plan as drawn.
[[nodiscard]] Plan part_of(const Plan& plan, const std::vector<std::size_t>& steps,
                           const std::vector<std::size_t>& faults);
[[nodiscard]] std::string to_string(const Plan& plan);

}  // namespace urxe::swarm
