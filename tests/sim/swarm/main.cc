// urxe-sim: the swarm. docs/simulator.md has what it draws and what it checks.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>

#include <fmt/core.h>

#include "tests/sim/swarm/capture.h"
#include "tests/sim/swarm/options.h"
#include "tests/sim/swarm/runner.h"
#include "tests/sim/swarm/shrink.h"
#include "tests/sim/swarm/world.h"

namespace urxe::swarm {
namespace {

std::string replay_command(const Plan& plan, std::size_t steps) {
  std::string command = fmt::format("urxe-sim --seed {}", plan.seed);
  if (plan.draws == Draws::first) command += " --first-draws";
  if (steps != kUsualSteps) command += fmt::format(" --steps {}", steps);
  return command + fmt::format(" --only-steps {} --only-faults {}",
                               format_numbers(plan.step_numbers),
                               format_numbers(plan.fault_numbers));
}

void write_capture(const Plan& plan, const std::string& path) {
  Capture capture(path);
  if (!capture.ok()) {
    fmt::print("{} cannot be written\n", path);
    return;
  }
  fmt::print("packets: {}\n", path);
  std::fflush(stdout);
  static_cast<void>(try_plan(plan, &capture));
}

// The seed first, then how to see it again, then what it is about.
void report_failure(std::uint64_t seed, const Options& options) {
  Plan plan = draw_plan(seed, options.steps, options.draws);
  if (options.only_steps || options.only_faults) {
    plan = part_of(plan, options.only_steps.value_or(plan.step_numbers),
                   options.only_faults.value_or(plan.fault_numbers));
  }
  fmt::print("seed {} FAILED: {}\n", seed, try_plan(plan));
  if (options.shrinks) {
    const std::size_t steps = plan.steps.size();
    plan = shrink(plan);
    fmt::print("shrunk from {} steps to {}: {}\n", steps, plan.steps.size(), try_plan(plan));
  }
  fmt::print("replay: {}\n{}\n", replay_command(plan, options.steps), to_string(plan));
  if (options.pcap.empty()) {
    write_capture(plan, fmt::format("{}/urxe-sim-{}.pcap", options.directory, seed));
  }
}

int run_one(const Options& options) {
  Plan plan = draw_plan(*options.seed, options.steps, options.draws);
  plan = part_of(plan, options.only_steps.value_or(plan.step_numbers),
                 options.only_faults.value_or(plan.fault_numbers));
  if (options.shows_plan) fmt::print("{}\n", to_string(plan));
  if (!options.pcap.empty()) write_capture(plan, options.pcap);
  if (!try_plan(plan).empty()) {
    report_failure(plan.seed, options);
    return 1;
  }
  const Verdict verdict = play(plan);
  fmt::print("seed {}: nothing found; {} packets, {} messages, {} packets sent again\n", plan.seed,
             verdict.packets, verdict.messages, verdict.retransmissions);
  return 0;
}

std::optional<std::vector<std::uint64_t>> seeds_of(const Options& options) {
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t i = 0; i < options.count; ++i) seeds.push_back(options.from + i);
  if (options.seeds_file.empty()) return seeds;
  std::ifstream file(options.seeds_file);
  if (!file) return std::nullopt;
  for (std::string line; std::getline(file, line);) {
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    seeds.push_back(std::stoull(line, nullptr, 0));
  }
  return seeds;
}

int run_many(const Options& options) {
  const auto seeds = seeds_of(options);
  if (!seeds) {
    fmt::print("{} cannot be read\n", options.seeds_file);
    return 2;
  }
  const auto started = std::chrono::steady_clock::now();
  const Totals totals = run_seeds(*seeds, options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  for (const std::uint64_t seed : totals.failed) report_failure(seed, options);
  fmt::print(
      "{} seeds, {} failed; {} packets, {} messages, {} packets sent again, {} ATOMIC WRITEs and "
      "FLUSHes, {} multicast deliveries, {} accesses to memory that was gone; {:.0f} seeds per "
      "minute\n",
      totals.seeds, totals.failed.size(), totals.packets, totals.messages, totals.retransmissions,
      totals.placements, totals.multicasts, totals.refusals,
      static_cast<double>(totals.seeds) * 60 / std::max(took.count(), 1e-3));
  return totals.failed.empty() ? 0 : 1;
}

}  // namespace
}  // namespace urxe::swarm

int main(int argc, char** argv) {
  using namespace urxe::swarm;
  const auto options = parse_options({argv + 1, argv + argc});
  if (!options) {
    fmt::print(stderr, "urxe-sim: {}\n{}", options.error(), kUsage);
    return 2;
  }
  if (options->help) {
    fmt::print("{}", kUsage);
    return 0;
  }
  return options->seed ? run_one(*options) : run_many(*options);
}
