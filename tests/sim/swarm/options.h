// urxe-sim's command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "tests/sim/swarm/plan.h"

namespace urxe::swarm {

struct Options {
  std::optional<std::uint64_t> seed;
  std::uint64_t from = 0;
  std::uint64_t count = 0;
  std::string seeds_file;
  std::size_t steps = kUsualSteps;
  Draws draws = Draws::all;
  // Numbers of the steps and faults to keep; all, if not given.
  std::optional<std::vector<std::size_t>> only_steps;
  std::optional<std::vector<std::size_t>> only_faults;
  std::string pcap;
  std::string directory = ".";  // for captures of failures
  unsigned jobs = 1;
  bool shrinks = true;
  bool shows_plan = false;
  bool help = false;
};

extern const char* const kUsage;

// The error is a sentence.
[[nodiscard]] tl::expected<Options, std::string> parse_options(
    const std::vector<std::string>& arguments);

// "0-3,7" and back.
[[nodiscard]] std::optional<std::vector<std::size_t>> parse_numbers(const std::string& text);
[[nodiscard]] std::string format_numbers(const std::vector<std::size_t>& numbers);

}  // namespace urxe::swarm
