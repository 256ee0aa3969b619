// /dev/infiniband/rdma_cm.
#pragma once

#include <memory>

#include "verbs/preload/machine.h"
#include "verbs/rdma_cm/agent.h"

namespace urxe::verbs::rdma_cm {

class RdmaCmNode final : public DeviceNode {
 public:
  explicit RdmaCmNode(std::shared_ptr<CmAgent> agent) : agent_(std::move(agent)) {}
  tl::expected<OpenedFile, int> open(int flags) override;
  [[nodiscard]] CmAgent& agent() { return *agent_; }

 private:
  std::shared_ptr<CmAgent> agent_;
};

}  // namespace urxe::verbs::rdma_cm
