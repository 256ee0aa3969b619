// The files of our devices under /sys and /dev, as the kernel's rxe has them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "verbs/config/device_config.h"
#include "verbs/sysfs/private_tree.h"
#include "verbs/sysfs/provider.h"

namespace urxe::verbs {

// What the tree shows. `devices` and `provider` outlive it.
struct TreeContents {
  const std::vector<DeviceConfig>& devices;
  SysfsProvider& provider;
  bool rdma_cm = true;     // whether /dev/infiniband/rdma_cm exists
  bool hide_real = false;  // leave out the kernel's devices
};

// Whether `path` (absolute and without "." and "..") is, or is below, something that the tree
// holds.
[[nodiscard]] bool belongs_to_tree(std::string_view path);

// Makes the tree in the first of `bases` where that works. The error is the errno of the last.
[[nodiscard]] tl::expected<std::unique_ptr<PrivateTree>, int> make_device_tree(
    const std::vector<std::string>& bases, const TreeContents& contents);

}  // namespace urxe::verbs
