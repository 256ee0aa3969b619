// What a test asks of a node after something went wrong.
#pragma once

#include <vector>

#include "tests/support/bring_up.h"
#include "tests/support/device_pair.h"

namespace urxe::test {

[[nodiscard]] std::vector<emulator::CompletionStatus> statuses(const CompletionDouble& sink);

// Takes the asynchronous events that wait; their types.
std::vector<emulator::AsyncEventType> take_events(emulator::Device& device);

// The acknowledgements that a node sent, oldest first.
[[nodiscard]] std::vector<wire::Aeth> acknowledgements(const DevicePair& pair, int from);
// The requests that a node sent.
[[nodiscard]] std::vector<WirePacket> requests(const DevicePair& pair, int from);

}  // namespace urxe::test
