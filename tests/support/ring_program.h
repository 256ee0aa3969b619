// The program's side of the rings, as librxe behaves: it learns the sizes from the header, moves
// its own index with release order, and takes the indexes as they stand.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "verbs/abi/rxe_abi.h"

namespace urxe::test {

class RingProgram {
 public:
  explicit RingProgram(std::span<std::byte> ring) : bytes_(ring) {}

  [[nodiscard]] rxe_queue_buf& header() const {
    return *reinterpret_cast<rxe_queue_buf*>(bytes_.data());
  }
  [[nodiscard]] std::atomic_ref<__u32> producer() const {
    return std::atomic_ref(header().producer_index);
  }
  [[nodiscard]] std::atomic_ref<__u32> consumer() const {
    return std::atomic_ref(header().consumer_index);
  }
  [[nodiscard]] std::byte* element(std::uint32_t index) const {
    return bytes_.data() + offsetof(rxe_queue_buf, data) +
           (std::size_t{index} << header().log2_elem_size);
  }
  [[nodiscard]] std::uint32_t next(std::uint32_t index) const {
    return (index + 1) & header().index_mask;
  }

 private:
  std::span<std::byte> bytes_;
};

// Posts to a send or a receive ring.
class RingPoster : public RingProgram {
 public:
  using RingProgram::RingProgram;

  [[nodiscard]] bool full() const {
    return consumer().load(std::memory_order_acquire) ==
           next(producer().load(std::memory_order_relaxed));
  }
  // `fill` gets the element. False if the ring is full.
  template <typename Fill>
  bool post_with(Fill fill) {
    if (full()) return false;
    const std::uint32_t index = producer().load(std::memory_order_relaxed);
    fill(element(index));
    producer().store(next(index), std::memory_order_release);
    return true;
  }
  // A whole request: the fixed part and what follows it.
  template <typename Wqe>
  bool post(const Wqe& wqe, std::span<const std::byte> data = {}) {
    return post_with([&](std::byte* to) {
      std::memcpy(to, &wqe, sizeof(wqe));
      if (!data.empty()) std::memcpy(to + sizeof(wqe), data.data(), data.size());
    });
  }
  bool post_receive(std::uint64_t wr_id, const std::vector<rxe_sge>& list = {}) {
    rxe_recv_wqe wqe{};
    wqe.wr_id = wr_id;
    wqe.dma.num_sge = static_cast<__u32>(list.size());
    for (const rxe_sge& sge : list) wqe.dma.length += sge.length;
    return post(wqe, std::as_bytes(std::span(list)));
  }
};

class RingPoller : public RingProgram {
 public:
  using RingProgram::RingProgram;

  std::optional<ib_uverbs_wc> poll() {
    const std::uint32_t index = consumer().load(std::memory_order_relaxed);
    if (producer().load(std::memory_order_acquire) == index) return std::nullopt;
    ib_uverbs_wc wc;
    std::memcpy(&wc, element(index), sizeof(wc));
    consumer().store(next(index), std::memory_order_release);
    return wc;
  }
};

}  // namespace urxe::test
