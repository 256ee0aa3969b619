// A machine in the simulated network: a device, its memory and its fabric, driven as the runtime
// drives a device over sockets.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "emulator/device.h"
#include "net/fabric.h"
#include "net/sim/network.h"
#include "tests/support/work_doubles.h"

namespace urxe::test {

// Packets as the device wrote and read them, before and behind whatever decorates the fabric.
class HostObserver {
 public:
  // `packet` is BTH to pad.
  virtual void on_transmit(Time now, const wire::Path& path, wire::Bytes packet) = 0;
  virtual void on_receive(Time now, const wire::Inbound& inbound) = 0;
  // The device is done with what it received last.
  virtual void on_handled() = 0;

 protected:
  ~HostObserver() = default;
};

struct HostSpec {
  emulator::DeviceOptions options;
  emulator::QpnRange qpns;
  // Time that the machine needs for a turn in which it moves packets, per packet: what it cannot
  // take in meanwhile waits in its receive buffer.
  Duration time_per_packet{};
};

class SimHost final : public net::Actor, private net::Wakeable, private net::Receiver {
 public:
  // `node` and the simulation outlive the host. `fabric` leads to `node`.
  SimHost(net::Simulation& simulation, net::SimNode& node, std::unique_ptr<net::Fabric> fabric,
          const HostSpec& spec);
  ~SimHost() override { node_.set_listener(nullptr); }

  [[nodiscard]] emulator::Device& device() { return device_; }
  [[nodiscard]] MemoryDouble& memory() { return memory_; }
  [[nodiscard]] net::Fabric& fabric() { return *fabric_; }
  [[nodiscard]] const net::SimNode& node() const { return node_; }
  [[nodiscard]] const wire::IpAddress& address() const { return node_.address(); }
  void set_observer(HostObserver* observer) { observer_ = observer; }

  // To be called after every call of the device that may have made output or timers: what a
  // doorbell does.
  void settle();

 private:
  void act(Time now) override;
  void wake(Time now) override;
  void on_packet(Time now, const wire::Inbound& packet) override;
  void transmit(Time now);
  void schedule_next(Time now, bool more);

  net::Simulation& simulation_;
  net::SimNode& node_;
  std::unique_ptr<net::Fabric> fabric_;
  Duration time_per_packet_;
  MemoryDouble memory_;
  emulator::Device device_;
  HostObserver* observer_ = nullptr;
  Time busy_until_{};
  bool fabric_is_full_ = false;
};

}  // namespace urxe::test
