// The memory that a captured responder served, as far as the capture tells.
#pragma once

#include <cstdint>
#include <map>

#include "tests/golden/replay/conversation.h"

namespace urxe::replay {

struct Range {
  std::uint64_t start = ~std::uint64_t{0};
  std::uint64_t end = 0;
};
struct MemoryImage {
  // What requests were about that were not refused, by key.
  std::map<wire::RKey, Range> ranges;
  // What stood there before the first request, where an answer tells it, by address.
  std::map<std::uint64_t, std::uint8_t> before;
};
[[nodiscard]] MemoryImage image_of(const Conversation& conversation);

}  // namespace urxe::replay
