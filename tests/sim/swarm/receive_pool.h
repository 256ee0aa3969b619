// The receives of one queue: slots of one area of memory that are lent to the device and come back
// with completions.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "tests/support/work_doubles.h"

namespace urxe::swarm {

struct Area;

struct ReceivePool {
  struct Slot {
    bool lent = false;
    bool bad = false;  // with a key that opens nothing
  };

  [[nodiscard]] std::uint64_t address_of(std::size_t slot) const {
    return start + slot * slot_size;
  }

  Area* area = nullptr;  // where they are
  std::uint64_t start = 0;
  std::size_t slot_size = 0;
  std::uint32_t key = 0;
  bool shared = false;
  bool had_bad = false;   // a bad receive was posted, ever
  bool had_hole = false;  // some of its memory was taken away, ever
  test::ReceiveDouble source;
  std::vector<Slot> slots;
  std::deque<std::size_t> order;  // as they were posted
};

}  // namespace urxe::swarm
