// Where receive requests come from: a queue pair's own queue, or one that several share (SRQ).
#pragma once

#include <cstdint>

#include "emulator/events.h"
#include "emulator/memory.h"
#include "emulator/use_count.h"
#include "emulator/work.h"

namespace urxe::emulator {

// Owner: the device (shared) or the queue pair. Not thread-safe.
class ReceiveQueue : public Shared {
 public:
  ReceiveQueue(EventQueue& events, ReceiveSource& source) : events_(events), source_(&source) {}

  [[nodiscard]] bool take(ReceiveRequest& request) {
    if (!source_->take(request)) return false;
    check_limit();
    return true;
  }
  [[nodiscard]] ReceiveSource& source() const { return *source_; }
  void replace_source(ReceiveSource& source) { source_ = &source; }

  // Raises SRQ_LIMIT_REACHED once when fewer than `limit` requests are left; 0 disarms
  // (IBTA 10.2.9.3).
  void arm_limit(std::uint32_t limit) { limit_ = limit; }
  [[nodiscard]] std::uint32_t limit() const { return limit_; }

 private:
  void check_limit() {
    if (limit_ == 0 || source_->posted() >= limit_) return;
    limit_ = 0;
    events_.add({AsyncEventType::srq_limit_reached, this});
  }

  EventQueue& events_;
  ReceiveSource* source_;
  std::uint32_t limit_ = 0;
};

class SharedReceiveQueue : public ReceiveQueue {
 public:
  SharedReceiveQueue(ProtectionDomain& pd, EventQueue& events, ReceiveSource& source,
                     std::uint32_t number)
      : ReceiveQueue(events, source), pd_(pd), number_(number) {}
  [[nodiscard]] ProtectionDomain& pd() const { return *pd_; }
  [[nodiscard]] std::uint32_t number() const { return number_; }

 private:
  Use<ProtectionDomain> pd_;
  std::uint32_t number_;
};

}  // namespace urxe::emulator
