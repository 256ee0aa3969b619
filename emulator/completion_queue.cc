#include "emulator/completion_queue.h"

#include <algorithm>

namespace urxe::emulator {

void CompletionQueue::request_notification(Notify notify) { armed_ = std::max(armed_, notify); }

void CompletionQueue::push(const Completion& completion, bool solicited) {
  if (!sink_->push(completion)) {
    if (!overflowed_) events_.add({AsyncEventType::cq_error, this});
    overflowed_ = true;
    return;
  }
  const bool wanted =
      armed_ == Notify::any || (armed_ == Notify::solicited &&
                                (solicited || completion.status != CompletionStatus::success));
  if (!wanted) return;
  armed_ = Notify::nothing;
  events_.add_completion_event(*this);
}

}  // namespace urxe::emulator
