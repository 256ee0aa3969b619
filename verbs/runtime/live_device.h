// A device that runs: tied to a network, the clock, and the progress thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>

#include "net/fabric.h"
#include "verbs/preload/own_mutex.h"
#include "verbs/runtime/guarded_memory.h"
#include "verbs/runtime/hosted_device.h"
#include "verbs/runtime/port_follower.h"

namespace urxe::verbs {

// CLOCK_MONOTONIC.
[[nodiscard]] Time monotonic_now();

// Told from within a device's lock that the progress thread must act earlier than it knows.
class ProgressWaker {
 public:
  virtual ~ProgressWaker() = default;
  // There is a deadline, earlier than any that was announced before.
  virtual void arm(Time deadline) = 0;
  // The set of descriptors changed, or the device.
  virtual void wake() = 0;
};

// Where sentences for people go.
using SentenceSink = void (*)(const std::string& sentence);

// Three kinds of thread come in here: one that posts (a command), one that polls (drive), and the
// progress thread (serve). The lock is held in all of them while the device works.
class LiveDevice final : public HostedDevice, private net::Receiver {
 public:
  LiveDevice(const emulator::DeviceOptions& options, emulator::QpnRange qpns,
             std::unique_ptr<net::Fabric> fabric, ProgressWaker& waker, SentenceSink sentences);

  void set_listener(DeviceListener* listener) override { listener_ = listener; }
  void drive() override;
  // Sends what waits for others. The program ends, by exit or by return from main.
  void at_exit() { const Access all = access(); }
  int join(const wire::IpAddress& group) override { return fabric_->join(group); }
  int leave(const wire::IpAddress& group) override { return fabric_->leave(group); }

  // Around a fork: the lock is held, so that the child's copy is whole. The child's copy is dead:
  // it closes its descriptors and is never used again.
  void before_fork() { mutex_.lock(); }
  void after_fork_in_parent() { mutex_.unlock(); }
  void after_fork_in_child();

  // The port follows its interface from now on; before the progress thread knows the device.
  void follow(std::unique_ptr<PortFollower> port) { port_ = std::move(port); }
  [[nodiscard]] std::vector<wire::IpAddress> gids();

  // --- for the progress thread

  [[nodiscard]] bool has_name(std::string_view name) const {
    return port_ != nullptr && port_->config().name == name;
  }
  // The event happens, because somebody asked for it.
  void raise(emulator::AsyncEventType event);
  // Something changed about network interfaces.
  void look_at_port();

  // Moves packets once, as drive does. If at least `hold_from` came, more are likely to follow, and
  // what they give rise to may wait for those: then the caller comes again soon.
  struct Turn {
    std::size_t packets = 0;    // that came
    bool has_requests = false;  // not only answers to what the program posted
    bool has_events = false;    // somebody sleeps until a completion comes
  };
  Turn serve(std::size_t hold_from);
  void wait_for(std::vector<pollfd>& descriptors);
  // When a program last posted sends.
  [[nodiscard]] Time last_posted() const {
    return Time{Duration{last_posted_.load(std::memory_order_relaxed)}};
  }
  // Whether a program's thread is at work here at this moment, or waits for the lock.
  [[nodiscard]] bool is_in_use() const { return users_.load(std::memory_order_relaxed) != 0; }
  // While it is watched, the thread looks after the device within ProgressThread::kLastTakeover
  // even if nothing wakes it: packets may wait that long.
  void set_watched(bool watched) { is_watched_.store(watched); }
  // When serve must be called at the latest.
  [[nodiscard]] Time deadline();
  // When a program last looked for completions and found none: it moves the packets itself.
  [[nodiscard]] Time last_polled() const {
    return Time{Duration{last_polled_.load(std::memory_order_relaxed)}};
  }

 private:
  emulator::Device& device() override { return device_; }
  void lock(Haste haste) override;
  void unlock() override {
    mutex_.unlock();
    users_.fetch_sub(1, std::memory_order_relaxed);
  }
  void settle(Haste haste) override;

  void on_packet(Time now, const wire::Inbound& packet) override;
  void on_unreachable(Time now, const wire::IpAddress& destination) override {
    device_.cm().handle_unreachable(now, destination);
  }
  Turn move_packets(Time now);
  // Lets the device write its packets; the fabric sends those that fill a batch.
  void collect(Time now);
  void flush(Time now);
  void answer(Time now);
  void publish();
  void give_way(bool idle);
  void give_way_to_mover();
  void catch_up();
  [[nodiscard]] Time next_deadline();

  OwnMutex mutex_;
  GuardedMemory memory_;
  emulator::Device device_;
  std::unique_ptr<net::Fabric> fabric_;
  std::unique_ptr<PortFollower> port_;  // null: nothing changes
  ProgressWaker& waker_;
  SentenceSink sentences_;
  DeviceListener* listener_ = nullptr;
  bool listener_is_behind_ = false;
  std::atomic<Duration::rep> last_polled_{0};
  std::atomic<Duration::rep> last_posted_{0};
  std::atomic<std::uint32_t> idle_polls_{0};  // in a row
  std::atomic<std::uint32_t> vain_polls_{0};  // in a row, for another thread held the lock
  Time announced_ = kNever;  // the earliest deadline that the progress thread knows of
  std::atomic<int> users_{0};
  std::atomic<bool> is_watched_{false};
  bool turn_has_requests_ = false;
  std::size_t unanswered_ = 0;  // packets that came since the device last wrote its own
  bool holds_packets_ = false;  // the fabric has some that were not flushed
  bool fabric_is_full_ = false;
};

}  // namespace urxe::verbs
