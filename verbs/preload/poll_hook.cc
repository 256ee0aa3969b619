#include "verbs/preload/poll_hook.h"

#include <atomic>
#include <cerrno>

#include <infiniband/verbs.h>

#include "verbs/preload/descriptor_table.h"
#include "verbs/preload/quiet.h"

namespace urxe::verbs {
namespace {

using PollCq = int (*)(ibv_cq*, int, ibv_wc*);
using StartPoll = int (*)(ibv_cq_ex*, ibv_poll_cq_attr*);
using CreateCqEx = ibv_cq_ex* (*)(ibv_context*, ibv_cq_init_attr_ex*);

// The provider's own operations. All of our contexts are served by one provider, so there is one of
// each; a context that had others is not hooked.
std::atomic<PollCq> provider_poll_cq{nullptr};
std::atomic<StartPoll> provider_start_poll{nullptr};
std::atomic<CreateCqEx> provider_create_cq_ex{nullptr};

// Whether `operation` is the one that is remembered, or the first of its kind, and now it is.
template <typename Operation>
bool remember(std::atomic<Operation>& remembered, Operation operation) {
  Operation expected = nullptr;
  return remembered.compare_exchange_strong(expected, operation) || expected == operation;
}

[[gnu::noinline]] void drive(const ibv_context& context) {
  const auto reference = descriptors.find(context.cmd_fd);
  if (!reference || reference.is_private()) return;
  EmulatedFile* const file = reference.file();
  if (file == nullptr) return;
  const Quiet quiet;
  file->drive();
}

int poll_cq(ibv_cq* cq, int entries, ibv_wc* completions) {
  const PollCq poll = provider_poll_cq.load(std::memory_order_relaxed);
  const int got = poll(cq, entries, completions);
  if (got != 0 || entries <= 0) return got;
  drive(*cq->context);
  return poll(cq, entries, completions);
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attributes) {
  const StartPoll start = provider_start_poll.load(std::memory_order_relaxed);
  const int result = start(cq, attributes);
  if (result != ENOENT) return result;
  drive(*cq->context);
  return start(cq, attributes);
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  ibv_cq_ex* const cq = provider_create_cq_ex.load(std::memory_order_relaxed)(context, attributes);
  if (cq != nullptr && cq->start_poll != nullptr && remember(provider_start_poll, cq->start_poll)) {
    cq->start_poll = &start_poll;
  }
  return cq;
}

}  // namespace

void hook_polling(ibv_context& context) noexcept {
  if (!descriptors.holds(context.cmd_fd)) return;
  if (context.ops.poll_cq != nullptr && remember(provider_poll_cq, context.ops.poll_cq)) {
    context.ops.poll_cq = &poll_cq;
  }
  verbs_context* const extended = verbs_get_ctx(&context);
  if (extended == nullptr) return;
  const std::size_t from_create_cq_ex = sizeof(*extended) - offsetof(verbs_context, create_cq_ex);
  if (extended->sz < from_create_cq_ex || extended->create_cq_ex == nullptr) return;
  if (remember(provider_create_cq_ex, extended->create_cq_ex)) {
    extended->create_cq_ex = &create_cq_ex;
  }
}

}  // namespace urxe::verbs
