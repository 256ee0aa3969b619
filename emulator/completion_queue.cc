#include "emulator/completion_queue.h"

#include <algorithm>

namespace urxe::emulator {

void CompletionQueue::request_notification(Notify notify) { armed_ = std::max(armed_, notify); }

void CompletionQueue::push(const Completion& completion, bool solicited) {
  if (!sink_->push(completion)) return overflow(completion);
  const bool wanted =
      armed_ == Notify::any || (armed_ == Notify::solicited &&
                                (solicited || completion.status != CompletionStatus::success));
  if (!wanted) return;
  armed_ = Notify::nothing;
  events_.add_completion_event(*this);
}

void CompletionQueue::overflow(const Completion& completion) {
  if (overflowed_) return;
  overflowed_ = true;
  events_.add({AsyncEventType::cq_error, this});
  explanations_.add(
      "QP {:#x}: its completion (wr_id {:#x}) is lost, because the completion queue is full: a "
      "queue "
      "needs an entry for every request that can be outstanding, or faster polling",
      completion.qpn.value(), completion.wr_id);
}

}  // namespace urxe::emulator
