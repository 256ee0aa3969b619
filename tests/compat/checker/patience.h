// How long anything may take before it counts as lost.
#pragma once

#include <chrono>

namespace checker {

constexpr std::chrono::seconds kPatience{60};

class Deadline {
 public:
  [[nodiscard]] bool passed() const { return std::chrono::steady_clock::now() > at_; }

 private:
  const std::chrono::steady_clock::time_point at_ = std::chrono::steady_clock::now() + kPatience;
};

}  // namespace checker
