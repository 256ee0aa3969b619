// What is tried, one message at a time. Both ends compute the same list from the options.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/compat/checker/memory.h"
#include "tests/compat/checker/options.h"

namespace checker {

// Random numbers that are the same at both ends.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  // 0 to limit - 1.
  std::size_t below(std::size_t limit);

 private:
  std::uint64_t state_;
};

struct Case {
  ibv_wr_opcode opcode;
  std::size_t size;
  unsigned sges;  // at most; of the sender, and of the receiver of a SEND
  bool is_inline = false;
  std::uint64_t seed = 0;
  std::uint32_t number = 0;

  [[nodiscard]] bool takes_receive() const;
  [[nodiscard]] bool has_immediate() const;
  [[nodiscard]] bool is_atomic() const;
  [[nodiscard]] bool is_send() const;
  [[nodiscard]] std::string name() const;
};

// `datagram` is the longest message of a UD queue pair.
std::vector<Case> all_cases(const Options& options, std::size_t datagram);

// Places for `size` bytes in `count` pieces at most, anywhere in a memory of `room` bytes from
// `start` on, with gaps between them.
Pieces lay_out(Dice& dice, std::size_t size, unsigned count, std::size_t start, std::size_t room);

constexpr std::size_t kSmallMemory = 65536 - 24;
constexpr std::size_t kLargeMessage = 8U << 20;

}  // namespace checker
