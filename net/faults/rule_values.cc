#include "net/faults/rule_values.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "net/wire/numbers.h"

namespace urxe::net {
namespace {

template <typename T, typename... How>
std::optional<T> parse_whole(std::string_view text, How... how) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value, how...);
  if (error != std::errc{} || stopped != end || text.empty()) return std::nullopt;
  return value;
}

std::optional<double> parse_fraction(std::string_view text) {
  const auto value = parse_whole<double>(text, std::chars_format::fixed);
  if (!value || !std::isfinite(*value) || *value < 0) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::uint64_t> parse_number(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) {
    return parse_whole<std::uint64_t>(text.substr(2), 16);
  }
  return parse_whole<std::uint64_t>(text, 10);
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  if (text.empty()) return std::nullopt;
  unsigned shift = 0;
  switch (text.back()) {
    case 'K':
      shift = 10;
      break;
    case 'M':
      shift = 20;
      break;
    case 'G':
      shift = 30;
      break;
    default:
      return parse_number(text);
  }
  const auto number = parse_number(text.substr(0, text.size() - 1));
  if (!number || *number > std::numeric_limits<std::uint64_t>::max() >> shift) return std::nullopt;
  return *number << shift;
}

std::optional<Duration> parse_duration(std::string_view text) {
  struct Unit {
    std::string_view name;
    double nanoseconds;
  };
  // "s" last: the others end in it.
  constexpr std::array kUnits{Unit{"ns", 1}, Unit{"us", 1e3}, Unit{"ms", 1e6}, Unit{"s", 1e9}};
  constexpr double kLongest = 1e18;  // 31 years
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    const auto number = parse_fraction(text.substr(0, text.size() - unit.name.size()));
    if (!number || *number * unit.nanoseconds > kLongest) return std::nullopt;
    return Duration(std::llround(*number * unit.nanoseconds));
  }
  return std::nullopt;
}

std::optional<double> parse_probability(std::string_view text) {
  const auto value = parse_fraction(text);
  if (!value || *value > 1) return std::nullopt;
  return value;
}

std::optional<NumberRange> parse_range(std::string_view text, std::uint32_t limit) {
  constexpr std::string_view kTo = "..";
  const std::size_t to = text.find(kTo);
  const auto first = parse_number(text.substr(0, to));
  const auto last =
      to == std::string_view::npos ? first : parse_number(text.substr(to + kTo.size()));
  if (!first || !last || *first > *last || *last > limit) return std::nullopt;
  return NumberRange{static_cast<std::uint32_t>(*first), static_cast<std::uint32_t>(*last)};
}

std::optional<PsnRange> parse_psns(std::string_view text) {
  PsnRange psns{.range = {}, .relative = text.starts_with('+')};
  std::string plain(text);
  if (psns.relative) {
    plain.erase(0, 1);
    const std::size_t second = plain.find("..+");
    if (second != std::string::npos) plain.erase(second + 2, 1);
    if (plain.find("..") != std::string::npos && second == std::string::npos) return std::nullopt;
  }
  const auto range = parse_range(plain, wire::Psn::kMask);
  if (!range) return std::nullopt;
  psns.range = *range;
  return psns;
}

}  // namespace urxe::net
