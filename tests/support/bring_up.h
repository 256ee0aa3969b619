// A queue pair's way up.
#pragma once

#include "emulator/queue_pair.h"

namespace urxe::test {

// Takes a queue pair from RESET to RTS with these attributes, giving at each step those that the
// step needs. Throws if the device refuses one.
void bring_up(emulator::QueuePair& qp, emulator::QpAttributes attributes);

// One step of it.
void step_to(emulator::QueuePair& qp, emulator::QpAttributes attributes, emulator::QpState state);

}  // namespace urxe::test
