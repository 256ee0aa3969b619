// A device that is tied to nothing: its packets come back to itself, when somebody drives it.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "emulator/device.h"
#include "verbs/runtime/device_lease.h"
#include "verbs/runtime/guarded_memory.h"

namespace urxe::test {

// The network is a queue in which virtual time passes by the packet. Queue pairs of the device can
// be connected to each other.
class HostedDouble final : public verbs::HostedDevice {
 public:
  explicit HostedDouble(const std::vector<wire::IpAddress>& addresses);

  void set_listener(verbs::DeviceListener* listener) override { listener_ = listener; }
  [[nodiscard]] verbs::DeviceListener* listener() const { return listener_; }
  // Delivers what is on its way, and lets timers run out.
  void drive() override;
  int join(const wire::IpAddress& group) override {
    joined.insert(group);
    return join_error;
  }
  int leave(const wire::IpAddress& group) override {
    joined.erase(group);
    return 0;
  }
  std::set<wire::IpAddress> joined;
  int join_error = 0;  // what join fails with

 private:
  emulator::Device& device() override { return device_; }
  void lock(Haste) override { mutex_.lock(); }
  void unlock() override { mutex_.unlock(); }
  void settle(Haste haste) override;

  void transmit();
  void publish();

  struct Packet {
    wire::Path path;
    std::vector<std::uint8_t> bytes;
  };
  std::mutex mutex_;
  verbs::GuardedMemory memory_;
  emulator::Device device_;
  Time now_{Duration{1}};
  std::deque<Packet> in_flight_;
  verbs::DeviceListener* listener_ = nullptr;
};

// Leases of one device, which lives as long as this and the leases.
class SourceDouble final : public verbs::DeviceSource {
 public:
  explicit SourceDouble(const std::vector<wire::IpAddress>& addresses)
      : device_(std::make_shared<HostedDouble>(addresses)) {}
  tl::expected<std::shared_ptr<verbs::DeviceLease>, int> acquire() override;
  [[nodiscard]] HostedDouble& device() { return *device_; }
  int error = 0;  // what acquire fails with

 private:
  std::shared_ptr<HostedDouble> device_;
};

}  // namespace urxe::test
