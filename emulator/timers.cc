#include "emulator/timers.h"

#include <algorithm>

namespace urxe::emulator {

void TimerQueue::push(Timed& timed) {
  heap_.push_back({timed.deadline_, &timed});
  std::push_heap(heap_.begin(), heap_.end());
  timed.earliest_entry_ = timed.deadline_;
  ++timed.entries_;
}

void TimerQueue::pop() {
  std::pop_heap(heap_.begin(), heap_.end());
  Timed& timed = *heap_.back().timed;
  --timed.entries_;
  if (timed.earliest_entry_ == heap_.back().time) timed.earliest_entry_ = kNever;
  heap_.pop_back();
}

void TimerQueue::set(Timed& timed, Time deadline) {
  timed.deadline_ = deadline;
  // An entry that is too early corrects itself when it comes to the front.
  if (deadline < timed.earliest_entry_) push(timed);
}

void TimerQueue::forget(Timed& timed) {
  timed.deadline_ = kNever;
  if (timed.entries_ == 0) return;
  std::erase_if(heap_, [&timed](const Entry& entry) { return entry.timed == &timed; });
  std::make_heap(heap_.begin(), heap_.end());
  timed.entries_ = 0;
  timed.earliest_entry_ = kNever;
}

void TimerQueue::settle() {
  while (!heap_.empty()) {
    const Entry front = heap_.front();
    Timed& timed = *front.timed;
    if (timed.deadline_ == front.time) return;
    pop();
    if (timed.deadline_ < timed.earliest_entry_) push(timed);
  }
}

Time TimerQueue::next() {
  settle();
  return heap_.empty() ? kNever : heap_.front().time;
}

Timed* TimerQueue::pop_due(Time now) {
  settle();
  if (heap_.empty() || heap_.front().time > now) return nullptr;
  Timed* timed = heap_.front().timed;
  pop();
  timed->deadline_ = kNever;
  return timed;
}

}  // namespace urxe::emulator
