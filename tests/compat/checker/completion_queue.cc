#include <poll.h>

#include "tests/compat/checker/check.h"
#include "tests/compat/checker/patience.h"
#include "tests/compat/checker/verbs.h"

namespace checker {
namespace {

constexpr std::uint64_t kFields =
    IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP;

Done from(const ibv_wc& wc) {
  return {.wr_id = wc.wr_id,
          .status = wc.status,
          .opcode = wc.opcode,
          .byte_len = wc.byte_len,
          .imm_data = wc.imm_data,
          .invalidated_rkey = wc.invalidated_rkey,
          .qp_num = wc.qp_num,
          .src_qp = wc.src_qp,
          .flags = wc.wc_flags};
}

Done from(ibv_cq_ex& cq) {
  Done done;
  done.wr_id = cq.wr_id;
  done.status = cq.status;
  done.qp_num = ibv_wc_read_qp_num(&cq);
  if (cq.status != IBV_WC_SUCCESS) return done;
  done.opcode = ibv_wc_read_opcode(&cq);
  done.flags = ibv_wc_read_wc_flags(&cq);
  done.byte_len = ibv_wc_read_byte_len(&cq);
  done.imm_data = ibv_wc_read_imm_data(&cq);
  if ((done.flags & IBV_WC_WITH_INV) != 0)
    done.invalidated_rkey = ibv_wc_read_invalidated_rkey(&cq);
  done.src_qp = ibv_wc_read_src_qp(&cq);
  return done;
}

}  // namespace

CompletionQueue::CompletionQueue(const Device& device, int entries, bool extended, bool events) {
  if (events)
    channel_ = exists(ibv_create_comp_channel(device.context()), "ibv_create_comp_channel");
  if (extended) {
    ibv_cq_init_attr_ex attributes{};
    attributes.cqe = static_cast<std::uint32_t>(entries);
    attributes.channel = channel_;
    attributes.wc_flags = kFields;
    extended_ = exists(ibv_create_cq_ex(device.context(), &attributes), "ibv_create_cq_ex");
    cq_ = ibv_cq_ex_to_cq(extended_);
  } else {
    cq_ = exists(ibv_create_cq(device.context(), entries, nullptr, channel_, 0), "ibv_create_cq");
  }
  if (cq_->cqe < entries) fail("asked for %d CQ entries, got %d", entries, cq_->cqe);
  if (events) succeeds(ibv_req_notify_cq(cq_, 0), "ibv_req_notify_cq");
}

CompletionQueue::~CompletionQueue() {
  if (events_ > 0) ibv_ack_cq_events(cq_, events_);
  succeeds(ibv_destroy_cq(cq_), "ibv_destroy_cq");
  if (channel_ != nullptr) succeeds(ibv_destroy_comp_channel(channel_), "destroy_comp_channel");
}

std::optional<Done> CompletionQueue::poll_extended() {
  ibv_poll_cq_attr attributes{};
  const int error = ibv_start_poll(extended_, &attributes);
  if (error == ENOENT) return std::nullopt;
  succeeds(error, "ibv_start_poll");
  const Done done = from(*extended_);
  ibv_end_poll(extended_);
  return done;
}

std::optional<Done> CompletionQueue::poll() {
  if (extended_ != nullptr) return poll_extended();
  ibv_wc wc{};
  const int count = ibv_poll_cq(cq_, 1, &wc);
  if (count < 0) fail("ibv_poll_cq: %d", count);
  if (count == 0) return std::nullopt;
  return from(wc);
}

Done CompletionQueue::wait(const std::string& what) {
  const Deadline deadline;
  while (true) {
    if (const std::optional<Done> done = poll()) return *done;
    if (channel_ != nullptr) sleep_until_event(what);
    if (deadline.passed()) fail("%s: no completion", what.c_str());
  }
}

void CompletionQueue::sleep_until_event(const std::string& what) {
  pollfd ready{.fd = channel_->fd, .events = POLLIN, .revents = 0};
  const int count = ::poll(&ready, 1, std::chrono::milliseconds(kPatience).count());
  if (count != 1) fail("%s: no completion event", what.c_str());
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  succeeds(ibv_get_cq_event(channel_, &cq, &context), "ibv_get_cq_event");
  if (cq != cq_) fail("%s: an event of another CQ", what.c_str());
  ++events_;
  succeeds(ibv_req_notify_cq(cq_, 0), "ibv_req_notify_cq");
}

}  // namespace checker
