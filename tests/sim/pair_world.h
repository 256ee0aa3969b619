// Two machines in the simulated network with a queue pair each, and faults between them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/faults/fault_fabric.h"
#include "net/sim/network.h"
#include "tests/support/bring_up.h"
#include "tests/support/sim_host.h"

namespace urxe::test {

using namespace std::chrono_literals;

// A piece of a host's memory, registered with all access rights.
struct Buffer {
  std::uint64_t address = 0;
  std::size_t size = 0;
  std::uint32_t key = 0;
};

struct WorldOptions {
  emulator::QpType type = emulator::QpType::rc;
  emulator::Mtu mtu = emulator::Mtu::bytes256;
  std::uint32_t first_psn = 0xFFFFFC;  // wraps soon
  std::uint8_t timeout = 8;            // 1 ms
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;
  std::uint8_t min_rnr_timer = 1;  // 10 us
  std::uint8_t read_atomic = 4;
  bool signal_all = false;
  net::LinkSpec link;
  emulator::DeviceOptions device;
  // Faults at the client: tx is towards the server, rx towards the client.
  std::vector<net::Rule> rules;
  std::uint64_t seed = 1;
};

// One end: a host with the usual objects.
struct End {
  End(net::Network& network, net::SimNode& node, std::unique_ptr<net::Fabric> fabric,
      const HostSpec& spec);

  [[nodiscard]] Buffer buffer(std::size_t size);
  [[nodiscard]] Buffer buffer(std::size_t size, emulator::Access access);
  [[nodiscard]] std::uint8_t* bytes(const Buffer& buffer) {
    return host.memory().at(buffer.address, buffer.size);
  }
  void post_receive(const Buffer& buffer, std::uint64_t wr_id = 0);
  // Posts a send request and rings the doorbell.
  emulator::Result<void> post(OwnedSend send);

  SimHost host;
  SendDouble sends;
  ReceiveDouble receives;
  CompletionDouble sent;
  CompletionDouble received;
  emulator::ProtectionDomain* pd;
  emulator::CompletionQueue* send_cq;
  emulator::CompletionQueue* receive_cq;
  emulator::QueuePair* qp = nullptr;
};

class PairWorld {
 public:
  explicit PairWorld(const WorldOptions& options);

  End& client() { return *ends_[0]; }
  End& server() { return *ends_[1]; }
  End& end(std::size_t index) { return *ends_.at(index); }
  [[nodiscard]] net::Network& network() { return network_; }
  [[nodiscard]] const net::Injector& injector() const { return faults_->injector(); }

  [[nodiscard]] emulator::QpAttributes attributes(std::size_t index) const;

  // A send request from a buffer of `from` to one of the other end.
  [[nodiscard]] static OwnedSend request(emulator::WorkOpcode opcode, const Buffer& local,
                                         std::size_t length, const Buffer& remote = {});

  // Runs until nobody has anything to do. False if that takes longer than `limit` or more than
  // `max_steps` steps: a livelock.
  [[nodiscard]] bool run(Duration limit = 100s, std::uint64_t max_steps = 1'000'000);

 private:
  WorldOptions options_;
  net::Network network_;
  std::vector<std::unique_ptr<End>> ends_;
  net::FaultFabric* faults_ = nullptr;  // the client's fabric
};

}  // namespace urxe::test
