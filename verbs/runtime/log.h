// Sentences for people: what went wrong, with the numbers, on standard error or into a file.
#pragma once

#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace urxe::verbs {

// `info` explains every refused command and failed work request; `error` only what keeps a device
// from working at all. docs/environment.md.
enum class LogLevel : unsigned char { off, error, info };

// Takes the value of URXE_LOG: a level, or LEVEL:FILE. The error is a sentence.
[[nodiscard]] tl::expected<void, std::string> set_up_log(std::string_view value);

[[nodiscard]] bool logs(LogLevel level);
// One line, written at once, so that lines of several processes do not mix.
void log(LogLevel level, std::string_view sentence);

}  // namespace urxe::verbs
