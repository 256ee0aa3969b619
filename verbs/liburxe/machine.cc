// The composition root of liburxe.so.
#include "verbs/preload/machine.h"

#include <cstdlib>
#include <deque>
#include <string>
#include <utility>

#include "verbs/liburxe/live_sysfs.h"
#include "verbs/preload/libc.h"
#include "verbs/runtime/log.h"
#include "verbs/runtime/runtime.h"
#include "verbs/uverbs/uverbs_node.h"

namespace urxe::verbs {
namespace {

// Starts one device of the runtime.
class RuntimeSource final : public DeviceSource {
 public:
  RuntimeSource(Runtime& runtime, const DeviceConfig& config)
      : runtime_(runtime), config_(config) {}

  tl::expected<std::shared_ptr<DeviceLease>, int> acquire() override {
    auto lease = runtime_.open(config_);
    if (!lease) return tl::unexpected(lease.error().code);
    return *std::move(lease);
  }

 private:
  Runtime& runtime_;
  const DeviceConfig& config_;
};

// Never destroyed, as its nodes and devices need it.
class RunningMachine final : public Machine {
 public:
  RunningMachine(std::vector<DeviceConfig> devices, const Settings& settings)
      : devices_(std::move(devices)),
        runtime_({.settings = settings, .sigaction = &original_sigaction}) {
    const auto abi = settings.uverbs_by_write ? UverbsAbi::write_only : UverbsAbi::both;
    for (const DeviceConfig& device : devices_) {
      sources_.emplace_back(runtime_, device);
      nodes_.emplace_back(device, sources_.back(), abi);
    }
  }

  [[nodiscard]] const std::vector<DeviceConfig>& devices() const override { return devices_; }
  SysfsProvider& sysfs() override { return sysfs_; }
  DeviceNode& uverbs(std::size_t device) override { return nodes_[device]; }
  DeviceNode* rdma_cm() override { return nullptr; }

  void before_fork() override { runtime_.before_fork(); }
  void after_fork_in_parent() override { runtime_.after_fork_in_parent(); }
  void after_fork_in_child() override {
    runtime_.after_fork_in_child();
    for (UverbsNode& node : nodes_) node.after_fork_in_child();
  }
  void at_exit() override { runtime_.at_exit(); }

 private:
  static int original_sigaction(int signal, const struct sigaction* wanted,
                                struct sigaction* previous) {
    return libc::sigaction(signal, wanted, previous);
  }

  const std::vector<DeviceConfig> devices_;
  Runtime runtime_;
  std::deque<RuntimeSource> sources_;
  std::deque<UverbsNode> nodes_;
  LiveSysfs sysfs_{devices_, runtime_};
};

}  // namespace

std::unique_ptr<Machine> make_machine(std::vector<DeviceConfig> devices) {
  const auto variable = [](const char* name) { return std::getenv(name); };
  auto settings = read_settings(variable);
  if (!settings) {
    log(LogLevel::error, settings.error());
    return nullptr;
  }
  if (!settings->log.empty()) {
    if (const auto set = set_up_log(settings->log); !set) {
      log(LogLevel::error, set.error());
      return nullptr;
    }
  }
  return std::make_unique<RunningMachine>(std::move(devices), *settings);
}

}  // namespace urxe::verbs
