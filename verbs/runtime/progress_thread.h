// The thread that moves packets when the program does not.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <poll.h>
#include <pthread.h>

#include "net/wire/time.h"
#include "verbs/preload/own_mutex.h"
#include "verbs/preload/private_descriptor.h"
#include "verbs/runtime/control_socket.h"
#include "verbs/runtime/link_watch.h"
#include "verbs/runtime/live_device.h"

namespace urxe::verbs {

// One per process, from the first device that is opened to the last that is closed. Sleeps in the
// kernel until packets or a deadline come; spins for microseconds, and within a stream only. A
// program that polls its completion queues moves the packets itself, and it would only be
// disturbed: then the thread looks after the device from time to time, and takes over when the
// polling ends.
class ProgressThread final : public ProgressWaker {
 public:
  ProgressThread() = default;
  ~ProgressThread() override;
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // 0, or the errno of what could not be had. Signals stay with the program's threads.
  int start();
  // Ends the thread and waits for it. Not to be called in a forked child.
  void stop();

  // In a forked child, which has no such thread: closes the descriptors.
  void abandon();

  void add(std::shared_ptr<LiveDevice> device);
  // When it returns, the thread no longer knows the device.
  void remove(const LiveDevice& device);

  void arm(Time deadline) override;
  void wake() override;

 private:
  static void* entry(void* self);
  void run();
  // Waits; true if sockets were among what was waited for.
  bool wait(const std::vector<std::shared_ptr<LiveDevice>>& devices);
  void serve(const std::vector<std::shared_ptr<LiveDevice>>& devices, bool by_socket);
  static LiveDevice::Turn serve_once(const std::vector<std::shared_ptr<LiveDevice>>& devices,
                                     std::size_t hold_from);
  // Goes on while packets come and the program does not poll.
  void linger(const std::vector<std::shared_ptr<LiveDevice>>& devices, Time since);
  void set_yields(const std::vector<std::shared_ptr<LiveDevice>>& devices, bool yields);
  void rearm(const std::vector<std::shared_ptr<LiveDevice>>& devices);
  void clear_wake_descriptors();
  void serve_requests(const std::vector<std::shared_ptr<LiveDevice>>& devices);
  void follow_links(const std::vector<std::shared_ptr<LiveDevice>>& devices);
  [[nodiscard]] static bool is_polled(const std::vector<std::shared_ptr<LiveDevice>>& devices,
                                      Time since);
  // Whether a thread of the program is at work in a device or was so a moment ago: polling, or
  // posting, after which it polls soon.
  [[nodiscard]] static bool is_moved_by_program(
      const std::vector<std::shared_ptr<LiveDevice>>& devices, Time now);
  bool watch(const std::vector<std::shared_ptr<LiveDevice>>& devices, Time then);
  [[nodiscard]] std::vector<std::shared_ptr<LiveDevice>> devices();

  pthread_t thread_{};
  bool running_ = false;
  std::atomic<bool> stopping_{false};
  std::optional<PrivateDescriptor> timer_;  // timerfd
  std::optional<PrivateDescriptor> wake_;   // eventfd
  LinkWatch links_;
  ControlSocket control_;

  OwnMutex mutex_;  // over devices_, armed_ and rounds_
  std::condition_variable_any round_ended_;
  std::uint64_t rounds_ = 0;  // how often the thread asked which devices there are
  std::vector<std::shared_ptr<LiveDevice>> devices_;
  Time armed_ = kNever;  // when the timer wakes the thread

  // Only the thread itself uses these.
  std::vector<pollfd> descriptors_;
  bool yields_ = false;             // the program polls: stay out of its way
  std::uint32_t disturbances_ = 0;  // in a row: it was woken while the program polled
  Duration linger_{};               // how long it looks for more of a stream
  Duration takeover_{};             // how long no poll must have come before taking over
  Time look_due_{};                 // when its sleep while it yields was to end
};

}  // namespace urxe::verbs
