#include "verbs/rings/ring.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <limits>

namespace urxe::verbs {
namespace {

constexpr std::uint64_t kCacheLine = 64;
constexpr std::uint64_t kLargest = std::numeric_limits<std::uint32_t>::max();

}  // namespace

tl::expected<Ring, int> Ring::create(RingMemory& memory, std::uint32_t elements,
                                     std::uint64_t element_size) {
  if (element_size > kLargest) return tl::unexpected(ENOMEM);
  const std::uint64_t stride = std::bit_ceil(std::max(element_size, kCacheLine));
  const std::uint64_t slots = std::bit_ceil(std::uint64_t{elements} + 1);
  if (slots > kLargest / stride) return tl::unexpected(ENOMEM);
  auto area = memory.allocate(sizeof(rxe_queue_buf) + slots * stride);
  if (!area) return tl::unexpected(area.error());
  return Ring(std::move(*area), static_cast<std::uint32_t>(slots - 1),
              static_cast<std::uint32_t>(std::countr_zero(stride)));
}

Ring::Ring(std::unique_ptr<RingArea> area, std::uint32_t mask, std::uint32_t log2_element_size)
    : area_(std::move(area)), mask_(mask), log2_element_size_(log2_element_size) {
  header().log2_elem_size = log2_element_size_;
  header().index_mask = mask_;
}

}  // namespace urxe::verbs
