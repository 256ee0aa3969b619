// The devices of this process that are open, and the thread that serves them.
#pragma once

#include <csignal>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "net/error.h"
#include "verbs/config/device_config.h"
#include "verbs/preload/own_mutex.h"
#include "verbs/runtime/device_lease.h"
#include "verbs/runtime/fault_guard.h"
#include "verbs/runtime/live_device.h"
#include "verbs/runtime/mad_router.h"
#include "verbs/runtime/progress_thread.h"
#include "verbs/runtime/settings.h"

namespace urxe::net {
class CaptureFile;
}

namespace urxe::verbs {

struct RuntimeOptions {
  Settings settings;
  FaultGuard::Sigaction sigaction = &::sigaction;  // the C library's own
};

// One per process, never destroyed. Any thread may call.
class Runtime {
 public:
  explicit Runtime(RuntimeOptions options) : options_(std::move(options)) {}

  // Starts the device, unless it runs already. The error has a sentence for people and an errno.
  [[nodiscard]] tl::expected<std::shared_ptr<DeviceLease>, net::Error> open(
      const DeviceConfig& config);

  // What a device that runs has counted; nothing for one that does not run.
  [[nodiscard]] std::optional<emulator::Counters> counters(const std::string& name);
  [[nodiscard]] std::optional<emulator::CmCounters> cm_counters(const std::string& name);
  // What its fabric has counted by a name of UdpFabric's; 0 if it does not run.
  [[nodiscard]] std::uint64_t fabric_counter(const std::string& name, std::string_view counter);

  // The GID table of a device that runs; nothing for one that does not run.
  [[nodiscard]] std::optional<std::vector<wire::IpAddress>> gids(const std::string& name);

  // The program ends: devices that are open send what they have, and say what the faults did.
  void at_exit();

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
  [[nodiscard]] tl::expected<void, net::Error> start_progress();
  [[nodiscard]] tl::expected<std::unique_ptr<net::Fabric>, net::Error> decorate(
      std::unique_ptr<net::Fabric> fabric, Running& running);

  RuntimeOptions options_;
  CmMadRouter mad_router_;
  OwnMutex mutex_;
  std::vector<std::shared_ptr<Running>> running_;
  std::unique_ptr<ProgressThread> progress_;
  std::shared_ptr<net::CaptureFile> capture_;  // of all devices
};

}  // namespace urxe::verbs
