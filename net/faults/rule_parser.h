// Fault rules as people type them. docs/faults.md has the language.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "net/faults/rule.h"

namespace urxe::net {

// Where a text stops being rules, and what could have stood there.
struct RuleError {
  std::size_t position = 0;  // offset into the text
  std::string expected;
};

// A sentence with the position, and the text with a mark under it.
[[nodiscard]] std::string describe(const RuleError& error, std::string_view text);

// Takes any number of rules, separated by semicolons or line ends; '#' starts a comment.
[[nodiscard]] tl::expected<std::vector<Rule>, RuleError> parse_rules(std::string_view text);

}  // namespace urxe::net
