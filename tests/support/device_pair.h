// Two devices joined by a wire in virtual time, with one queue pair each: what most tests of the
// transport need.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emulator/device.h"
#include "tests/support/work_doubles.h"

namespace urxe::test {

using namespace std::chrono_literals;

// A packet on the wire, seen from outside.
struct WirePacket {
  int from = 0;  // node
  wire::Path path;
  std::vector<std::uint8_t> bytes;  // with four bytes in the ICRC's place
  Time sent{};
  [[nodiscard]] wire::Packet parsed() const { return *wire::parse_packet(bytes); }
};

// A device with the usual objects.
struct Node {
  Node(const emulator::DeviceOptions& options, const wire::IpAddress& address,
       std::uint32_t first_qpn);

  // Memory of `size` bytes, registered with all access rights.
  struct Buffer {
    std::uint64_t address;
    std::size_t size;
    std::uint32_t key;
  };
  Buffer buffer(std::size_t size);
  Buffer buffer(std::size_t size, emulator::Access access);
  std::uint8_t* bytes(const Buffer& buffer) { return memory.at(buffer.address, buffer.size); }

  MemoryDouble memory;
  emulator::Device device;
  wire::IpAddress address;
  SendDouble sends;
  ReceiveDouble receives;
  CompletionDouble send_completions;
  CompletionDouble receive_completions;
  emulator::ProtectionDomain* pd;
  emulator::CompletionQueue* send_cq;
  emulator::CompletionQueue* receive_cq;
  emulator::QueuePair* qp = nullptr;
  std::vector<emulator::MemoryRegion*> regions;  // of the buffers
};

struct PairOptions {
  emulator::QpType type = emulator::QpType::rc;
  emulator::Mtu mtu = emulator::Mtu::bytes1024;
  std::uint32_t first_psn = 0xFFFFF0;  // wraps soon
  std::uint8_t timeout = 14;
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;
  std::uint8_t min_rnr_timer = 12;
  std::uint8_t read_atomic = 4;
  emulator::Access access = emulator::kLocalWrite | emulator::kRemoteWrite | emulator::kRemoteRead |
                            emulator::kRemoteAtomic;
  bool signal_all = true;
  Duration latency = 10us;
  emulator::DeviceOptions device;
};

inline constexpr wire::QKey kTestQKey{0x11111111};

class DevicePair {
 public:
  explicit DevicePair(const PairOptions& options = {});

  Node& client() { return *nodes_[0]; }
  Node& server() { return *nodes_[1]; }
  Node& node(int index) { return *nodes_.at(static_cast<std::size_t>(index)); }

  // Takes one queue pair through the states up to RTS.
  void connect(int index);
  [[nodiscard]] emulator::QpAttributes attributes(int index) const;

  // Posts a request on a node and rings its doorbell.
  emulator::Result<void> post(int index, emulator::WorkOpcode opcode, const Node::Buffer& local,
                              std::size_t length, const Node::Buffer& remote = {},
                              const std::function<void(OwnedSend&)>& adjust = nullptr);
  void post_receive(int index, const Node::Buffer& buffer, std::uint64_t wr_id = 0);

  // Runs until nothing is on its way and no deadline is left, or `limit` of virtual time has
  // passed.
  void run(Duration limit = 10s);
  // Sends what the devices have to send now, without delivering anything.
  void transmit();
  void deliver_next();
  // Hands a packet to a node as if its peer had sent it just now. BTH and headers come from
  // `packet`, destination and path are filled in.
  void inject(int to, wire::Packet packet, const std::vector<std::uint8_t>& payload = {});
  void advance(Duration time) { now_ += time; }

  Time now() const { return now_; }

  // Decides about each packet before it is on its way: how many copies arrive (1 is normal).
  std::function<int(const WirePacket&)> fate;
  // All packets that were sent.
  std::vector<WirePacket> log;

 private:
  struct InFlight {
    Time arrival;
    WirePacket packet;
  };
  void transmit(int index);
  [[nodiscard]] Time next_event();

  PairOptions options_;
  Time now_{1s};
  std::vector<std::unique_ptr<Node>> nodes_;
  std::deque<InFlight> in_flight_;
};

}  // namespace urxe::test
