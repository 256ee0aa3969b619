// A completion queue and its completion channel's rules (IBTA 10.8, 11.4.2.2).
#pragma once

#include <cstdint>

#include "emulator/events.h"
#include "emulator/use_count.h"
#include "emulator/work.h"

namespace urxe::emulator {

// What a program asked to be told about (ib_cq_notify_flags).
enum class Notify : std::uint8_t { nothing, solicited, any };

// Owner: the device. The entries themselves live in the sink.
class CompletionQueue : public Shared {
 public:
  CompletionQueue(EventQueue& events, Explanations& explanations, CompletionSink& sink)
      : events_(events), explanations_(explanations), sink_(&sink) {}

  // Arms the queue: the next completion (or the next solicited or failed one) makes one event.
  // Asking for less than what is armed changes nothing (IBTA C11-32).
  void request_notification(Notify notify);

  // Adds a completion. `solicited`: it is of a receive whose sender asked for an event.
  void push(const Completion& completion, bool solicited);

  void replace_sink(CompletionSink& sink) { sink_ = &sink; }
  // An overflow lost completions: the queue is of no more use (IBTA C10-87).
  [[nodiscard]] bool overflowed() const { return overflowed_; }
  [[nodiscard]] Notify armed() const { return armed_; }

 private:
  void overflow(const Completion& completion);

  EventQueue& events_;
  Explanations& explanations_;
  CompletionSink* sink_;
  Notify armed_ = Notify::nothing;
  bool overflowed_ = false;
};

}  // namespace urxe::emulator
