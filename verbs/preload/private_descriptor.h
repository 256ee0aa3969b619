// A descriptor that is ours alone, in a program that does not know of it.
#pragma once

#include <atomic>

#include <unistd.h>

#include "verbs/preload/descriptor_table.h"

namespace urxe::verbs {

// Owns a descriptor that the program must not close: daemons close every number there is. close,
// close_range and closefrom spare it; dup2 onto its number moves it to another, so ask for number()
// each time and do not keep it. A forked child inherits it; closing it there is the owner's affair
// (Machine::after_fork_in_child).
class PrivateDescriptor {
 public:
  // Takes `number` over and moves it up, away from the low numbers that programs expect to get.
  explicit PrivateDescriptor(int number);
  PrivateDescriptor(const PrivateDescriptor&) = delete;
  PrivateDescriptor& operator=(const PrivateDescriptor&) = delete;
  ~PrivateDescriptor() { close(); }

  // -1 after close().
  [[nodiscard]] int number() const { return number_.load(std::memory_order_relaxed); }
  void close();

 private:
  std::atomic<int> number_;
};

}  // namespace urxe::verbs
