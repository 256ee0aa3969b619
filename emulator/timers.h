// Deadlines of queue pairs. No callbacks: the device asks who is due.
#pragma once

#include <cstdint>
#include <vector>

#include "net/wire/time.h"

namespace urxe::emulator {

// The part of a queue pair that the timer queue keeps.
class Timed {
 public:
  [[nodiscard]] Time deadline() const { return deadline_; }

 private:
  friend class TimerQueue;
  Time deadline_ = kNever;
  Time earliest_entry_ = kNever;  // of the heap entries that point here, as far as known
  std::uint32_t entries_ = 0;
};

// A heap of (time, object) entries that is corrected lazily: moving a deadline later, which every
// acknowledgement does, touches only the object.
class TimerQueue {
 public:
  void set(Timed& timed, Time deadline);
  void forget(Timed& timed);

  // The earliest deadline of all; kNever if there is none.
  [[nodiscard]] Time next();
  // Takes one object whose deadline has come (it has none then); nullptr if there is none.
  [[nodiscard]] Timed* pop_due(Time now);

 private:
  struct Entry {
    Time time;
    Timed* timed;
    friend bool operator<(const Entry& a, const Entry& b) { return a.time > b.time; }
  };
  void push(Timed& timed);
  void pop();
  // Makes the front entry a true one: its object's deadline is its time.
  void settle();

  std::vector<Entry> heap_;
};

}  // namespace urxe::emulator
