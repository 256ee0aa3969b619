// The composition root of liburxe.so.
#include "verbs/preload/machine.h"

#include <cerrno>

#include <sys/mman.h>

namespace urxe::verbs {
namespace {

// A device that can be seen and opened, and refuses every command.
class SilentFile : public EmulatedFile {
 public:
  explicit SilentFile(dev_t number) : number_(number) {}
  [[nodiscard]] dev_t device_number() const override { return number_; }
  ssize_t write(const void*, std::size_t) override { return -ENOSYS; }
  int ioctl(unsigned long, void*) override { return -ENOTTY; }

 private:
  const dev_t number_;
};

class SilentNode : public DeviceNode {
 public:
  explicit SilentNode(dev_t number) : number_(number) {}
  tl::expected<OpenedFile, int> open(int) override {
    const int fd = memfd_create("urxe", MFD_CLOEXEC);
    if (fd < 0) return tl::unexpected(errno);
    return OpenedFile{.fd = fd, .file = std::make_shared<SilentFile>(number_)};
  }

 private:
  const dev_t number_;
};

class SilentMachine : public Machine {
 public:
  explicit SilentMachine(std::vector<DeviceConfig> devices) : devices_(std::move(devices)) {
    for (const DeviceConfig& device : devices_) nodes_.emplace_back(device.uverbs_device());
  }

  [[nodiscard]] const std::vector<DeviceConfig>& devices() const override { return devices_; }
  SysfsProvider& sysfs() override { return provider_; }
  DeviceNode& uverbs(std::size_t device) override { return nodes_[device]; }
  DeviceNode* rdma_cm() override { return nullptr; }
  void before_fork() override {}
  void after_fork_in_parent() override {}
  void after_fork_in_child() override {}
  void at_exit() override {}

 private:
  const std::vector<DeviceConfig> devices_;
  std::vector<SilentNode> nodes_;
  ConfigProvider provider_{devices_};
};

}  // namespace

std::unique_ptr<Machine> make_machine(std::vector<DeviceConfig> devices) {
  return std::make_unique<SilentMachine>(std::move(devices));
}

}  // namespace urxe::verbs
