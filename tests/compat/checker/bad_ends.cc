// A completion queue that is too small, and a device that is closed with its objects alive.
#include <cerrno>

#include <poll.h>

#include "tests/compat/checker/bench.h"
#include "tests/compat/checker/check.h"

namespace checker {
namespace {

// The next asynchronous event of the device; -1 if there is none for 10 s.
int next_event(ibv_context* context) {
  pollfd ready{.fd = context->async_fd, .events = POLLIN, .revents = 0};
  if (poll(&ready, 1, 10000) != 1) return -1;
  ibv_async_event event{};
  succeeds(ibv_get_async_event(context, &event), "ibv_get_async_event");
  ibv_ack_async_event(&event);
  return event.event_type;
}

void connect(const Device& device, const Options& options, ibv_qp* qp, std::uint32_t peer) {
  for (Step step :
       {to_init(IBV_ACCESS_REMOTE_WRITE), to_rtr(device, options, peer, IBV_MTU_1024), to_rts({})})
    succeeds(ibv_modify_qp(qp, &step.attributes, step.mask), "ibv_modify_qp");
}

// Nobody polls, so the completion queue overflows.
void try_overflow(const Options& options, Verdicts& verdicts) {
  const Device device(options);
  CompletionQueue small(device, 1, false, false);
  CompletionQueue other(device, 1, false, false);
  ibv_qp* active = new_queue_pair(device, small);
  ibv_qp* passive = new_queue_pair(device, other);
  connect(device, options, active, passive->qp_num);
  connect(device, options, passive, active->qp_num);
  const int posted = small.get()->cqe + 4;
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  int refused = 0;
  for (int i = 0; i < posted; ++i) {
    ibv_send_wr* bad = nullptr;
    refused += ibv_post_send(active, &wr, &bad) != 0 ? 1 : 0;
  }
  const int event = next_event(device.context());
  verdicts.refused("a CQ too small for its work: an event IBV_EVENT_CQ_ERR",
                   event == IBV_EVENT_CQ_ERR || refused > 0 ? EOVERFLOW : event, {EOVERFLOW});
  succeeds(ibv_destroy_qp(active), "ibv_destroy_qp");
  succeeds(ibv_destroy_qp(passive), "ibv_destroy_qp");
}

void try_close(const Options& options, Verdicts& verdicts) {
  {
    // The objects' memory is libibverbs' and is lost; the device is closed under them.
    int count = 0;
    ibv_device** list = exists(ibv_get_device_list(&count), "ibv_get_device_list");
    ibv_context* context = exists(ibv_open_device(list[0]), "ibv_open_device");
    ibv_pd* pd = exists(ibv_alloc_pd(context), "ibv_alloc_pd");
    static char bytes[4096];
    exists(ibv_reg_mr(pd, bytes, sizeof bytes, IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
    ibv_cq* cq = exists(ibv_create_cq(context, 16, nullptr, nullptr, 0), "ibv_create_cq");
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = cq;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {.max_send_wr = 4,
                      .max_recv_wr = 4,
                      .max_send_sge = 1,
                      .max_recv_sge = 1,
                      .max_inline_data = 0};
    exists(ibv_create_qp(pd, &attributes), "ibv_create_qp");
    verdicts.holds_and_is_told("a device may be closed with objects alive",
                               ibv_close_device(context) == 0);
    ibv_free_device_list(list);
  }
  const Device again(options);
  CompletionQueue cq(again, 16, false, false);
  ibv_qp* qp = new_queue_pair(again, cq);
  verdicts.holds("and opened again", ibv_destroy_qp(qp) == 0);
}

}  // namespace

void try_bad_ends(const Options& options, Verdicts& verdicts) {
  try_overflow(options, verdicts);
  try_close(options, verdicts);
}

}  // namespace checker
