// Small conversations, for trying every fault of a kind on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/pair_world.h"

namespace urxe::test {

// Requests that a client posts all at once.
struct Conversation {
  struct Step {
    emulator::WorkOpcode opcode;
    std::uint32_t packets;  // 0: a message without data
  };
  std::vector<Step> steps;
  bool signalled = true;
  // With windows of two packets, so that flow control is in the game, and READs are asked for in
  // pieces of two packets.
  bool tight = false;
};
[[nodiscard]] std::string to_string(const Conversation& conversation);

// Every RC verb that sends something.
[[nodiscard]] const std::vector<emulator::WorkOpcode>& rc_verbs();
// This verb with 0 to 4 packets (atomics are what they are), once and twice, signalled and not;
// followed by each other verb, with two packets each; and long messages with tight windows.
[[nodiscard]] std::vector<Conversation> conversations_of(emulator::WorkOpcode verb);

// All that a program can see when everything has come to rest.
struct Outcome {
  bool at_rest = false;
  std::vector<std::string> sent;      // the client's completions
  std::vector<std::string> received;  // the server's
  std::vector<std::uint8_t> memory;   // of both, all buffers
  emulator::QpState client_state{};
  emulator::QpState server_state{};
  std::size_t requests_held = 0;  // send requests that were not retired
  std::uint32_t receives_left = 0;
  bool windows_valid = false;  // the window that SEND_WITH_INV invalidates still opens memory
  friend bool operator==(const Outcome&, const Outcome&) = default;
};
[[nodiscard]] std::string to_string(const Outcome& outcome);

struct Played {
  Outcome outcome;
  std::vector<std::uint64_t> matches;  // packets that each fault could have hit
};
[[nodiscard]] Played converse(const Conversation& conversation,
                              const std::vector<net::Rule>& faults);

}  // namespace urxe::test
