#include "emulator/send_queue.h"

namespace urxe::emulator {
namespace {

CompletionOpcode completion_opcode(WorkOpcode opcode) {
  switch (opcode) {
    case WorkOpcode::rdma_write:
    case WorkOpcode::rdma_write_with_immediate:
      return CompletionOpcode::rdma_write;
    case WorkOpcode::send:
    case WorkOpcode::send_with_immediate:
    case WorkOpcode::send_with_invalidate:
      return CompletionOpcode::send;
    case WorkOpcode::rdma_read:
      return CompletionOpcode::rdma_read;
    case WorkOpcode::compare_swap:
      return CompletionOpcode::compare_swap;
    case WorkOpcode::fetch_add:
      return CompletionOpcode::fetch_add;
    case WorkOpcode::local_invalidate:
      return CompletionOpcode::local_invalidate;
    case WorkOpcode::bind_window:
      return CompletionOpcode::bind_window;
    case WorkOpcode::flush:
      return CompletionOpcode::flush;
    case WorkOpcode::atomic_write:
      return CompletionOpcode::atomic_write;
  }
  return CompletionOpcode::send;  // a ring held another number; the status says that it failed
}

}  // namespace

bool SendQueue::take() {
  Work& work = works_.push_slot();
  work = Work{};
  if (source_.take(work.request)) return true;
  works_.pop_back();
  return false;
}

void SendQueue::push_completion(const Work& work) {
  const SendRequest& request = work.request;
  const bool wanted = context_.signal_all || request.flags.has(kSignaled) ||
                      work.status != CompletionStatus::success;
  if (!wanted) return;
  context_.send_cq->push(
      Completion{
          .wr_id = request.wr_id,
          .status = work.status,
          .opcode = completion_opcode(request.opcode),
          .vendor_error = static_cast<std::uint32_t>(work.vendor_error),
          .byte_count = static_cast<std::uint32_t>(request.length),
          .qpn = context_.qpn,
      },
      false);
}

void SendQueue::count(const Work& work) {
  Counters& counters = context_.engine.counters;
  if (work.status != CompletionStatus::success) return;
  switch (completion_opcode(work.request.opcode)) {
    case CompletionOpcode::send:
      ++counters.completed_sends;
      break;
    case CompletionOpcode::rdma_write:
      ++counters.completed_writes;
      break;
    case CompletionOpcode::rdma_read:
      ++counters.completed_reads;
      break;
    case CompletionOpcode::compare_swap:
    case CompletionOpcode::fetch_add:
      ++counters.completed_atomics;
      break;
    default:
      break;
  }
}

bool SendQueue::complete() {
  while (!works_.empty() && works_.front().done) {
    const Work& work = works_.front();
    const bool failed = work.status != CompletionStatus::success;
    // The slot is free before the completion shows: who sees the completion may post at once.
    source_.retire(1);
    push_completion(work);
    count(work);
    works_.pop_front();
    ++oldest_;
    if (failed) return true;
  }
  return false;
}

void SendQueue::flush() {
  do {
    for (std::uint32_t i = 0; i < works_.size(); ++i) {
      works_[i].finish(CompletionStatus::flushed, VendorError::flushed_by_error);
    }
    while (!works_.empty()) complete();
  } while (take());
  works_.release();
}

void SendQueue::clear() {
  oldest_ += works_.size();
  works_.release();
  source_.clear();
}

}  // namespace urxe::emulator
