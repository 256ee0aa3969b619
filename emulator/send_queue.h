// A queue pair's send requests from the ring to the completion queue.
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/qp_context.h"
#include "emulator/ring.h"
#include "emulator/work.h"
#include "net/wire/numbers.h"

namespace urxe::emulator {

// A send request that was taken from the ring and has not completed.
struct Work {
  SendRequest request;
  wire::Psn first_psn;           // once started
  std::uint32_t packets = 0;     // PSNs that it takes; 0: not started
  std::uint32_t read_piece = 1;  // READ: packets that one request on the wire asks for
  bool done = false;             // its outcome is known; it completes when all before it have
  CompletionStatus status = CompletionStatus::success;
  VendorError vendor_error = VendorError::none;

  [[nodiscard]] bool started() const { return packets != 0; }
  [[nodiscard]] wire::Psn end_psn() const { return first_psn + packets; }
  [[nodiscard]] bool is_read() const { return request.opcode == WorkOpcode::rdma_read; }
  [[nodiscard]] bool is_atomic() const {
    return request.opcode == WorkOpcode::compare_swap || request.opcode == WorkOpcode::fetch_add;
  }
  // IBTA 1.5, annex A19.
  [[nodiscard]] bool is_placement() const {
    return request.opcode == WorkOpcode::flush || request.opcode == WorkOpcode::atomic_write;
  }
  // Its response brings data for its list.
  [[nodiscard]] bool fetches() const { return is_read() || is_atomic(); }
  // It completes with a response of its own, not with an acknowledgement.
  [[nodiscard]] bool needs_response() const { return fetches() || is_placement(); }
  [[nodiscard]] bool is_local() const {
    return request.opcode == WorkOpcode::local_invalidate ||
           request.opcode == WorkOpcode::bind_window;
  }
  void finish(CompletionStatus outcome, VendorError why = VendorError::none) {
    done = true;
    status = outcome;
    vendor_error = why;
  }
};

// Work has an ordinal: the n-th request of this queue pair since it was reset (modulo 2^32).
//
// Owner: the queue pair. Who touches what of a request, docs/architecture.md has in a table.
class SendQueue {
 public:
  SendQueue(QpContext& context, SendSource& source) : context_(context), source_(source) {}

  [[nodiscard]] std::uint32_t oldest() const { return oldest_; }
  [[nodiscard]] std::uint32_t end() const { return oldest_ + works_.size(); }
  [[nodiscard]] bool empty() const { return works_.empty(); }
  [[nodiscard]] bool holds(std::uint32_t ordinal) const {
    return ordinal - oldest_ < works_.size();
  }
  [[nodiscard]] Work& at(std::uint32_t ordinal) {
    URXE_ASSERT(holds(ordinal));
    return works_[ordinal - oldest_];
  }

  // Takes the next request from the ring. False if there is none.
  bool take();
  // Completes what is done, oldest first, as far as there is no gap. True if one completed in
  // error: what follows it must be flushed.
  bool complete();
  // Completes everything that is left as flushed, also what was never taken.
  void flush();
  // Forgets everything without completions (RESET).
  void clear();

 private:
  void push_completion(const Work& work);
  void count(const Work& work);

  QpContext& context_;
  SendSource& source_;
  Ring<Work> works_;
  std::uint32_t oldest_ = 0;
};

}  // namespace urxe::emulator
