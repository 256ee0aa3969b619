// Virtual time: who acts when.
#pragma once

#include <cstdint>
#include <vector>

#include "net/wire/time.h"

namespace urxe::net {

class Simulation;

// Something that acts at a time that it was scheduled for: one time at most. It leaves the
// simulation when it dies.
class Actor {
 public:
  Actor() = default;
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;
  virtual ~Actor();

  virtual void act(Time now) = 0;
  [[nodiscard]] Time due() const { return due_; }

 private:
  friend class Simulation;
  Simulation* simulation_ = nullptr;
  Time due_ = kNever;
  std::uint64_t ticket_ = 0;  // of the one entry in the queue that counts
};

// Runs actors in the order of their times, and those of one time in the order in which they were
// scheduled. Nothing else moves the clock, so one seed makes one run. Not thread-safe.
class Simulation {
 public:
  [[nodiscard]] Time now() const { return now_; }

  // A time that has passed means now, kNever means not at all. Replaces what the actor was
  // scheduled for.
  void schedule(Actor& actor, Time when);
  // The same, but never later than what it is scheduled for already.
  void schedule_at_latest(Actor& actor, Time when) {
    if (when < actor.due_) schedule(actor, when);
  }
  // When somebody acts next; kNever if nobody will.
  [[nodiscard]] Time next();
  // Lets one actor act. False if there is none.
  bool step();
  // Lets all act whose time comes before or at `end`; it is `end` then.
  void run_until(Time end);
  [[nodiscard]] std::uint64_t steps() const { return steps_; }

 private:
  struct Entry {
    Time time;
    std::uint64_t ticket;
    Actor* actor;
    friend bool operator<(const Entry& a, const Entry& b) {
      return a.time != b.time ? a.time > b.time : a.ticket > b.ticket;
    }
  };
  friend class Actor;
  void drop_stale();
  void forget(const Actor& actor);

  Time now_{};
  std::uint64_t tickets_ = 0;
  std::uint64_t steps_ = 0;
  std::vector<Entry> heap_;
};

}  // namespace urxe::net
