// Values in fault rules: numbers, sizes, times. Each parser takes the whole text or nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "net/faults/rule.h"
#include "net/wire/time.h"

namespace urxe::net {

// Decimal, or hexadecimal after 0x.
[[nodiscard]] std::optional<std::uint64_t> parse_number(std::string_view text);
// A number, or one with K, M or G behind it (powers of 1024).
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);
// A decimal number, fractions allowed, and a unit: ns, us, ms or s.
[[nodiscard]] std::optional<Duration> parse_duration(std::string_view text);
// From 0 to 1.
[[nodiscard]] std::optional<double> parse_probability(std::string_view text);
// "5" or "5..8", each at most `limit`.
[[nodiscard]] std::optional<NumberRange> parse_range(std::string_view text, std::uint32_t limit);
// The same, or with plus signs for relative ones: "+5", "+5..+8".
[[nodiscard]] std::optional<PsnRange> parse_psns(std::string_view text);

}  // namespace urxe::net
