// Our requester posts what a captured requester posted, and a captured responder answers.
#pragma once

#include "tests/golden/replay/responder_replay.h"

namespace urxe::replay {

// What differs between our requests and the captured ones, and between the outcome of ours and what
// the answers say. Which packets ask for an acknowledgement is each requester's own choice.
[[nodiscard]] Differences replay_to_requester(const Conversation& conversation);

}  // namespace urxe::replay
