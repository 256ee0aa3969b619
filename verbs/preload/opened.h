// What every entry point does that gives the program a descriptor.
#pragma once

#include "verbs/preload/descriptor_table.h"
#include "verbs/preload/quiet.h"

namespace urxe::verbs {

[[gnu::noinline]] inline void forget(int fd) {
  const Quiet quiet;
  if (descriptors.is_own_process()) descriptors.remove(fd);
}

// A descriptor that the program has just got: if its number was ours, that one was closed behind
// our back, or, in a vfork child, only there.
inline int opened(int fd) {
  if (descriptors.holds(fd)) [[unlikely]]
    forget(fd);
  return fd;
}

}  // namespace urxe::verbs
