// What the checkers have to say.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace urxe::swarm {

// Sentences, the first few: what comes after a first fault is mostly its consequence.
class Findings {
 public:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    if (sentences_.size() < kMost) {
      sentences_.push_back(fmt::format(format, std::forward<Args>(args)...));
    }
  }
  [[nodiscard]] bool empty() const { return sentences_.empty(); }
  [[nodiscard]] const std::vector<std::string>& sentences() const { return sentences_; }

 private:
  static constexpr std::size_t kMost = 8;
  std::vector<std::string> sentences_;
};

}  // namespace urxe::swarm
