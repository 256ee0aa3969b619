// A queue in a power-of-two array that grows when it must. Unlike std::deque it holds nothing while
// it is empty, which counts with ten thousand queue pairs.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/assert.h"

namespace urxe::emulator {

template <typename T>
class Ring {
 public:
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  // Index 0 is the oldest element.
  [[nodiscard]] T& operator[](std::uint32_t index) { return slots_[(head_ + index) & mask()]; }
  [[nodiscard]] const T& operator[](std::uint32_t index) const {
    return slots_[(head_ + index) & mask()];
  }
  [[nodiscard]] T& front() { return (*this)[0]; }
  [[nodiscard]] const T& front() const { return (*this)[0]; }
  [[nodiscard]] T& back() { return (*this)[size_ - 1]; }

  // Adds a slot at the end and returns it; it holds whatever was left there.
  T& push_slot() {
    if (size_ == slots_.size()) grow();
    ++size_;
    return back();
  }
  void push(T value) { push_slot() = std::move(value); }
  void pop_front() {
    URXE_ASSERT(size_ > 0);
    ++head_;
    --size_;
  }
  void pop_back() {
    URXE_ASSERT(size_ > 0);
    --size_;
  }
  void clear() { size_ = 0; }
  // Empties the queue and gives the memory back.
  void release() { *this = Ring{}; }

 private:
  [[nodiscard]] std::uint32_t mask() const { return static_cast<std::uint32_t>(slots_.size()) - 1; }
  void grow() {
    std::vector<T> bigger(slots_.empty() ? 4 : 2 * slots_.size());
    for (std::uint32_t i = 0; i < size_; ++i) bigger[i] = std::move((*this)[i]);
    slots_ = std::move(bigger);
    head_ = 0;
  }

  std::vector<T> slots_;
  std::uint32_t head_ = 0;
  std::uint32_t size_ = 0;
};

}  // namespace urxe::emulator
