#include "emulator/events.h"

#include <algorithm>

namespace urxe::emulator {
namespace {

template <typename T>
void erase_events_of(std::deque<AsyncEvent>& events, T* source) {
  std::erase_if(events, [source](const AsyncEvent& event) {
    T* const* held = std::get_if<T*>(&event.source);
    return held != nullptr && *held == source;
  });
}

template <typename T>
std::optional<T> pop(std::deque<T>& queue) {
  if (queue.empty()) return std::nullopt;
  std::optional<T> front = queue.front();
  queue.pop_front();
  return front;
}

}  // namespace

void EventQueue::forget(CompletionQueue& cq) {
  erase_events_of(async_events_, &cq);
  std::erase(completion_events_, &cq);
}

void EventQueue::forget(QueuePair& qp) { erase_events_of(async_events_, &qp); }

void EventQueue::forget(ReceiveQueue& queue) { erase_events_of(async_events_, &queue); }

std::optional<AsyncEvent> EventQueue::poll_async_event() { return pop(async_events_); }

CompletionQueue* EventQueue::poll_completion_event() {
  return pop(completion_events_).value_or(nullptr);
}

}  // namespace urxe::emulator
