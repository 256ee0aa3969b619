#include <cstring>

#include "tests/compat/checker/check.h"
#include "tests/compat/checker/verbs.h"

namespace checker {
namespace {

constexpr std::uint64_t kCommonOperations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr std::uint64_t kWriteOperations =
    IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
constexpr std::uint64_t kReliableOperations =
    IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_LOCAL_INV |
    IBV_QP_EX_WITH_BIND_MW;

std::uint64_t operations_of(ibv_qp_type transport) {
  if (transport == IBV_QPT_UD) return kCommonOperations;
  if (transport == IBV_QPT_UC) return kCommonOperations | kWriteOperations;
  return kCommonOperations | kWriteOperations | kReliableOperations;
}

ibv_qp_cap wanted() {
  return {.max_send_wr = kMaxWr,
          .max_recv_wr = kMaxWr,
          .max_send_sge = kMaxSge,
          .max_recv_sge = kMaxSge,
          .max_inline_data = kInline};
}

void check_granted(const ibv_qp_cap& granted) {
  const ibv_qp_cap asked = wanted();
  if (granted.max_send_wr < asked.max_send_wr || granted.max_send_sge < asked.max_send_sge ||
      granted.max_inline_data < asked.max_inline_data)
    fail("a queue pair with less than asked for");
}

std::uint32_t first_psn(std::uint32_t qpn, std::uint64_t seed) {
  // Near the end of the PSNs for some, so that they wrap.
  const auto mixed = static_cast<std::uint32_t>((qpn * 2654435761U) ^ (seed * 40503U));
  return mixed % 2 == 0 ? 0xFFFFF0 + mixed % 14 : mixed & 0xFFFFFF;
}

// In one piece: librxe 44 sends nothing of what ibv_wr_set_inline_data_list is given.
std::vector<std::uint8_t> gathered(const std::vector<ibv_sge>& list) {
  std::vector<std::uint8_t> bytes;
  for (const ibv_sge& sge : list) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(sge.addr);
    bytes.insert(bytes.end(), first, first + sge.length);
  }
  return bytes;
}

ibv_ah_attr path_to(const ibv_gid& gid, int own_index) {
  ibv_ah_attr path{};
  path.is_global = 1;
  path.grh.dgid = gid;
  path.grh.sgid_index = static_cast<std::uint8_t>(own_index);
  path.grh.hop_limit = 64;
  path.port_num = 1;
  return path;
}

}  // namespace

QueuePair::QueuePair(const Device& device, const Options& options, CompletionQueue& cq,
                     ibv_srq* srq)
    : device_(device), options_(options), srq_(srq) {
  ibv_qp_init_attr_ex attributes{};
  attributes.send_cq = attributes.recv_cq = cq.get();
  attributes.srq = srq;
  attributes.qp_type = options.transport;
  attributes.cap = wanted();
  attributes.pd = device.pd();
  attributes.comp_mask = IBV_QP_INIT_ATTR_PD;
  if (options.extended) {
    attributes.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attributes.send_ops_flags = operations_of(options.transport);
  }
  qp_ = exists(ibv_create_qp_ex(device.context(), &attributes), "ibv_create_qp_ex");
  if (options.extended) extended_ = exists(ibv_qp_to_qp_ex(qp_), "ibv_qp_to_qp_ex");
  check_granted(attributes.cap);
  max_inline_ = attributes.cap.max_inline_data;
  psn_ = first_psn(qp_->qp_num, options.seed);
  initialise();
}

QueuePair::~QueuePair() {
  succeeds(ibv_destroy_qp(qp_), "ibv_destroy_qp");
  if (ah_ != nullptr) succeeds(ibv_destroy_ah(ah_), "ibv_destroy_ah");
}

Address QueuePair::address() const {
  return {.gid = device_.gid(), .qpn = qp_->qp_num, .psn = psn_};
}

void QueuePair::initialise() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  if (options_.transport == IBV_QPT_UD) {
    attributes.qkey = kQkey;
    mask |= IBV_QP_QKEY;
  } else {
    attributes.qp_access_flags =
        IBV_ACCESS_REMOTE_WRITE |
        (options_.transport == IBV_QPT_RC ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC : 0);
    mask |= IBV_QP_ACCESS_FLAGS;
  }
  succeeds(ibv_modify_qp(qp_, &attributes, mask), "RESET to INIT");
}

void QueuePair::connect(const Address& peer) {
  remote_qpn_ = peer.qpn;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.ah_attr = path_to(peer.gid, options_.gid_index);
  attributes.path_mtu = options_.mtu;
  attributes.dest_qp_num = peer.qpn;
  attributes.rq_psn = peer.psn;
  attributes.max_dest_rd_atomic = 8;
  attributes.min_rnr_timer = 1;
  int mask = IBV_QP_STATE;
  if (options_.transport != IBV_QPT_UD)
    mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (options_.transport == IBV_QPT_RC) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  succeeds(ibv_modify_qp(qp_, &attributes, mask), "INIT to RTR");
  if (options_.transport == IBV_QPT_UD)
    ah_ = exists(ibv_create_ah(device_.pd(), &attributes.ah_attr), "ibv_create_ah");

  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = psn_;
  // On a bad network 67 ms are enough for an answer; on a good one, beside other tests on few
  // cores, a process may not run for longer.
  attributes.timeout = options_.lossy ? 14 : 17;
  attributes.retry_cnt = 7;
  attributes.rnr_retry = 7;
  attributes.max_rd_atomic = 8;
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (options_.transport == IBV_QPT_RC)
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  succeeds(ibv_modify_qp(qp_, &attributes, mask), "RTR to RTS");
}

