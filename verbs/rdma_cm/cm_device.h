// A device as rdma_cm uses it.
#pragma once

#include <memory>
#include <utility>

#include "verbs/config/device_config.h"
#include "verbs/runtime/device_lease.h"

namespace urxe::verbs::rdma_cm {

class CmAgent;

// Keeps the device running while rdma_cm is in use, and passes its events on to the agent.
class CmDevice final : private CmListener {
 public:
  CmDevice(CmAgent& agent, const DeviceConfig& config, std::size_t index,
           std::shared_ptr<DeviceLease> lease)
      : agent_(agent), config_(config), index_(index), lease_(std::move(lease)) {
    lease_->device().set_cm_listener(this);
  }
  ~CmDevice() override { lease_->device().set_cm_listener(nullptr); }
  CmDevice(const CmDevice&) = delete;
  CmDevice& operator=(const CmDevice&) = delete;

  [[nodiscard]] const DeviceConfig& config() const { return config_; }
  [[nodiscard]] std::size_t index() const { return index_; }
  [[nodiscard]] HostedDevice& host() { return lease_->device(); }
  [[nodiscard]] DeviceLease& lease() { return *lease_; }

 private:
  void cm_event(emulator::Device& device, const emulator::CmEvent& event) override;
  void device_removed(emulator::Device& device) override;
  void link_address_changed() override;

  CmAgent& agent_;
  const DeviceConfig& config_;
  const std::size_t index_;
  std::shared_ptr<DeviceLease> lease_;
};

}  // namespace urxe::verbs::rdma_cm
