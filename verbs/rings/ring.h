// What all rings have in common: the header, and elements of one size.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include <tl/expected.hpp>

#include "verbs/abi/rxe_abi.h"
#include "verbs/rings/ring_memory.h"

namespace urxe::verbs {

// A power of two of elements, of which all but one can be in use: the ring is empty when the
// indexes are equal. Sizes are those of the kernel's rxe (drivers/infiniband/sw/rxe/rxe_queue.c).
//
// The program's side is hostile. Its index is masked at each read, the size is ours and never read
// back from the header, and the device's index is ours as well and only copied there. So from
// whatever stands in the memory at most capacity() elements are in use, all within the area.
class Ring {
 public:
  // At least `elements` of at least `element_size` bytes. ENOMEM: more than 4 GiB; or as
  // RingMemory::allocate.
  static tl::expected<Ring, int> create(RingMemory& memory, std::uint32_t elements,
                                        std::uint64_t element_size);

  [[nodiscard]] const RingArea& area() const { return *area_; }
  [[nodiscard]] std::uint32_t capacity() const { return mask_; }
  // How many steps lead from index `from` to `to`: 0 ... capacity().
  [[nodiscard]] std::uint32_t distance(std::uint32_t from, std::uint32_t to) const {
    return (to - from) & mask_;
  }
  [[nodiscard]] std::uint32_t advanced(std::uint32_t index, std::uint32_t by) const {
    return (index + by) & mask_;
  }
  [[nodiscard]] std::byte* element(std::uint32_t index) const {
    return area_->bytes().data() + offsetof(rxe_queue_buf, data) +
           (std::size_t{index & mask_} << log2_element_size_);
  }
  [[nodiscard]] std::size_t element_size() const { return std::size_t{1} << log2_element_size_; }

  // The program's index of a ring that it fills, and of one that it empties. What the program wrote
  // before it moved the index, we see.
  [[nodiscard]] std::uint32_t producer() const { return load(header().producer_index); }
  [[nodiscard]] std::uint32_t consumer() const { return load(header().consumer_index); }
  // The device's. What we wrote or read before, the program may rely on.
  void publish_producer(std::uint32_t index) { store(header().producer_index, index); }
  void publish_consumer(std::uint32_t index) { store(header().consumer_index, index); }

 private:
  Ring(std::unique_ptr<RingArea> area, std::uint32_t mask, std::uint32_t log2_element_size);

  [[nodiscard]] rxe_queue_buf& header() const {
    return *reinterpret_cast<rxe_queue_buf*>(area_->bytes().data());
  }
  [[nodiscard]] std::uint32_t load(__u32& index) const {
    return std::atomic_ref(index).load(std::memory_order_acquire) & mask_;
  }
  // librxe compares indexes as they stand, so they are stored masked.
  void store(__u32& index, std::uint32_t value) {
    std::atomic_ref(index).store(value & mask_, std::memory_order_release);
  }

  std::unique_ptr<RingArea> area_;
  std::uint32_t mask_;
  std::uint32_t log2_element_size_;
};

// A copy of what the program may be changing, for good: the compiler may not read it again later.
template <typename T>
[[nodiscard]] T snapshot(const std::byte* from) {
  T copy;
  std::memcpy(&copy, from, sizeof(copy));
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return copy;
}

}  // namespace urxe::verbs
