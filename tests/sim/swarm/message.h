// What a program asked a device to do, and how far it came, as the checkers see it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/types.h"
#include "net/random.h"

namespace urxe::swarm {

class Endpoint;

// What is wrong with a request, if anything is.
enum class Flaw : std::uint8_t {
  none,
  bad_lkey,
  bad_rkey,
  out_of_bounds,
  no_permission,  // of the region
  not_allowed,    // by the peer's queue pair
  misaligned,
  short_atomic,
  too_long,  // for the receive, or for a datagram
  bad_invalidate,
  unsupported,
  bad_bind,
};

struct Message {
  std::uint64_t id = 0;
  Endpoint* from = nullptr;
  Endpoint* to = nullptr;
  emulator::WorkOpcode opcode{};
  Flaw flaw = Flaw::none;
  std::vector<std::uint8_t> bytes;  // what is sent, or what a READ must bring
  std::uint64_t remote_address = 0;
  std::size_t effect_done = 0;      // bytes that were written to memory where it was to
  std::uint64_t executions = 0;     // of an atomic
  std::uint64_t old_value = 0;      // what an atomic found
  std::uint64_t local_address = 0;  // where an answer goes
  std::uint32_t invalidates = 0;    // the window's key
  int delivered = 0;                // receive completions
  bool to_group = false;            // a datagram for a multicast group
  bool refused = false;             // memory that its effect needs was gone
  std::size_t writes_before = 0;    // of a FLUSH: requests that wrote, posted before it

  [[nodiscard]] std::uint32_t immediate() const {
    return static_cast<std::uint32_t>(id * 2654435761U);
  }
  [[nodiscard]] bool is_atomic() const {
    return opcode == emulator::WorkOpcode::compare_swap ||
           opcode == emulator::WorkOpcode::fetch_add;
  }
  [[nodiscard]] bool is_atomic_write() const {
    return opcode == emulator::WorkOpcode::atomic_write;
  }
  [[nodiscard]] bool is_flush() const { return opcode == emulator::WorkOpcode::flush; }
  [[nodiscard]] bool writes() const {
    return opcode == emulator::WorkOpcode::rdma_write ||
           opcode == emulator::WorkOpcode::rdma_write_with_immediate;
  }
  [[nodiscard]] bool sends() const {
    return opcode == emulator::WorkOpcode::send ||
           opcode == emulator::WorkOpcode::send_with_immediate ||
           opcode == emulator::WorkOpcode::send_with_invalidate;
  }
  [[nodiscard]] bool has_immediate() const {
    return opcode == emulator::WorkOpcode::send_with_immediate ||
           opcode == emulator::WorkOpcode::rdma_write_with_immediate;
  }
  [[nodiscard]] bool takes_receive() const {
    return sends() || opcode == emulator::WorkOpcode::rdma_write_with_immediate;
  }
};

// The bytes of message `id`: they begin with the id if there is room for it, and no two messages
// look alike.
[[nodiscard]] inline std::vector<std::uint8_t> bytes_of_message(std::uint64_t id,
                                                                std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  net::Random random(id);
  std::uint64_t word = id;
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::uint8_t>(word >> (8 * (i % 8)));
    if (i % 8 == 7) word = random.next();
  }
  return bytes;
}

}  // namespace urxe::swarm
