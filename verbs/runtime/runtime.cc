#include "verbs/runtime/runtime.h"

#include <algorithm>
#include <cstdio>
#include <random>

#include <fmt/core.h>
#include <unistd.h>

#include "net/capture/capture_fabric.h"
#include "net/faults/fault_fabric.h"
#include "net/udp/udp_fabric.h"
#include "verbs/preload/private_descriptor.h"
#include "verbs/runtime/log.h"

namespace urxe::verbs {
namespace {

// What a socket buffer of so many bytes holds of payload: the kernel counts its own overhead, which
// for packets of a few hundred bytes is as much again.
constexpr int kBufferPerPayloadByte = 2;

emulator::DeviceOptions device_options(const DeviceConfig& config, const Settings& settings,
                                       int receive_buffer) {
  emulator::DeviceOptions options;
  options.port_mtu = emulator::mtu_within(config.active_mtu);
  options.congestion.enabled = settings.congestion;
  options.seed = std::random_device{}();
  options.node_guid = config.guid;
  options.cm_probe_interval = std::chrono::seconds(5);
  const auto room = static_cast<std::uint32_t>(receive_buffer / kBufferPerPayloadByte);
  // The peer's buffer is probably as large as ours.
  options.max_window = std::clamp(room / 2, options.min_window, options.max_window);
  options.initial_window = std::min(options.initial_window, options.max_window);
  options.read_window = std::max(room / 2, options.min_window);
  return options;
}

// The program may close every descriptor that it does not know.
class Keeper final : public net::DescriptorKeeper {
 public:
  explicit Keeper(int number) : descriptor_(number) {}
  [[nodiscard]] int number() const override { return descriptor_.number(); }

 private:
  PrivateDescriptor descriptor_;
};

std::unique_ptr<net::DescriptorKeeper> keep(int number) { return std::make_unique<Keeper>(number); }

void log_info(const std::string& sentence) { log(LogLevel::info, sentence); }

net::UdpOptions udp_options(const DeviceConfig& config, const std::vector<wire::IpAddress>& gids,
                            const Settings& settings) {
  net::UdpOptions options;
  options.keep_descriptor = &keep;
  if (logs(LogLevel::info)) options.explain = &log_info;
  if (settings.single_packets) options.segmentation = net::Segmentation::never;
  for (const wire::IpAddress& gid : gids) {
    if (gid.is_unspecified()) continue;
    options.addresses.push_back({.address = gid, .interface = config.ifindex});
  }
  return options;
}

}  // namespace

// A device that runs, and for how many.
class Runtime::Running {
 public:
  std::string name;
  int leases = 0;
  net::UdpFabric* fabric = nullptr;          // owned by the device
  const net::FaultFabric* faults = nullptr;  // likewise; null without rules
  std::shared_ptr<LiveDevice> device;

  // To standard error, whatever the log's level: it was asked for with the rules.
  [[nodiscard]] std::uint64_t fabric_counter(std::string_view counter) const {
    const auto locked = device->access();
    return fabric->counter(counter).value_or(0);
  }

  void report_faults() const {
    if (faults == nullptr) return;
    const auto locked = device->access();
    fmt::print(stderr, "urxe[{}]: faults on {}:\n{}", getpid(), name, faults->injector().summary());
  }
};

class Runtime::Lease final : public DeviceLease {
 public:
  Lease(Runtime& runtime, std::shared_ptr<Running> running)
      : runtime_(runtime), running_(std::move(running)) {}
  ~Lease() override { runtime_.release(running_); }
  [[nodiscard]] HostedDevice& device() override { return *running_->device; }
  [[nodiscard]] std::uint64_t fabric_counter(std::string_view name) override {
    return running_->fabric_counter(name);
  }
  [[nodiscard]] int claim_name(const std::string& name) override {
    const auto locked = running_->device->access();
    return running_->fabric->claim_name(name);
  }
  void release_name(const std::string& name) override {
    const auto locked = running_->device->access();
    running_->fabric->release_name(name);
  }

