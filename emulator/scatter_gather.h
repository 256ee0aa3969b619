// Moves message bytes between packets and scatter/gather lists.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "emulator/memory.h"
#include "emulator/work.h"

namespace urxe::emulator {

// Why a local scatter/gather list could not be used, and where.
struct LocalFault {
  MemoryFault fault;
  Sge sge;  // the element, as it stood when it was read
};

// A position in a scatter/gather list. The list is the caller's at each call, because it may live
// in a ring; its elements are read anew each time.
class SgePosition {
 public:
  void rewind() { *this = SgePosition{}; }
  // Goes to `offset` from the beginning of the list (its end, if the list is shorter).
  void seek(std::span<const Sge> list, std::uint64_t offset);

  // What stands between a list and memory.
  struct Memory {
    const KeyTable& keys;
    ProgramMemory& program;
    const ProtectionDomain& pd;
  };

  // Copies from the list to `to`. A list that ends too early is a fault too (out_of_bounds).
  std::optional<LocalFault> gather(std::span<const Sge> list, const Memory& memory,
                                   std::span<std::uint8_t> to);
  // Copies `from` into the list.
  std::optional<LocalFault> scatter(std::span<const Sge> list, const Memory& memory,
                                    std::span<const std::uint8_t> from);

 private:
  // Calls `move(address, offset, count)` for each piece of `size` bytes of the list.
  template <typename Move>
  std::optional<LocalFault> for_each_piece(std::span<const Sge> list, const Memory& memory,
                                           std::size_t size, Access needs, Move move);

  std::uint32_t index_ = 0;
  std::uint32_t offset_ = 0;  // within the element
};

// Checks that a list may be used as a whole: each key, range and permission.
[[nodiscard]] std::optional<LocalFault> check_list(std::span<const Sge> list, const KeyTable& keys,
                                                   const ProtectionDomain& pd, Access needs);

}  // namespace urxe::emulator
