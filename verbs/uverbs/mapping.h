// How a program is told where it can map a ring.
#pragma once

#include "verbs/abi/rxe_abi.h"
#include "verbs/rings/ring_memory.h"

namespace urxe::verbs::uverbs {

[[nodiscard]] inline mminfo mapping_of(const RingArea& area) {
  mminfo info{};
  info.offset = area.offset();
  info.size = area.size();
  return info;
}

}  // namespace urxe::verbs::uverbs
