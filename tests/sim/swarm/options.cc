#include "tests/sim/swarm/options.h"

#include <charconv>
#include <functional>
#include <map>

#include <fmt/format.h>

namespace urxe::swarm {

const char* const kUsage =
    "Runs seeds of the swarm: devices in a simulated network with faults, watched by checkers.\n"
    "\n"
    "  urxe-sim --seed N [--steps M]          one seed\n"
    "  urxe-sim --from N --count M            seeds N to N + M - 1\n"
    "  urxe-sim --seeds FILE                  those in a file, one a line, '#' comments\n"
    "\n"
    "  --first-draws                          seeds as they were before ATOMIC WRITE, FLUSH, "
    "on-demand\n"
    "                                         paging and multicast were drawn\n"
    "  --only-steps LIST, --only-faults LIST  parts of a seed, as in 0-3,7\n"
    "  --plan                                 shows what a seed does\n"
    "  --pcap FILE                            writes the packets of a seed\n"
    "  --jobs N                               processes\n"
    "  --directory PATH                       where captures of failures go\n"
    "  --no-shrink                            leaves failures as they are\n";

namespace {

template <typename T>
bool parse_number(const std::string& text, T& number) {
  const bool hex = text.starts_with("0x");
  const char* first = text.data() + (hex ? 2 : 0);
  const auto result = std::from_chars(first, text.data() + text.size(), number, hex ? 16 : 10);
  return result.ec == std::errc{} && result.ptr == text.data() + text.size() &&
         first != text.data() + text.size();
}

using Setter = std::function<bool(Options&, const std::string&)>;

template <typename T>
Setter number(T Options::*member) {
  return [member](Options& options, const std::string& text) {
    return parse_number(text, options.*member);
  };
}

Setter text(std::string Options::*member) {
  return [member](Options& options, const std::string& value) {
    options.*member = value;
    return !value.empty();
  };
}

Setter list(std::optional<std::vector<std::size_t>> Options::*member) {
  return [member](Options& options, const std::string& value) {
    options.*member = parse_numbers(value);
    return (options.*member).has_value();
  };
}

const std::map<std::string, Setter>& setters() {
  static const std::map<std::string, Setter> kSetters{
      {"--seed",
       [](Options& options, const std::string& value) {
         return parse_number(value, options.seed.emplace());
       }},
      {"--from", number(&Options::from)},
      {"--count", number(&Options::count)},
      {"--seeds", text(&Options::seeds_file)},
      {"--steps", number(&Options::steps)},
      {"--only-steps", list(&Options::only_steps)},
      {"--only-faults", list(&Options::only_faults)},
      {"--pcap", text(&Options::pcap)},
      {"--directory", text(&Options::directory)},
      {"--jobs", number(&Options::jobs)},
  };
  return kSetters;
}

const std::map<std::string, std::function<void(Options&)>>& switches() {
  static const std::map<std::string, std::function<void(Options&)>> kSwitches{
      {"--no-shrink", [](Options& options) { options.shrinks = false; }},
      {"--first-draws", [](Options& options) { options.draws = Draws::first; }},
      {"--plan", [](Options& options) { options.shows_plan = true; }},
      {"--help", [](Options& options) { options.help = true; }},
  };
  return kSwitches;
}

}  // namespace

std::optional<std::vector<std::size_t>> parse_numbers(const std::string& text) {
  constexpr std::size_t kMost = 1'000'000;
  std::vector<std::size_t> numbers;
  if (text == "none") return numbers;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string range = text.substr(at, comma - at);
    const std::size_t dash = std::min(range.find('-'), range.size());
    std::size_t first = 0;
    if (!parse_number(range.substr(0, dash), first)) return std::nullopt;
    std::size_t last = first;
    if (dash < range.size() && !parse_number(range.substr(dash + 1), last)) return std::nullopt;
    if (last < first || last > kMost) return std::nullopt;
    for (std::size_t i = first; i <= last; ++i) numbers.push_back(i);
    at = comma + 1;
  }
  return numbers;
}

std::string format_numbers(const std::vector<std::size_t>& numbers) {
  if (numbers.empty()) return "none";
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    text += text.empty() ? "" : ",";
    text +=
        end == i ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[end]);
    i = end + 1;
  }
  return text;
}

tl::expected<Options, std::string> parse_options(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    if (const auto found = switches().find(name); found != switches().end()) {
      found->second(options);
      continue;
    }
    const auto setter = setters().find(name);
    if (setter == setters().end()) return tl::unexpected(fmt::format("{}: unknown option", name));
    if (i + 1 == arguments.size()) return tl::unexpected(fmt::format("{} needs a value", name));
    const std::string& value = arguments[++i];
    if (!setter->second(options, value)) {
      return tl::unexpected(fmt::format("{} cannot be {}", name, value));
    }
  }
  if (options.jobs == 0) options.jobs = 1;
  const bool something = options.seed || options.count > 0 || !options.seeds_file.empty();
  if (!something && !options.help) {
    return tl::unexpected(std::string("say which: --seed, --from and --count, or --seeds"));
  }
  return options;
}

}  // namespace urxe::swarm
