// All that one opened uverbs file has.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "verbs/config/device_config.h"
#include "verbs/rings/ring_memory.h"
#include "verbs/runtime/device_lease.h"
#include "verbs/runtime/hosted_device.h"
#include "verbs/uverbs/dispatcher.h"
#include "verbs/uverbs/objects.h"

namespace urxe::verbs::uverbs {

// Owner: the file. Whoever uses it holds the device's lock, but for host().
class Context {
 public:
  // Makes `dispatcher` the device's listener. `config` outlives the context.
  Context(const DeviceConfig& config, std::shared_ptr<DeviceLease> lease,
          std::shared_ptr<Dispatcher> dispatcher, std::shared_ptr<RingMemory> rings);
  // Destroys all that is left.
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] HostedDevice& host() { return lease_->device(); }

  [[nodiscard]] const DeviceConfig& config() const { return config_; }
  [[nodiscard]] emulator::Device& device() { return device_; }
  [[nodiscard]] Dispatcher& dispatcher() { return *dispatcher_; }
  [[nodiscard]] RingMemory& rings() { return *rings_; }
  [[nodiscard]] ObjectTable& objects() { return objects_; }

  // The program's GET_CONTEXT: nothing can be created before, and there is no second.
  [[nodiscard]] bool is_established() const { return established_; }
  void establish() { established_ = true; }
  [[nodiscard]] Status need_context() const;

  // --- channels

  enum class ChannelUse : std::uint8_t { completions, async };
  // Returns the program's descriptor. The first asynchronous one is the default.
  Outcome<int> open_channel(ChannelUse use);
  // Undoes open_channel.
  void close_channel(int fd);
  // The channel behind a descriptor of the program's: EBADF if there is none.
  [[nodiscard]] Outcome<std::shared_ptr<EventChannel>> channel(ChannelUse use, int fd) const;
  [[nodiscard]] const std::shared_ptr<EventChannel>& default_async() const {
    return default_async_;
  }

  // --- objects

  struct Reported {
    std::uint32_t completion_events = 0;
    std::uint32_t async_events = 0;
  };
  // A queue pair gets the packets of a multicast group, or no more.
  Status attach(QpObject& object, const wire::IpAddress& group);
  Status detach(QpObject& object, const wire::IpAddress& group);
  // EBUSY while others need it. The events that the program read, or will read, of it.
  Outcome<Reported> destroy(Object& object);

 private:
  struct Channel {
    ChannelUse use;
    std::shared_ptr<EventChannel> channel;
  };
  void sweep_channels();
  Status destroy_on_device(Object& object);
  void destroy_all();
  void tell_what_is_left() const;

  const DeviceConfig& config_;
  std::shared_ptr<DeviceLease> lease_;
  std::shared_ptr<Dispatcher> dispatcher_;
  emulator::Device& device_;
  std::shared_ptr<RingMemory> rings_;
  ObjectTable objects_;
  std::vector<Channel> channels_;
  std::size_t sweep_at_ = 8;  // so many channels: look which of them the program has closed
  std::shared_ptr<EventChannel> default_async_;
  bool established_ = false;
};

}  // namespace urxe::verbs::uverbs
