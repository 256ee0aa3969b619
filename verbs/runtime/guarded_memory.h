// The program's own memory, reached in such a way that a page which is not there (any more) makes
// the call fail instead of ending the program.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "emulator/work.h"

namespace urxe::verbs {

// Thread-safe: holds nothing.
class GuardedMemory final : public emulator::ProgramMemory {
 public:
  bool read(std::uint64_t from, std::span<std::uint8_t> to) override;
  bool write(std::uint64_t to, std::span<const std::uint8_t> from) override;
  std::optional<std::uint64_t> compare_swap(std::uint64_t address, std::uint64_t compare,
                                            std::uint64_t swap) override;
  std::optional<std::uint64_t> fetch_add(std::uint64_t address, std::uint64_t add) override;
  bool store(std::uint64_t address, std::uint64_t value) override;
};

}  // namespace urxe::verbs
