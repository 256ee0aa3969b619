// A device of the swarm with what its queue pairs share.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/swarm/findings.h"
#include "tests/sim/swarm/group_checker.h"
#include "tests/sim/swarm/memory_checker.h"
#include "tests/sim/swarm/message.h"
#include "tests/sim/swarm/plan.h"
#include "tests/sim/swarm/receive_pool.h"
#include "tests/support/sim_host.h"

namespace urxe::swarm {

class Endpoint;

// What all machines and endpoints of a run share.
struct Shared {
  explicit Shared(const Plan& the_plan) : plan(the_plan) {}
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  const Plan& plan;
  Findings findings;
  AtomicLog atomics;
  std::deque<Message> messages;  // pointers to them stay good
  std::size_t max_message = 0;   // bytes
  std::uint64_t placements = 0;  // ATOMIC WRITEs and FLUSHes that completed
  std::vector<Endpoint*> datagram_ends;
  // Who has this queue pair number at this address.
  std::map<std::pair<wire::IpAddress, std::uint32_t>, Endpoint*> directory;

  Message& new_message() {
    Message& message = messages.emplace_back();
    message.id = messages.size();  // from 1 on
    return message;
  }
  [[nodiscard]] Endpoint* find(const wire::IpAddress& address, wire::Qpn qpn) const {
    const auto found = directory.find({address, qpn.value()});
    return found == directory.end() ? nullptr : found->second;
  }
};

// A piece of memory and the region that lies on it, if it is registered now.
struct Area {
  std::uint64_t start = 0;
  std::size_t size = 0;
  emulator::Access access;
  Paging paging{};
  emulator::MemoryRegion* region = nullptr;
  std::uint32_t key = 0;   // of the region, or of the one that was there
  std::uint64_t hole = 0;  // where a part of it was taken away; 0: nowhere
};

class Machine final : private emulator::CompletionSink, private test::HostObserver {
 public:
  Machine(net::Network& network, net::SimNode& node, std::unique_ptr<net::Fabric> fabric,
          const DevicePlan& plan, std::string name, Shared& shared);

  [[nodiscard]] test::SimHost& host() { return host_; }
  [[nodiscard]] emulator::Device& device() { return host_.device(); }
  [[nodiscard]] emulator::ProtectionDomain& pd() { return *pd_; }
  [[nodiscard]] emulator::CompletionQueue& cq() { return *cq_; }
  [[nodiscard]] emulator::SharedReceiveQueue& srq() { return *srq_; }
  [[nodiscard]] ReceivePool& shared_receives() { return *shared_receives_; }
  [[nodiscard]] MemoryChecker& memory_checker() { return memory_checker_; }
  [[nodiscard]] Area& counters() { return counters_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  // Memory with free space around it, of which the checker knows; registered.
  [[nodiscard]] Area make_area(std::size_t size, emulator::Access access, MemoryChecker::Area kind,
                               Paging paging = Paging::pinned);
  void register_area(Area& area);
  // False if something is bound to it.
  bool deregister_area(Area& area);
  [[nodiscard]] std::uint8_t* bytes(std::uint64_t address, std::size_t size) {
    return host_.memory().at(address, size);
  }
  // A queue of receives on memory of its own.
  [[nodiscard]] std::unique_ptr<ReceivePool> make_receives(std::size_t slots,
                                                           Paging paging = Paging::pinned);
  // A part of the area goes: the program unmaps it, or protects it from itself.
  void take_away(Area& area, std::size_t offset, std::size_t size);
  void bring_back(Area& area);
  // The queue pairs of this device.
  [[nodiscard]] std::vector<Endpoint*> endpoints() const;

  // Multicast. Both see that the device answers as it must.
  void attach(const Endpoint& endpoint, const wire::IpAddress& group);
  void detach(const Endpoint& endpoint, const wire::IpAddress& group);
  [[nodiscard]] GroupChecker& groups() { return groups_; }

  void add(Endpoint& endpoint, const emulator::QueuePair& qp) {
    shared_.directory[{host_.address(), qp.qpn().value()}] = &endpoint;
  }
  void remove(const emulator::QueuePair& qp) {
    shared_.directory.erase({host_.address(), qp.qpn().value()});
  }

  // A queue pair begins with a PSN of its choice.
  void forget_datagrams(const emulator::QueuePair& qp) { datagram_psns_.erase(qp.qpn().value()); }

  // Destroys what is left, and says if it was not all.
  void shut_down();

 private:
  bool push(const emulator::Completion& completion) override;
  void on_transmit(Time now, const wire::Path& path, wire::Bytes packet) override;
  void on_receive(Time now, const wire::Inbound& inbound) override;
  void on_handled() override { groups_.on_handled(); }
  void watch_datagram(const wire::Packet& packet);
  void note_multicast(const wire::Packet& packet, const wire::IpAddress& group);

  Shared& shared_;
  std::string name_;
  MemoryChecker memory_checker_;
  GroupChecker groups_;
  test::SimHost host_;
  emulator::ProtectionDomain* pd_;
  emulator::CompletionQueue* cq_;
  emulator::SharedReceiveQueue* srq_ = nullptr;
  std::unique_ptr<ReceivePool> shared_receives_;
  Area counters_;
  std::deque<Area> receive_areas_;                    // pointers to them stay good
  std::map<std::uint32_t, wire::Psn> datagram_psns_;  // the last, by queue pair
  std::vector<std::uint8_t> packet_;                  // what is being looked at
};

}  // namespace urxe::swarm
