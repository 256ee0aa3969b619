// Verbs that must be refused with an errno.
#include <cerrno>

#include <sys/mman.h>

#include "tests/compat/checker/bench.h"
#include "tests/compat/checker/check.h"

namespace checker {
namespace {

// The errno of a verb that returns a pointer; what it made against expectation stays.
template <typename T>
int error_of(T* pointer) {
  return pointer == nullptr ? errno : 0;
}

int modify(ibv_qp* qp, Step step) { return ibv_modify_qp(qp, &step.attributes, step.mask); }

constexpr std::uint32_t kGarbage = 0x00777777;

void try_garbled_handles(const Device& device, Verdicts& verdicts) {
  CompletionQueue cq(device, 16, false, false);
  ibv_qp* qp = new_queue_pair(device, cq);
  const std::uint32_t handle = qp->handle;
  for (const std::uint32_t wrong : {kGarbage, ~0U, handle ^ 0x100U}) {
    qp->handle = wrong;
    verdicts.refused("modify a QP of an unknown handle", modify(qp, to_init(0)), {ENOENT, EINVAL});
    ibv_qp_attr attributes{};
    ibv_qp_init_attr init{};
    verdicts.refused("query a QP of an unknown handle",
                     ibv_query_qp(qp, &attributes, IBV_QP_STATE, &init), {ENOENT, EINVAL});
    verdicts.refused("destroy a QP of an unknown handle", ibv_destroy_qp(qp), {ENOENT, EINVAL});
  }
  qp->handle = handle;
  const std::uint32_t cq_handle = cq.get()->handle;
  cq.get()->handle = kGarbage;
  verdicts.refused("arm a CQ of an unknown handle", ibv_req_notify_cq(cq.get(), 0),
                   {ENOENT, EINVAL});
  verdicts.refused("resize a CQ of an unknown handle", ibv_resize_cq(cq.get(), 100),
                   {ENOENT, EINVAL});
  cq.get()->handle = cq_handle;
  const std::uint32_t pd_handle = device.pd()->handle;
  device.pd()->handle = kGarbage;
  static char byte[64];
  verdicts.refused("register memory in an unknown PD",
                   error_of(ibv_reg_mr(device.pd(), byte, sizeof byte, 0)), {ENOENT, EINVAL});
  verdicts.refused("create a QP in an unknown PD", error_of(try_queue_pair(device, cq)),
                   {ENOENT, EINVAL});
  device.pd()->handle = pd_handle;
  cq.get()->handle = kGarbage;
  verdicts.refused("create a QP on an unknown CQ", error_of(try_queue_pair(device, cq)),
                   {ENOENT, EINVAL});
  cq.get()->handle = cq_handle;
  succeeds(ibv_destroy_qp(qp), "ibv_destroy_qp, after all that");
}

// Handles of what else there is, garbled and of another kind.
void try_other_handles(const Device& device, const Options& options, Verdicts& verdicts) {
  static char bytes[4096];
  ibv_mr* mr =
      exists(ibv_reg_mr(device.pd(), bytes, sizeof bytes, IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
  ibv_mw* mw = exists(ibv_alloc_mw(device.pd(), IBV_MW_TYPE_1), "ibv_alloc_mw");
  SharedReceiveQueue srq(device.pd(), 4, 1);
  Step step = to_rtr(device, options, 5, IBV_MTU_1024);
  ibv_ah* ah = exists(ibv_create_ah(device.pd(), &step.attributes.ah_attr), "ibv_create_ah");
  const std::uint32_t handles[] = {mr->handle, mw->handle, srq.get()->handle, ah->handle};
  for (const std::uint32_t wrong : {kGarbage, device.pd()->handle}) {
    mr->handle = mw->handle = srq.get()->handle = ah->handle = wrong;
    verdicts.refused("deregister an MR by a wrong handle", ibv_dereg_mr(mr), {ENOENT, EINVAL});
    verdicts.refused("free an MW by a wrong handle", ibv_dealloc_mw(mw), {ENOENT, EINVAL});
    ibv_srq_attr limit{.max_wr = 0, .max_sge = 0, .srq_limit = 1};
    verdicts.refused("modify an SRQ by a wrong handle",
                     ibv_modify_srq(srq.get(), &limit, IBV_SRQ_LIMIT), {ENOENT, EINVAL});
    verdicts.refused("query an SRQ by a wrong handle", ibv_query_srq(srq.get(), &limit),
                     {ENOENT, EINVAL});
    verdicts.refused("destroy an SRQ by a wrong handle", ibv_destroy_srq(srq.get()),
                     {ENOENT, EINVAL});
    verdicts.refused("destroy an AH by a wrong handle", ibv_destroy_ah(ah), {ENOENT, EINVAL});
  }
  mr->handle = handles[0];
  mw->handle = handles[1];
  srq.get()->handle = handles[2];
  ah->handle = handles[3];
  succeeds(ibv_dereg_mr(mr), "ibv_dereg_mr, after all that");
  succeeds(ibv_dealloc_mw(mw), "ibv_dealloc_mw, after all that");
  succeeds(ibv_destroy_ah(ah), "ibv_destroy_ah, after all that");
}

void try_transitions(const Device& device, const Options& options, Verdicts& verdicts) {
  CompletionQueue cq(device, 16, false, false);
  ibv_qp* qp = new_queue_pair(device, cq);
  const PairSettings settings;
  verdicts.refused("RESET to RTS", modify(qp, to_rts(settings)), {EINVAL});
  verdicts.refused("RESET to RTR", modify(qp, to_rtr(device, options, 5, IBV_MTU_1024)), {EINVAL});
  Step step = to_init(0);
  step.mask &= ~IBV_QP_PORT;
  verdicts.refused("RESET to INIT without a port", modify(qp, step), {EINVAL});
  step = to_init(0);
  step.mask |= IBV_QP_QKEY;
  verdicts.refused("RESET to INIT of an RC QP with a Q_Key", modify(qp, step), {EINVAL});
  step = to_init(0);
  step.attributes.port_num = 2;
  verdicts.refused("RESET to INIT with port 2 of 1", modify(qp, step), {EINVAL});
  step = to_init(0);
  step.attributes.pkey_index = 1000;
  verdicts.refused("RESET to INIT with P_Key 1000", modify(qp, step), {EINVAL});
  succeeds(modify(qp, to_init(0)), "RESET to INIT");
  step = to_rtr(device, options, 5, IBV_MTU_1024);
  step.mask &= ~IBV_QP_AV;
  verdicts.refused("INIT to RTR without an address", modify(qp, step), {EINVAL});
  step = to_rtr(device, options, 5, static_cast<ibv_mtu>(9));
  verdicts.refused("INIT to RTR with path MTU 9", modify(qp, step), {EINVAL});
  step = to_rtr(device, options, 5, IBV_MTU_1024);
  step.attributes.ah_attr.grh.sgid_index = 200;
  verdicts.refused("INIT to RTR with an empty GID", modify(qp, step), {EINVAL, ENOENT});
  step = to_rtr(device, options, 5, IBV_MTU_1024);
  step.attributes.ah_attr.is_global = 0;
  verdicts.refused("INIT to RTR without a GRH", modify(qp, step), {EINVAL});
  verdicts.refused("INIT to RTS", modify(qp, to_rts(settings)), {EINVAL});
  ibv_send_wr wr{};
  ibv_send_wr* bad = nullptr;
  verdicts.expect_no_sentence();
  verdicts.refused("post a send in INIT", ibv_post_send(qp, &wr, &bad), {EINVAL, 0});
  succeeds(ibv_destroy_qp(qp), "ibv_destroy_qp");
}

void try_limits(const Device& device, Verdicts& verdicts) {
  CompletionQueue cq(device, 16, false, false);
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = cq.get();
  attributes.qp_type = IBV_QPT_RC;
  const ibv_qp_cap good{.max_send_wr = 1,
                        .max_recv_wr = 1,
                        .max_send_sge = 1,
                        .max_recv_sge = 1,
                        .max_inline_data = 0};
  const auto create = [&](ibv_qp_cap cap) {
    attributes.cap = cap;
    return error_of(ibv_create_qp(device.pd(), &attributes));
  };
  ibv_qp_cap cap = good;
  cap.max_send_sge = static_cast<std::uint32_t>(device.limits().max_sge) + 1;
  verdicts.refused("a QP with too many SGEs", create(cap), {EINVAL});
  cap = good;
  cap.max_send_wr = static_cast<std::uint32_t>(device.limits().max_qp_wr) + 1;
  verdicts.refused("a QP with too many requests", create(cap), {EINVAL});
  cap = good;
  cap.max_inline_data = 1U << 20;
  verdicts.refused("a QP with too much inline data", create(cap), {EINVAL});
  verdicts.refused(
      "a CQ with too many entries",
      error_of(ibv_create_cq(device.context(), device.limits().max_cqe + 1, nullptr, nullptr, 0)),
      {EINVAL});
  ibv_srq_init_attr srq{};
  srq.attr.max_wr = 1;
  srq.attr.max_sge = static_cast<std::uint32_t>(device.limits().max_srq_sge) + 1;
  verdicts.refused("an SRQ with too many SGEs", error_of(ibv_create_srq(device.pd(), &srq)),
                   {EINVAL});
  ibv_qp* qp = new_queue_pair(device, cq);
  succeeds(modify(qp, to_init(0)), "RESET to INIT");
  ibv_sge list[40]{};
  ibv_recv_wr wr{};
  wr.sg_list = list;
  wr.num_sge = 40;
  ibv_recv_wr* bad = nullptr;
  verdicts.expect_no_sentence();
  verdicts.refused("a receive with too many SGEs", ibv_post_recv(qp, &wr, &bad), {EINVAL});
  succeeds(ibv_destroy_qp(qp), "ibv_destroy_qp");
}

void try_memory(const Device& device, Verdicts& verdicts) {
  static char byte[4096];
  verdicts.expect_no_sentence();
  verdicts.refused("REMOTE_WRITE without LOCAL_WRITE",
                   error_of(ibv_reg_mr(device.pd(), byte, sizeof byte, IBV_ACCESS_REMOTE_WRITE)),
                   {EINVAL});
  void* hole = mmap(nullptr, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(hole, 8192);
  verdicts.refused("register memory that is not mapped",
                   error_of(ibv_reg_mr(device.pd(), hole, 8192, IBV_ACCESS_LOCAL_WRITE)), {EFAULT});
  verdicts.refused("register memory past the end of the address space",
                   error_of(ibv_reg_mr(device.pd(), reinterpret_cast<void*>(~0ULL - 10), 4096, 0)),
                   {EINVAL, EFAULT});
}

void try_destruction(const Device& device, Verdicts& verdicts) {
  CompletionQueue cq(device, 16, false, false);
  ibv_qp* qp = new_queue_pair(device, cq);
  verdicts.refused("destroy a CQ that a QP uses", ibv_destroy_cq(cq.get()), {EBUSY});
  verdicts.refused("free a PD that a QP uses", ibv_dealloc_pd(device.pd()), {EBUSY});
  succeeds(ibv_destroy_qp(qp), "ibv_destroy_qp");
}

}  // namespace

void try_bad_commands(const Device& device, const Options& options, Verdicts& verdicts) {
  try_garbled_handles(device, verdicts);
  try_other_handles(device, options, verdicts);
  try_transitions(device, options, verdicts);
  try_limits(device, verdicts);
  try_memory(device, verdicts);
  try_destruction(device, verdicts);
}

}  // namespace checker
