// Processes that use rdma_cm, a device each, joined by a network in virtual time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "emulator/device.h"
#include "verbs/rdma_cm/rdma_cm_node.h"
#include "verbs/runtime/guarded_memory.h"

namespace urxe::test {

class CmNetwork;

// A process's device.
class CmHost final : public verbs::HostedDevice {
 public:
  CmHost(CmNetwork& network, const std::vector<wire::IpAddress>& addresses, std::uint32_t slot);

  [[nodiscard]] emulator::Device& engine() { return device_; }
  void set_listener(verbs::DeviceListener*) override {}
  void drive() override {}
  int join(const wire::IpAddress&) override { return 0; }
  int leave(const wire::IpAddress&) override { return 0; }

  std::vector<std::string> names;  // that are claimed
  int refuse_names = 0;            // the errno with which claims fail

 private:
  friend class CmNetwork;
  emulator::Device& device() override { return device_; }
  void lock(Haste) override {}
  void unlock() override {}
  void settle(Haste haste) override;

  CmNetwork& network_;
  verbs::GuardedMemory memory_;
  emulator::Device device_;
};

// A process: its device, its agent, and what a program does with event channels.
class CmProcess {
 public:
  CmProcess(CmNetwork& network, const std::string& address, std::uint32_t slot);

  [[nodiscard]] CmHost& host() { return *host_; }
  [[nodiscard]] verbs::rdma_cm::CmAgent& agent() { return *agent_; }
  [[nodiscard]] tl::expected<verbs::OpenedFile, int> open(int flags) { return node_.open(flags); }

 private:
  std::vector<verbs::DeviceConfig> devices_;
  std::shared_ptr<CmHost> host_;
  std::shared_ptr<verbs::rdma_cm::CmAgent> agent_;
  verbs::rdma_cm::RdmaCmNode node_;
};

class CmNetwork {
 public:
  CmNetwork();

  [[nodiscard]] CmProcess& server() { return *processes_[0]; }  // 10.0.0.1
  [[nodiscard]] CmProcess& client() { return *processes_[1]; }  // 10.0.0.2
  [[nodiscard]] Time now() const { return now_; }
  // Delivers what is on its way, then lets time pass.
  void run(Duration time = {});
  bool loses_all = false;

  struct Packet {
    wire::Path path;
    std::vector<std::uint8_t> bytes;  // with four bytes in the ICRC's place
  };
  // Sees every packet that a process sends.
  std::function<void(const Packet&)> watch;
  // Puts a packet on its way that nobody sent. Its ICRC is right.
  void inject(Packet packet) { in_flight_.push_back(std::move(packet)); }

 private:
  friend class CmHost;
  void deliver();

  Time now_{Duration{1}};
  std::vector<std::unique_ptr<CmProcess>> processes_;
  std::map<wire::IpAddress, CmHost*> hosts_;
  std::deque<Packet> in_flight_;
};

}  // namespace urxe::test
