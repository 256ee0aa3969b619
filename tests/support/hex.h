// Bytes as text, for golden files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/wire/bytes.h"

namespace urxe::test {

[[nodiscard]] std::string to_hex(wire::Bytes bytes);
// Takes digits of either case, spaces between them. Nothing if there is anything else.
[[nodiscard]] std::optional<std::vector<std::uint8_t>> from_hex(std::string_view text);

}  // namespace urxe::test
