// One opened /dev/infiniband/uverbsN.
#pragma once

#include <memory>
#include <optional>

#include "verbs/emulated_file.h"
#include "verbs/uverbs/command_table.h"
#include "verbs/uverbs/context.h"

namespace urxe::verbs {

// Which of the kernel's two ways to give commands a file knows.
enum class UverbsAbi : std::uint8_t {
  both,
  write_only,  // ioctl is ENOTTY, as on kernels before 4.20
};

// Commands run with the device's lock held, one at a time. A refused command gives one sentence in
// the log (info).
class UverbsFile final : public EmulatedFile {
 public:
  UverbsFile(const DeviceConfig& config, std::shared_ptr<DeviceLease> lease,
             std::shared_ptr<uverbs::Dispatcher> dispatcher, std::shared_ptr<RingMemory> rings,
             UverbsAbi abi)
      : config_(config),
        context_(config, std::move(lease), std::move(dispatcher), std::move(rings)),
        abi_(abi) {}

  [[nodiscard]] dev_t device_number() const override { return config_.uverbs_device(); }
  ssize_t write(const void* data, std::size_t size) override;
  int ioctl(unsigned long request, void* argument) override;
  void drive() override { context_.host().drive(); }

 private:
  uverbs::Status run_write(std::uint64_t data, std::size_t size);
  // What a posting program calls for each ibv_post_send. Nothing if it is something else.
  std::optional<uverbs::Status> run_doorbell(std::uint64_t data, std::size_t size);
  // A negative errno, or 0.
  int finish(const uverbs::Status& status, const char* how) const;

  const DeviceConfig& config_;
  uverbs::Context context_;
  const UverbsAbi abi_;
};

}  // namespace urxe::verbs