void QueuePair::post(const std::vector<Request>& requests) {
  if (extended_ != nullptr) return post_extended(requests);
  post_basic(requests);
}

void QueuePair::post_receive(std::uint64_t wr_id, std::vector<ibv_sge> list) {
  ibv_recv_wr request{};
  request.wr_id = wr_id;
  request.sg_list = list.data();
  request.num_sge = static_cast<int>(list.size());
  ibv_recv_wr* bad = nullptr;
  if (srq_ != nullptr) return succeeds(ibv_post_srq_recv(srq_, &request, &bad), "post_srq_recv");
  succeeds(ibv_post_recv(qp_, &request, &bad), "ibv_post_recv");
}

void QueuePair::post_basic(const std::vector<Request>& requests) {
  std::vector<ibv_send_wr> list(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Request& request = requests[i];
    ibv_send_wr& wr = list[i];
    wr.wr_id = request.wr_id;
    wr.next = i + 1 < requests.size() ? &list[i + 1] : nullptr;
    wr.sg_list = const_cast<ibv_sge*>(request.list.data());
    wr.num_sge = static_cast<int>(request.list.size());
    wr.opcode = request.opcode;
    wr.send_flags = request.flags;
    wr.imm_data = request.imm_data;
    if (options_.transport == IBV_QPT_UD) {
      wr.wr.ud = {.ah = ah_, .remote_qpn = remote_qpn_, .remote_qkey = kQkey};
    } else if (request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
               request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      wr.wr.atomic = {.remote_addr = request.remote_address,
                      .compare_add = request.compare_add,
                      .swap = request.swap,
                      .rkey = request.rkey};
    } else if (request.opcode == IBV_WR_BIND_MW) {
      wr.bind_mw.mw = request.window;
      wr.bind_mw.rkey = request.rkey;
      wr.bind_mw.bind_info = request.bind;
    } else {
      wr.wr.rdma = {.remote_addr = request.remote_address, .rkey = request.rkey};
    }
  }
  ibv_send_wr* bad = nullptr;
  succeeds(ibv_post_send(qp_, list.data(), &bad), "ibv_post_send");
}

void QueuePair::post_extended(const std::vector<Request>& requests) {
  ibv_wr_start(extended_);
  for (const Request& request : requests) {
    extended_->wr_id = request.wr_id;
    extended_->wr_flags = request.flags;  // librxe wants IBV_SEND_INLINE here, too
    start(request);
    if (request.opcode == IBV_WR_BIND_MW || request.opcode == IBV_WR_LOCAL_INV) continue;
    if (options_.transport == IBV_QPT_UD) ibv_wr_set_ud_addr(extended_, ah_, remote_qpn_, kQkey);
    if ((request.flags & IBV_SEND_INLINE) == 0) {
      ibv_wr_set_sge_list(extended_, request.list.size(), request.list.data());
      continue;
    }
    const std::vector<std::uint8_t> bytes = gathered(request.list);
    ibv_wr_set_inline_data(extended_, const_cast<std::uint8_t*>(bytes.data()), bytes.size());
  }
  succeeds(ibv_wr_complete(extended_), "ibv_wr_complete");
}

void QueuePair::start(const Request& r) {
  switch (r.opcode) {
    case IBV_WR_SEND:
      return ibv_wr_send(extended_);
    case IBV_WR_SEND_WITH_IMM:
      return ibv_wr_send_imm(extended_, r.imm_data);
    case IBV_WR_SEND_WITH_INV:
      return ibv_wr_send_inv(extended_, r.imm_data);
    case IBV_WR_RDMA_WRITE:
      return ibv_wr_rdma_write(extended_, r.rkey, r.remote_address);
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return ibv_wr_rdma_write_imm(extended_, r.rkey, r.remote_address, r.imm_data);
    case IBV_WR_RDMA_READ:
      return ibv_wr_rdma_read(extended_, r.rkey, r.remote_address);
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return ibv_wr_atomic_cmp_swp(extended_, r.rkey, r.remote_address, r.compare_add, r.swap);
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return ibv_wr_atomic_fetch_add(extended_, r.rkey, r.remote_address, r.compare_add);
    case IBV_WR_BIND_MW:
      return ibv_wr_bind_mw(extended_, r.window, r.rkey, &r.bind);
    case IBV_WR_LOCAL_INV:
      return ibv_wr_local_inv(extended_, r.imm_data);
    default:
      fail("an opcode that the checker does not know: %d", r.opcode);
  }
}

}  // namespace checker
