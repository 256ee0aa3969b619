// An emulated device in a running process: the sans-IO device, its way to the network, and its
// lock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <poll.h>

#include "emulator/device.h"
#include "net/wire/time.h"

namespace urxe::verbs {

// Who is told what the device has to say. Called with the device's lock held: no call back into the
// device, nothing that blocks.
class DeviceListener {
 public:
  virtual ~DeviceListener() = default;
  virtual void completion_event(emulator::CompletionQueue& cq) = 0;
  virtual void async_event(const emulator::AsyncEvent& event) = 0;

  // Whether something could not be told yet, because the descriptor that takes it is full.
  [[nodiscard]] virtual bool is_behind() const { return false; }
  // Adds the descriptors that must become writable for that.
  virtual void wait_for(std::vector<pollfd>&) const {}
  // Tells what can be told by now.
  virtual void catch_up() {}
};

// Who is told about connections. Called with the device's lock held, one event at a time; it may
// give commands to the device's connection manager.
class CmListener {
 public:
  virtual ~CmListener() = default;
  virtual void cm_event(emulator::Device& device, const emulator::CmEvent& event) = 0;
  // The device goes away under its users.
  virtual void device_removed(emulator::Device& device) = 0;
  // The device's network interface has another link address.
  virtual void link_address_changed() = 0;
};

// The outside of a hosted device, as the command handlers see it. The real one is tied to sockets,
// the clock and the progress thread; tests tie one to nothing.
class HostedDevice {
 public:
  virtual ~HostedDevice() = default;

  // Whether packets may wait a little for others, so that they leave together: while earlier ones
  // are on their way, and the program polls.
  enum class Haste : std::uint8_t { now, with_others };

  // The device, locked. When it goes out of scope, what the device wants sent is sent, its events
  // go to the listener, and the lock is released.
  class Access {
   public:
    explicit Access(HostedDevice& host, Haste haste) : host_(&host), haste_(haste) {
      host_->lock(haste);
    }
    ~Access() {
      host_->settle(haste_);
      host_->unlock();
    }
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;
    emulator::Device& operator*() const { return host_->device(); }
    emulator::Device* operator->() const { return &host_->device(); }

   private:
    HostedDevice* host_;
    Haste haste_;
  };
  [[nodiscard]] Access access(Haste haste = Haste::now) { return Access(*this, haste); }

  virtual void set_listener(DeviceListener* listener) = 0;
  void set_cm_listener(CmListener* listener) {
    const auto locked = access();
    cm_listener_ = listener;
  }
  // What happens to the device as a whole, for all who have it open.
  void report_removal() {
    const auto locked = access();
    locked->report(emulator::AsyncEventType::device_fatal);
    if (cm_listener_ != nullptr) cm_listener_->device_removed(*locked);
  }
  void report_link_address() {
    const auto locked = access();
    if (cm_listener_ != nullptr) cm_listener_->link_address_changed();
  }
  // Moves packets once, without blocking: what a polling program calls while it finds nothing.
  virtual void drive() = 0;

  // UD multicast: whether the network's packets for `group` are wanted. 0 or an errno. Only while
  // access() is held.
  virtual int join(const wire::IpAddress& group) = 0;
  virtual int leave(const wire::IpAddress& group) = 0;

 protected:
  virtual emulator::Device& device() = 0;
  virtual void lock(Haste haste) = 0;
  virtual void unlock() = 0;
  virtual void settle(Haste haste) = 0;

  // Takes the connection manager's events to the listener, with the lock held.
  void publish_cm_events() {
    emulator::Device& hosted = device();
    while (const auto event = hosted.cm().poll_event()) {
      if (cm_listener_ != nullptr) cm_listener_->cm_event(hosted, *event);
    }
  }

 private:
  CmListener* cm_listener_ = nullptr;
};

}  // namespace urxe::verbs
