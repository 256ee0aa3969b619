// What a device's objects share: its tables, counters, lists of who is due.
#pragma once

#include <cstdint>

#include "emulator/address_handle.h"
#include "emulator/counters.h"
#include "emulator/events.h"
#include "emulator/gid_table.h"
#include "emulator/intrusive_list.h"
#include "emulator/memory.h"
#include "emulator/options.h"
#include "emulator/peer.h"
#include "emulator/timers.h"
#include "emulator/work.h"

namespace urxe::emulator {

// A queue pair that has something to send.
class Transmitter : public ListLink<struct TransmitterTag> {
 protected:
  ~Transmitter() = default;
};

// A queue pair in error, with a receive queue of its own: receives may be posted there without a
// call into the device, and are to be flushed.
class Flusher : public ListLink<struct FlusherTag> {
 protected:
  ~Flusher() = default;
};

// Bytes of READ responses that the device has asked for and not yet received: they all end in its
// own socket buffer, so it asks for no more than that holds.
class ReadBudget {
 public:
  explicit ReadBudget(std::uint32_t limit) : limit_(limit) {}
  [[nodiscard]] std::uint32_t limit() const { return limit_; }
  // If nothing is outstanding, anything may be asked for.
  [[nodiscard]] bool has_room(std::uint32_t bytes) const {
    return outstanding_ == 0 || outstanding_ + bytes <= limit_;
  }
  void wait_for_room(WindowWaiter& waiter, std::uint32_t bytes) { line_.join(waiter, bytes); }
  [[nodiscard]] bool has_waiters() const { return line_.is_busy(); }
  void offer_room() {
    line_.offer([this](std::uint32_t bytes) { return has_room(bytes); });
  }
  void asked(std::uint32_t bytes) { outstanding_ += bytes; }
  void received(std::uint32_t bytes) {
    URXE_ASSERT(bytes <= outstanding_);
    outstanding_ -= bytes;
    offer_room();
  }
  [[nodiscard]] std::uint64_t outstanding() const { return outstanding_; }

 private:
  std::uint32_t limit_;
  std::uint64_t outstanding_ = 0;
  WaitingLine line_;
};

// Owner: the device, which outlives all that refers to this. Not thread-safe.
struct Engine {
  Engine(const DeviceOptions& device_options, ProgramMemory& program_memory)
      : options(device_options),
        memory(program_memory),
        keys(options.limits.max_regions, options.limits.max_windows, options.seed),
        peers(options),
        reads(options.read_window) {}

  DeviceOptions options;
  bool requests_first = false;  // Device::send_requests_first
  ProgramMemory& memory;
  KeyTable keys;
  GidTable gids;
  AddressHandleTable address_handles;
  PeerTable peers;
  ReadBudget reads;
  Counters counters;
  EventQueue events;
  Explanations explanations;
  TimerQueue timers;
  IntrusiveList<Transmitter, TransmitterTag> transmitters;
  IntrusiveList<Flusher, FlusherTag> flushers;
};

}  // namespace urxe::emulator
