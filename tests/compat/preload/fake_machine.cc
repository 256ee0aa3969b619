// The composition root of a library for tests: devices that answer fake_device.h, and a connection
// manager whose descriptor is a pipe.
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/compat/preload/fake_device.h"
#include "verbs/preload/machine.h"
#include "verbs/preload/private_descriptor.h"

namespace urxe::test {
namespace {

using namespace verbs;

// Appends a line to the file that URXE_FAKE_LOG names.
void log(const std::string& line) {
  const char* path = std::getenv("URXE_FAKE_LOG");
  const int fd = path != nullptr ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;
  if (fd < 0) return;
  [[maybe_unused]] const auto written = write(fd, line.data(), line.size());
  close(fd);
}

std::atomic<int> alive{0};

class FakeFile : public EmulatedFile {
 public:
  // `kept` is a copy of the descriptor, as rdma_cm needs one to see O_NONBLOCK.
  FakeFile(dev_t number, int kept) : number_(number), kept_(kept) { ++alive; }
  FakeFile(const FakeFile&) = delete;
  FakeFile& operator=(const FakeFile&) = delete;
  ~FakeFile() override {
    --alive;
    log("closed\n");
  }

  [[nodiscard]] dev_t device_number() const override { return number_; }

  ssize_t write(const void* data, std::size_t size) override {
    errno = ERANGE;  // as by the way, in whatever a device does
    const bool good = size > 0 && *static_cast<const char*>(data) == kGood;
    return good ? static_cast<ssize_t>(size) : -EINVAL;
  }

  int ioctl(unsigned long request, void* argument) override {
    switch (request) {
      case kAnswer:
        return 42;
      case kAlive:
        return alive;
      case kBlock:
        return block(static_cast<const int*>(argument));
      case kNonblocking:
        return (fcntl(kept_.number(), F_GETFL) & O_NONBLOCK) != 0 ? 1 : 0;
      default:
        return -ENOTTY;
    }
  }

 private:
  static int block(const int* descriptors) {
    char byte = 'x';
    if (::write(descriptors[1], &byte, 1) != 1 || read(descriptors[0], &byte, 1) != 1) return -EIO;
    return 43;
  }

  const dev_t number_;
  PrivateDescriptor kept_;
};

tl::expected<OpenedFile, int> opened(int fd, dev_t number) {
  if (fd < 0) return tl::unexpected(errno);
  const int kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  return OpenedFile{.fd = fd, .file = std::make_shared<FakeFile>(number, kept)};
}

class FakeNode : public DeviceNode {
 public:
  explicit FakeNode(dev_t number) : number_(number) {}
  tl::expected<OpenedFile, int> open(int flags) override {
    if ((flags & kThrow) != 0) throw std::runtime_error("as asked for");
    if ((flags & kRefuse) != 0) return tl::unexpected(EBUSY);
    const int fd = memfd_create("urxe-fake", MFD_CLOEXEC);
    if (fd >= 0 && (flags & O_NONBLOCK) != 0) fcntl(fd, F_SETFL, O_NONBLOCK);
    return opened(fd, number_);
  }

 private:
  const dev_t number_;
};

// Its descriptor is readable when there is something to read: always.
class FakeRdmaCm : public DeviceNode {
 public:
  tl::expected<OpenedFile, int> open(int flags) override {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC | (flags & O_NONBLOCK)) != 0) return tl::unexpected(errno);
    [[maybe_unused]] const auto written = write(ends[1], "e", 1);
    close(ends[1]);
    return opened(ends[0], rdma_cm_device());
  }
};

class FakeProvider : public ConfigProvider {
 public:
  using ConfigProvider::ConfigProvider;
  // Another value each time.
  std::uint64_t counter(std::size_t, CounterSet, std::string_view) override { return ++count_; }

 private:
  std::uint64_t count_ = 0;
};

class FakeMachine : public Machine {
 public:
  explicit FakeMachine(std::vector<DeviceConfig> devices) : devices_(std::move(devices)) {
    for (const DeviceConfig& device : devices_) nodes_.emplace_back(device.uverbs_device());
    log("made\n");
  }

  [[nodiscard]] const std::vector<DeviceConfig>& devices() const override { return devices_; }
  SysfsProvider& sysfs() override { return provider_; }
  DeviceNode& uverbs(std::size_t device) override { return nodes_[device]; }
  DeviceNode* rdma_cm() override { return &rdma_cm_; }
  void before_fork() override {}
  void after_fork_in_parent() override {}
  void after_fork_in_child() override { log("forked\n"); }
  void at_exit() override { log("exit\n"); }

 private:
  const std::vector<DeviceConfig> devices_;
  std::vector<FakeNode> nodes_;
  FakeRdmaCm rdma_cm_;
  FakeProvider provider_{devices_};
};

}  // namespace
}  // namespace urxe::test

namespace urxe::verbs {

std::unique_ptr<Machine> make_machine(std::vector<DeviceConfig> devices) {
  return std::make_unique<test::FakeMachine>(std::move(devices));
}

}  // namespace urxe::verbs
