// Two connected queue pairs, one of which posts, and what the tests of known mistakes ask of them.
#pragma once

#include <functional>
#include <vector>

#include "tests/support/outcomes.h"

namespace urxe::test {

// The packets that a node sent, oldest first.
[[nodiscard]] std::vector<wire::Packet> sent_by(const DevicePair& pair, int node);

struct Trap {
  Trap() : Trap(PairOptions{}) {}
  explicit Trap(const PairOptions& options);

  // The client posts one request from `local` to `remote`.
  void post(
      emulator::WorkOpcode opcode, std::size_t length,
      const std::function<void(OwnedSend&)>& adjust = [](OwnedSend&) {});
  // Loses the packets of a node that have these numbers, from 0 on.
  void lose(int node, std::vector<int> numbers);
  // So many requests of the client have completed, all with success.
  void check_success(std::size_t requests);
  // A request for `remote` that is `offset` PSNs after the first.
  [[nodiscard]] wire::Packet raw(wire::Opcode opcode, std::uint32_t offset) const;

  DevicePair pair;
  Node::Buffer local;
  Node::Buffer remote;
};

}  // namespace urxe::test
