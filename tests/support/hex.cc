#include "tests/support/hex.h"

#include <cctype>

namespace urxe::test {
namespace {

std::optional<unsigned> digit(char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto at = kDigits.find(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<unsigned>(at);
}

}  // namespace

std::string to_hex(wire::Bytes bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0xF];
  }
  return text;
}

std::optional<std::vector<std::uint8_t>> from_hex(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  std::optional<unsigned> high;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0) continue;
    const auto value = digit(c);
    if (!value) return std::nullopt;
    if (high) {
      bytes.push_back(static_cast<std::uint8_t>(*high << 4 | *value));
      high.reset();
    } else {
      high = value;
    }
  }
  if (high) return std::nullopt;
  return bytes;
}

}  // namespace urxe::test
