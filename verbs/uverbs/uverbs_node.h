// /dev/infiniband/uverbsN: what a program opens.
#pragma once

#include <memory>

#include "verbs/config/device_config.h"
#include "verbs/preload/machine.h"
#include "verbs/runtime/device_lease.h"
#include "verbs/uverbs/uverbs_file.h"

namespace urxe::verbs {

// Owner: the machine. Any thread may open.
class UverbsNode final : public DeviceNode {
 public:
  // Both outlive the node and the files.
  UverbsNode(const DeviceConfig& config, DeviceSource& source, UverbsAbi abi = UverbsAbi::both)
      : config_(config), source_(source), abi_(abi) {}

  tl::expected<OpenedFile, int> open(int flags) override;

  // In a forked child, where nobody else is: closes what was inherited. The parent's files are not
  // used here; those that are opened from now on work.
  void after_fork_in_child();

 private:
  const DeviceConfig& config_;
  DeviceSource& source_;
  const UverbsAbi abi_;
  std::shared_ptr<uverbs::Dispatcher> dispatcher_ = std::make_shared<uverbs::Dispatcher>();
};

}  // namespace urxe::verbs
