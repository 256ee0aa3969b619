// A captured requester talks to our responder.
#pragma once

#include <map>
#include <string>

#include "emulator/types.h"
#include "tests/golden/replay/conversation.h"

namespace urxe::replay {

// How the captured responder was set up, as far as the capture does not tell.
struct ResponderSetup {
  emulator::Access access = emulator::kLocalWrite | emulator::kRemoteWrite | emulator::kRemoteRead |
                            emulator::kRemoteAtomic;
  std::uint32_t receive_length = 1U << 20;  // bytes of each receive request
  std::uint32_t bytes_in_bounds = 0;        // of a request that exceeds its memory region
  bool starts_late = false;                 // the capture does not begin with the connection
  bool ends_early = false;                  // it was cut: answers are missing at its end
  bool program_writes = false;              // the responder's program changes what READs read
};

// What differs, in words, and how often. Empty: our answers are the captured ones, but that either
// side may have let one acknowledgement stand for several.
using Differences = std::map<std::string, int>;

[[nodiscard]] Differences replay_to_responder(const Conversation& conversation,
                                              const ResponderSetup& setup);

}  // namespace urxe::replay
