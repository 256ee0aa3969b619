// What the user asks for: the environment variables of docs/environment.md that this room reads.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "verbs/config/device_config.h"

namespace urxe::verbs {

struct Environment {
  std::optional<std::string> devices;  // URXE_DEVICES
  bool hide_real = false;              // URXE_HIDE_REAL: 1 hides the kernel's RDMA devices
};

// `variable` is getenv, or a test's. The error is a sentence for the user.
[[nodiscard]] tl::expected<Environment, std::string> read_environment(
    const std::function<const char*(const char*)>& variable);

// The kernel's RDMA devices, from /sys.
[[nodiscard]] RealDevices find_real_devices();

// Environment, interfaces and real devices together: the devices of this process.
[[nodiscard]] tl::expected<std::vector<DeviceConfig>, std::string> find_devices(
    const Environment& environment);

}  // namespace urxe::verbs
