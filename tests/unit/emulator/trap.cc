#include "tests/unit/emulator/trap.h"

#include <algorithm>

#include <catch2/catch.hpp>

namespace urxe::test {

using emulator::CompletionStatus;

std::vector<wire::Packet> sent_by(const DevicePair& pair, int node) {
  std::vector<wire::Packet> packets;
  for (const WirePacket& packet : pair.log) {
    if (packet.from == node) packets.push_back(packet.parsed());
  }
  return packets;
}

Trap::Trap(const PairOptions& options)
    : pair(options), local(pair.client().buffer(8192)), remote(pair.server().buffer(8192)) {}

void Trap::post(emulator::WorkOpcode opcode, std::size_t length,
                const std::function<void(OwnedSend&)>& adjust) {
  REQUIRE(pair.post(0, opcode, local, length, remote, adjust));
}

void Trap::lose(int node, std::vector<int> numbers) {
  pair.fate = [node, numbers = std::move(numbers), count = 0](const WirePacket& packet) mutable {
    if (packet.from != node) return 1;
    return std::find(numbers.begin(), numbers.end(), count++) == numbers.end() ? 1 : 0;
  };
}

void Trap::check_success(std::size_t requests) {
  CHECK(statuses(pair.client().send_completions) ==
        std::vector<CompletionStatus>(requests, CompletionStatus::success));
}

wire::Packet Trap::raw(wire::Opcode opcode, std::uint32_t offset) const {
  wire::Packet packet;
  packet.info = &wire::info(opcode);
  packet.bth.psn = wire::Psn{PairOptions{}.first_psn} + offset;
  packet.reth = {.address = remote.address, .rkey = wire::RKey{remote.key}, .length = 0};
  packet.atomic = {.address = remote.address, .rkey = wire::RKey{remote.key}, .swap_or_add = 1};
  return packet;
}

}  // namespace urxe::test
