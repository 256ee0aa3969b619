// How others hold a device that runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "verbs/runtime/hosted_device.h"

namespace urxe::verbs {

// Keeps a device running. Several opens of one device share it.
class DeviceLease {
 public:
  virtual ~DeviceLease() = default;
  [[nodiscard]] virtual HostedDevice& device() = 0;
  // What the fabric counts besides the device, by the names that docs/counters.md lists.
  [[nodiscard]] virtual std::uint64_t fabric_counter(std::string_view name) = 0;

  // Claims a name among all processes of this network namespace: what is meant for it is handed
  // over to us. Returns 0 or an errno; EADDRINUSE if another has it. Not with the device locked.
  [[nodiscard]] virtual int claim_name(const std::string& /*name*/) { return 0; }
  virtual void release_name(const std::string& /*name*/) {}
};

// Where a node gets its device from when it is opened.
class DeviceSource {
 public:
  virtual ~DeviceSource() = default;
  // Starts the device, unless it runs already. The error is an errno. Called from any thread.
  virtual tl::expected<std::shared_ptr<DeviceLease>, int> acquire() = 0;
};

}  // namespace urxe::verbs
