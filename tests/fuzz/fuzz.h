// What every fuzz target has in common.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

// libFuzzer's entry point, which a target defines. Returns 0.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace urxe::fuzz {

// A property that no input may break. Aborts, so that the fuzzer keeps the input.
inline void require(bool holds, const char* property) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", property);
  std::abort();
}

// What the fuzzer gives, taken from its beginning; zeros once it is used up.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}
  [[nodiscard]] bool empty() const { return rest_.empty(); }
  // At most so many.
  std::span<const std::uint8_t> bytes(std::size_t count) {
    const auto taken = rest_.first(std::min(count, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  std::uint8_t byte() {
    const auto taken = bytes(1);
    return taken.empty() ? 0 : taken[0];
  }
  std::uint16_t word() {
    const std::uint8_t high = byte();
    return static_cast<std::uint16_t>(high << 8 | byte());
  }

 private:
  std::span<const std::uint8_t> rest_;
};

}  // namespace urxe::fuzz
