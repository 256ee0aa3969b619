// The composition root of liburxe.so.
#include "verbs/preload/machine.h"

#include <cstdlib>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "verbs/liburxe/live_sysfs.h"
#include "verbs/preload/libc.h"
#include "verbs/rdma_cm/rdma_cm_node.h"
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
    start_rdma_cm();
  }

  [[nodiscard]] const std::vector<DeviceConfig>& devices() const override { return devices_; }
  SysfsProvider& sysfs() override { return sysfs_; }
  DeviceNode& uverbs(std::size_t device) override { return nodes_[device]; }
  DeviceNode* rdma_cm() override { return &*rdma_cm_; }

  void before_fork() override {
    runtime_.before_fork();
    rdma_cm_->agent().before_fork();
  }
  void after_fork_in_parent() override {
    rdma_cm_->agent().after_fork_in_parent();
    runtime_.after_fork_in_parent();
  }
  void after_fork_in_child() override {
    rdma_cm_->agent().after_fork_in_child();
    // Files of the parent keep it, and nobody destroys them.
    start_rdma_cm();
    runtime_.after_fork_in_child();
    for (UverbsNode& node : nodes_) node.after_fork_in_child();
  }
  void at_exit() override {
    rdma_cm_->agent().end();
    runtime_.at_exit();
  }

 private:
  void start_rdma_cm() {
    // Those before it are not destroyed: they are the parent's, as are their devices.
    rdma_cm::AgentOptions options;
    options.open_device = [this](std::size_t device) { return sources_[device].acquire(); };
    options.random = [] { return std::random_device{}(); };
    options.now = &monotonic_now;
    agents_.push_back(std::make_shared<rdma_cm::CmAgent>(devices_, std::move(options)));
    rdma_cm_.emplace(agents_.back());
  }

  static int original_sigaction(int signal, const struct sigaction* wanted,
                                struct sigaction* previous) {
    return libc::sigaction(signal, wanted, previous);
  }

  const std::vector<DeviceConfig> devices_;
  Runtime runtime_;
  std::deque<RuntimeSource> sources_;
  std::deque<UverbsNode> nodes_;
  std::deque<std::shared_ptr<rdma_cm::CmAgent>> agents_;  // the last one is in use
  std::optional<rdma_cm::RdmaCmNode> rdma_cm_;
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
