// rxe_send_wqe → emulator::SendRequest.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/work.h"

namespace urxe::verbs {

struct SendLimits {
  std::uint32_t max_sge;
  std::uint32_t max_inline;  // bytes
};

// `element` is at least sizeof(rxe_send_wqe) + max(max_sge * sizeof(rxe_sge), max_inline) bytes of
// memory that the program may be writing to. Its fixed part is read once; the request borrows the
// list or the inline data.
[[nodiscard]] emulator::SendRequest decode_send(const std::byte* element, SendLimits limits);

}  // namespace urxe::verbs
