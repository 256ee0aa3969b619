// What tests share that give every field of a command wrong values, and tell what comes of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>

#include <fmt/core.h>

namespace urxe::test {

inline constexpr std::array<std::uint32_t, 5> kWrong{0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
inline constexpr std::size_t kWord = sizeof(std::uint32_t);
inline constexpr int kErrnos = 134;

// Of 0 or a negative errno.
inline std::string error_name(int result) { return result == 0 ? "ok" : strerrorname_np(-result); }

// "EINVAL 1 2; ok 0"
inline std::string by_outcome(const std::map<std::string, std::string>& names) {
  std::string text;
  for (const auto& [outcome, values] : names) {
    text += fmt::format("{}{}{}", text.empty() ? "" : "; ", outcome, values);
  }
  return text;
}

}  // namespace urxe::test
