// The counters under /sys, of devices that run in this process.
#pragma once

#include "verbs/runtime/runtime.h"
#include "verbs/sysfs/provider.h"

namespace urxe::verbs {

// A process sees its own traffic only: there is no place where several would count together.
// Thread rule: as SysfsProvider.
class LiveSysfs final : public ConfigProvider {
 public:
  LiveSysfs(const std::vector<DeviceConfig>& devices, Runtime& runtime)
      : ConfigProvider(devices), devices_(devices), runtime_(runtime) {}

  std::vector<wire::IpAddress> gids(std::size_t device) override;
  std::uint64_t counter(std::size_t device, CounterSet set, std::string_view name) override;

 private:
  const std::vector<DeviceConfig>& devices_;
  Runtime& runtime_;
};

}  // namespace urxe::verbs
