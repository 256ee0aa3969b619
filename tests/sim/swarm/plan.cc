#include "tests/sim/swarm/plan.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include <fmt/format.h>

#include "net/random.h"

namespace urxe::swarm {

using namespace emulator;
using namespace std::chrono_literals;
using net::Random;

namespace {

constexpr Access kAllAccess = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;

template <typename T, std::size_t N>
T pick(Random& random, const std::array<T, N>& choices) {
  return choices.at(random.below(N));
}

Duration microseconds(Random& random, std::uint64_t low, std::uint64_t high) {
  return std::chrono::microseconds(random.between(low, high));
}

DevicePlan draw_device(Random& random, bool calm) {
  DevicePlan device;
  DeviceOptions& options = device.options;
  options.port_mtu = Mtu::bytes4096;
  options.seed = static_cast<std::uint32_t>(random.next());
  options.min_window = pick(random, std::array{2048U, 16384U});
  options.initial_window = options.min_window * pick(random, std::array{1U, 4U});
  options.max_window = options.initial_window * pick(random, std::array{1U, 16U});
  options.read_window = pick(random, std::array{2048U, 16384U, 262144U});
  options.transmit_quantum = pick(random, std::array{1U, 4U, 32U});
  options.min_probe_delay = microseconds(random, 50, 1000);
  options.initial_probe_delay = microseconds(random, 200, 10000);
  options.max_probe_delay = 20ms;
  options.min_ack_timeout = calm ? 4ms : microseconds(random, 200, 4000);
  device.link.latency = microseconds(random, 1, 50);
  if (random.chance(0.5)) device.link.jitter = microseconds(random, 1, 20);
  device.receive_buffer = calm ? 4U << 20 : pick(random, std::array{16384U, 65536U, 4U << 20});
  if (!calm && random.chance(0.2)) device.link.queue_limit = 20000;
  if (random.chance(0.3)) device.time_per_packet = std::chrono::nanoseconds(random.below(3000));
  return device;
}

std::uint32_t draw_psn(Random& random) {
  constexpr std::uint32_t kEnd = 0xFFFFFF;
  constexpr std::uint32_t kMiddle = 0x7FFFFF;
  if (random.chance(0.5)) return static_cast<std::uint32_t>(kEnd - random.below(40));
  if (random.chance(0.5)) return static_cast<std::uint32_t>(kMiddle - random.below(20));
  return static_cast<std::uint32_t>(random.below(kEnd));
}

ConnectionPlan draw_connection(Random& random, std::size_t devices, bool calm) {
  ConnectionPlan plan;
  plan.type = random.chance(0.7) ? QpType::rc : random.chance(0.5) ? QpType::uc : QpType::ud;
  plan.mtu = pick(random, std::array{Mtu::bytes256, Mtu::bytes256, Mtu::bytes512, Mtu::bytes1024,
                                     Mtu::bytes4096});
  const auto bounded = [&](double usual, std::uint8_t value, std::uint8_t limit) {
    return random.chance(usual) ? value : static_cast<std::uint8_t>(random.below(limit + 1));
  };
  plan.timeout = random.chance(0.05) ? std::uint8_t{0}
                                     : static_cast<std::uint8_t>(random.between(calm ? 10 : 6, 12));
  plan.retry_count = bounded(0.7, 7, 7);
  plan.rnr_retry = bounded(0.7, 7, 7);
  plan.min_rnr_timer = static_cast<std::uint8_t>(random.between(1, 12));
  plan.max_read_atomic = static_cast<std::uint8_t>(random.between(1, 8));
  for (EndPlan& end : plan.ends) {
    end.device = static_cast<std::uint8_t>(random.below(devices));
    end.shares_receives = random.chance(0.3);
    end.signal_all = random.chance(0.5);
    end.access = kAllAccess;
    if (random.chance(0.1)) end.access = kLocalWrite | kRemoteWrite;
    end.first_psn = draw_psn(random);
    end.max_dest_read_atomic = random.chance(0.95) ? plan.max_read_atomic : std::uint8_t{0};
  }
  if (plan.ends[0].device == plan.ends[1].device) {
    plan.ends[1].device = static_cast<std::uint8_t>((plan.ends[0].device + 1) % devices);
  }
  return plan;
}

std::string draw_rule(Random& random, bool hostile) {
  const double p = std::array{0.005, 0.02, 0.05, 0.15}.at(random.below(4));
  const std::uint64_t n = random.between(1, 5);
  std::string rule;
  switch (random.below(hostile ? 10 : 9)) {
    case 0:
    case 1:
      rule = fmt::format("drop p={}", p);
      break;
    case 2:
      rule = fmt::format("duplicate p={} copies={}", p, random.between(1, 3));
      break;
    case 3:
      rule = fmt::format("delay p={} by={}us jitter={}us", p, random.between(1, 3000),
                         random.below(2000));
      break;
    case 4:
      rule = fmt::format("reorder p={} packets={} within={}us", p, n, random.between(10, 2000));
      break;
    case 5:
      rule = fmt::format("corrupt p={}", p);
      break;
    case 6:
      rule = fmt::format("drop dir={} mask={:#x}", random.chance(0.5) ? "tx" : "rx",
                         random.next() & random.next());
      break;
    case 7:
      rule = fmt::format("drop opcode={} every={}",
                         pick(random, std::array{"ACK", "NAK", "RNR", "READ", "READ_RESPONSE",
                                                 "ATOMIC_ACKNOWLEDGE", "ATOMIC", "SEND", "WRITE"}),
                         n);
      break;
    case 8:
      rule = fmt::format("mark p={}", p);
      break;
    default:
      rule = fmt::format("corrupt p={} icrc=repair", p);
  }
  return rule + fmt::format(" until={}ms", random.between(5, 40));
}

StepKind draw_kind(Random& random) {
  const std::uint64_t roll = random.below(100);
  if (roll < 55) return StepKind::send;
  if (roll < 76) return StepKind::receive;
  if (roll < 81) return StepKind::bind;
  if (roll < 83) return StepKind::invalidate;
  if (roll < 86) return StepKind::change;
  if (roll < 93) return StepKind::reconnect;
  if (roll < 94) return StepKind::reset;
  if (roll < 95) return StepKind::fail;
  if (roll < 97) return StepKind::recreate;
  return StepKind::drain;
}

template <typename T>
std::vector<T> chosen(const std::vector<T>& all, const std::vector<std::size_t>& indexes) {
  std::vector<T> some;
  for (const std::size_t i : indexes) {
    if (i < all.size()) some.push_back(all[i]);
  }
  return some;
}

Duration draw_pause(Random& random) {
  if (random.chance(0.4)) return Duration{};
  if (random.chance(0.9)) return microseconds(random, 0, 200);
  return microseconds(random, 0, 5000);
}

Paging draw_paging(Random& random) {
  if (random.chance(0.6)) return Paging::pinned;
  return random.chance(0.5) ? Paging::on_demand : Paging::implicit;
}

void draw_memory(Random& random, ConnectionPlan& connection) {
  const bool reliable = connection.type == QpType::rc;
  connection.draws_placements = reliable && random.chance(0.6);
  for (EndPlan& end : connection.ends) {
    end.paging = draw_paging(random);
    if (reliable && random.chance(0.9)) end.access |= kFlushGlobal;
  }
}

// Some of the steps that only post become others.
void draw_other_step(Random& random, const Plan& plan, std::size_t datagrams, Step& step) {
  if (step.kind != StepKind::send && step.kind != StepKind::receive) return;
  if (datagrams < plan.connections.size() && random.chance(0.3)) {
    step.end = static_cast<std::uint8_t>(2 * datagrams + random.below(2));
  }
  const std::size_t end = step.end;
  const ConnectionPlan& connection = plan.connections[end / 2];
  if (connection.type == QpType::ud && random.chance(0.25)) {
    step.kind = StepKind::group;
  } else if (connection.ends.at(end % 2).paging != Paging::pinned && random.chance(0.1)) {
    step.kind = StepKind::page;
  }
}

// What came later has a source of its own, so that the rest of a seed stays what it was.
void draw_rest(Plan& plan) {
  constexpr std::uint64_t kApart = 0x6A09E667F3BCC908;
  Random random(plan.seed ^ kApart);
  for (ConnectionPlan& connection : plan.connections) draw_memory(random, connection);
  const std::size_t datagrams = plan.connections.size();
  if (random.chance(0.2)) {
    plan.connections.push_back(draw_connection(random, plan.devices.size(), plan.calm));
    plan.connections.back().type = QpType::ud;
  }
  for (Step& step : plan.steps) draw_other_step(random, plan, datagrams, step);
}

const char* to_string(Paging paging) {
  static constexpr std::array kNames{"pinned", "on demand", "implicit"};
  return kNames.at(static_cast<std::size_t>(paging));
}

}  // namespace

const char* to_string(StepKind kind) {
  static constexpr std::array kNames{"send",     "receive",   "bind",  "invalidate",
                                     "change",   "reconnect", "reset", "fail",
                                     "recreate", "drain",     "page",  "group"};
  return kNames.at(static_cast<std::size_t>(kind));
}

Plan draw_plan(std::uint64_t seed, std::size_t steps, Draws draws) {
  Random random(seed);
  Plan plan{.seed = seed, .draws = draws};
  plan.calm = random.chance(0.15);
  plan.hostile = !plan.calm && random.chance(0.06);
  const std::size_t devices = random.between(2, 5);
  for (std::size_t i = 0; i < devices; ++i) {
    plan.devices.push_back(draw_device(random, plan.calm));
  }
  const std::size_t connections = random.between(1, 5);
  for (std::size_t i = 0; i < connections; ++i) {
    plan.connections.push_back(draw_connection(random, devices, plan.calm));
  }
  const std::size_t faults = plan.calm ? 0 : random.below(2 * devices);
  for (std::size_t i = 0; i < faults; ++i) {
    plan.faults.push_back({.device = static_cast<std::uint8_t>(random.below(devices)),
                           .rule = draw_rule(random, plan.hostile)});
  }
  for (std::size_t i = 0; i < steps; ++i) {
    plan.steps.push_back({.kind = draw_kind(random),
                          .end = static_cast<std::uint8_t>(random.below(2 * connections)),
                          .dice = random.next(),
                          .pause = draw_pause(random)});
  }
  for (DevicePlan& device : plan.devices) {
    device.options.congestion.enabled = random.chance(0.2);
    device.options.congestion.min_rate = 1'000'000'000;
  }
  if (draws == Draws::all) draw_rest(plan);
  plan.step_numbers.resize(plan.steps.size());
  plan.fault_numbers.resize(plan.faults.size());
  std::iota(plan.step_numbers.begin(), plan.step_numbers.end(), 0);
  std::iota(plan.fault_numbers.begin(), plan.fault_numbers.end(), 0);
  return plan;
}

Plan part_of(const Plan& plan, const std::vector<std::size_t>& steps,
             const std::vector<std::size_t>& faults) {
  Plan part = plan;
  part.steps = chosen(plan.steps, steps);
  part.step_numbers = chosen(plan.step_numbers, steps);
  part.faults = chosen(plan.faults, faults);
  part.fault_numbers = chosen(plan.fault_numbers, faults);
  return part;
}

std::string to_string(const Plan& plan) {
  std::string text = fmt::format("{} devices{}{}", plan.devices.size(),
                                 plan.hostile ? ", hostile" : "", plan.calm ? ", calm" : "");
  for (std::size_t i = 0; i < plan.connections.size(); ++i) {
    const ConnectionPlan& c = plan.connections[i];
    text += fmt::format(
        "\n  connection {}: {} {} bytes, devices {} and {}, PSNs {:#x} and {:#x}, timeout {}, "
        "retry_cnt {}, rnr_retry {}, {} READs, memory {} and {}{}",
        i, emulator::to_string(c.type), bytes_of(c.mtu), c.ends[0].device, c.ends[1].device,
        c.ends[0].first_psn, c.ends[1].first_psn, c.timeout, c.retry_count, c.rnr_retry,
        c.max_read_atomic, to_string(c.ends[0].paging), to_string(c.ends[1].paging),
        c.draws_placements ? ", ATOMIC WRITE and FLUSH" : "");
  }
  for (const FaultPlan& fault : plan.faults) {
    text += fmt::format("\n  device {}: {}", fault.device, fault.rule);
  }
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    text += fmt::format("\n  step {}: {} at connection {} end {}, then {} us", plan.step_numbers[i],
                        to_string(step.kind), step.end / 2, step.end % 2,
                        std::chrono::duration_cast<std::chrono::microseconds>(step.pause).count());
  }
  return text;
}

}  // namespace urxe::swarm