 private:
  Runtime& runtime_;
  std::shared_ptr<Running> running_;
};

tl::expected<std::shared_ptr<DeviceLease>, net::Error> Runtime::open(const DeviceConfig& config) {
  const std::scoped_lock lock(mutex_);
  auto found = std::find_if(running_.begin(), running_.end(),
                            [&](const auto& running) { return running->name == config.name; });
  if (found == running_.end()) {
    auto started = start(config);
    if (!started) {
      if (running_.empty()) progress_.reset();
      log(LogLevel::error,
          fmt::format("device {} cannot be opened: {}", config.name, started.error().sentence));
      return tl::unexpected(started.error());
    }
    running_.push_back(*started);
    found = std::prev(running_.end());
  }
  ++(*found)->leases;
  return std::make_shared<Lease>(*this, *found);
}

tl::expected<std::shared_ptr<Runtime::Running>, net::Error> Runtime::start(
    const DeviceConfig& config) {
  if (!FaultGuard::arm(options_.sigaction)) {
    return tl::unexpected(net::Error{EAGAIN, "the handler for memory faults cannot be installed"});
  }
  // The configuration is from when the process started.
  auto gids = first_gids(config, present_addresses(config));
  auto udp = net::UdpFabric::open(udp_options(config, gids, options_.settings));
  if (!udp) return tl::unexpected(udp.error());
  if (auto started = start_progress(); !started) return tl::unexpected(started.error());
  auto running = std::make_shared<Running>();
  running->name = config.name;
  running->fabric = udp->get();
  running->fabric->set_mad_router(&mad_router_);
  const auto options = device_options(config, options_.settings, (*udp)->receive_buffer());
  const net::Slot slot = (*udp)->slots().front().slot;
  auto fabric = decorate(*std::move(udp), *running);
  if (!fabric) return tl::unexpected(fabric.error());
  running->device = std::make_shared<LiveDevice>(
      options, emulator::QpnRange{net::first_qpn_of(slot), net::kQpnsPerSlot}, *std::move(fabric),
      *progress_, logs(LogLevel::info) ? &log_info : nullptr);
  running->device->access()->assign_gids(std::move(gids));
  running->device->follow(std::make_unique<PortFollower>(config, *running->fabric));
  running->device->look_at_port();
  progress_->add(running->device);
  return running;
}

tl::expected<void, net::Error> Runtime::start_progress() {
  if (progress_ != nullptr) return {};
  auto progress = std::make_unique<ProgressThread>();
  if (const int failed = progress->start(); failed != 0) {
    return tl::unexpected(net::Error{failed, "the progress thread cannot be started"});
  }
  progress_ = std::move(progress);
  return {};
}

// What the faults do to sent packets shows in the capture, and what the capture shows of received
// ones they are still to meet: it stands for the wire.
tl::expected<std::unique_ptr<net::Fabric>, net::Error> Runtime::decorate(
    std::unique_ptr<net::Fabric> fabric, Running& running) {
  const Settings& settings = options_.settings;
  if (settings.pcap) {
    if (capture_ == nullptr) {
      auto capture = net::CaptureFile::open(*settings.pcap,
                                            net::CaptureFile::epoch_of_monotonic_clock(), &keep);
      if (!capture) return tl::unexpected(capture.error());
      capture_ = *std::move(capture);
    }
    fabric = std::make_unique<net::CaptureFabric>(std::move(fabric), capture_);
  }
  if (!settings.faults.empty()) {
    auto faults =
        std::make_unique<net::FaultFabric>(std::move(fabric), settings.faults, settings.fault_seed);
    running.faults = faults.get();
    fabric = std::move(faults);
  }
  return fabric;
}

void Runtime::release(const std::shared_ptr<Running>& running) {
  const std::scoped_lock lock(mutex_);
  if (--running->leases > 0) return;
  if (progress_ != nullptr) progress_->remove(*running->device);
  running->report_faults();
  std::erase(running_, running);
  running->device.reset();
  if (running_.empty()) progress_.reset();
}

std::optional<emulator::Counters> Runtime::counters(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  for (const auto& running : running_) {
    if (running->name == name) return running->device->access()->counters();
  }
  return std::nullopt;
}

std::optional<emulator::CmCounters> Runtime::cm_counters(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  for (const auto& running : running_) {
    if (running->name == name) return running->device->access()->cm().counters();
  }
  return std::nullopt;
}

std::uint64_t Runtime::fabric_counter(const std::string& name, std::string_view counter) {
  const std::scoped_lock lock(mutex_);
  for (const auto& running : running_) {
    if (running->name == name) return running->fabric_counter(counter);
  }
  return 0;
}

std::optional<std::vector<wire::IpAddress>> Runtime::gids(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  for (const auto& running : running_) {
    if (running->name == name) return running->device->gids();
  }
  return std::nullopt;
}

void Runtime::at_exit() {
  const std::scoped_lock lock(mutex_);
  for (const auto& running : running_) {
    running->device->at_exit();
    running->report_faults();
  }
}

// --- fork

void Runtime::before_fork() {
  mutex_.lock();
  for (const auto& running : running_) running->device->before_fork();
}

void Runtime::after_fork_in_parent() {
  for (const auto& running : running_) running->device->after_fork_in_parent();
  mutex_.unlock();
}

void Runtime::after_fork_in_child() {
  for (const auto& running : running_) running->device->after_fork_in_child();
  // Leases of the parent's files keep what they point to; nobody uses it.
  running_.clear();
  capture_.reset();
  if (progress_ != nullptr) progress_->abandon();
  progress_.release();
  mutex_.unlock();
}

}  // namespace urxe::verbs
