// The devices of this process that are open, and the thread that serves them.
#pragma once

#include <csignal>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "net/error.h"
#include "verbs/config/device_config.h"
#include "verbs/runtime/device_lease.h"
#include "verbs/runtime/hosted_device.h"
#include "verbs/runtime/live_device.h"
#include "verbs/runtime/progress_thread.h"

namespace urxe::net {
class UdpFabric;
}

namespace urxe::verbs {

struct RuntimeOptions {
  std::optional<std::string> pcap;  // capture into this file
  FaultGuard::Sigaction sigaction = &::sigaction;
};

// One per process, never destroyed. Any thread may call.
class Runtime {
 public:
  explicit Runtime(RuntimeOptions options) : options_(std::move(options)) {}

  // Starts the device, unless it runs already. The error has a sentence for people and an errno.
  [[nodiscard]] tl::expected<std::shared_ptr<DeviceLease>, net::Error> open(
      const DeviceConfig& config);

  // What the sysfs counters show of a device that is running; nothing for one that is not.
  [[nodiscard]] std::optional<emulator::Counters> counters(const std::string& name);

  // Around a fork: nothing is in progress while it happens.
  void before_fork();
  void after_fork_in_parent();
  // Closes what was inherited. Leases from before the fork stay, and must not be used.
  void after_fork_in_child();

 private:
  class Running;
  class Lease;

  void release(const std::shared_ptr<Running>& running);
  [[nodiscard]] tl::expected<std::shared_ptr<Running>, net::Error> start(
      const DeviceConfig& config);

  RuntimeOptions options_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Running>> running_;
  std::unique_ptr<ProgressThread> progress_;
};

}  // namespace urxe::verbs
