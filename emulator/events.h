// What the device has to tell besides packets: completion events, asynchronous events, and
// sentences that explain errors. They wait here until the owner takes them, after the outermost
// call.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/core.h>

#include "emulator/types.h"

namespace urxe::emulator {

class CompletionQueue;
class QueuePair;
class ReceiveQueue;

// An asynchronous event (IBTA 11.6.3): of a port, or of the object that `source` points to.
struct AsyncEvent {
  AsyncEventType type{};
  std::variant<std::monostate, CompletionQueue*, QueuePair*, ReceiveQueue*> source;
};

class EventQueue {
 public:
  void add_completion_event(CompletionQueue& cq) { completion_events_.push_back(&cq); }
  void add(const AsyncEvent& event) { async_events_.push_back(event); }
  // An object is about to die: nothing may refer to it any more.
  void forget(CompletionQueue& cq);
  void forget(QueuePair& qp);
  void forget(ReceiveQueue& queue);

  [[nodiscard]] std::optional<AsyncEvent> poll_async_event();
  [[nodiscard]] CompletionQueue* poll_completion_event();  // nullptr if there is none
  [[nodiscard]] bool empty() const { return completion_events_.empty() && async_events_.empty(); }

 private:
  std::deque<AsyncEvent> async_events_;
  std::deque<CompletionQueue*> completion_events_;
};

// Sentences for people, in the order in which things happened. Only kept if somebody listens.
class Explanations {
 public:
  void listen(bool on) { on_ = on; }
  [[nodiscard]] bool on() const { return on_; }

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    if (on_) sentences_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  // Takes what has gathered.
  [[nodiscard]] std::vector<std::string> take() { return std::exchange(sentences_, {}); }
  [[nodiscard]] bool empty() const { return sentences_.empty(); }

 private:
  std::vector<std::string> sentences_;
  bool on_ = false;
};

}  // namespace urxe::emulator
