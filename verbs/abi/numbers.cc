// The emulator's numbers are those of the ABI: kernel headers where they have them, libibverbs'
// where only the program sees them.
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>

#include "emulator/types.h"
#include "emulator/work.h"
#include "verbs/abi/rxe_abi.h"
#include "verbs/abi/uverbs_abi.h"

namespace urxe::emulator {
namespace {

template <typename Number, typename AbiNumber>
constexpr bool same(Number ours, AbiNumber theirs) {
  return static_cast<std::uint32_t>(ours) == static_cast<std::uint32_t>(theirs);
}
template <typename Tag, typename AbiNumber>
constexpr bool same(Flags<Tag> ours, AbiNumber theirs) {
  return ours.bits() == static_cast<std::uint32_t>(theirs);
}

// A general services queue pair is made by the kernel only, so no header of user space has its
// number.
static_assert(same(QpType::rc, IB_UVERBS_QPT_RC));
static_assert(same(QpType::uc, IB_UVERBS_QPT_UC));
static_assert(same(QpType::ud, IB_UVERBS_QPT_UD));

static_assert(same(QpState::reset, IBV_QPS_RESET));
static_assert(same(QpState::init, IBV_QPS_INIT));
static_assert(same(QpState::ready_to_receive, IBV_QPS_RTR));
static_assert(same(QpState::ready_to_send, IBV_QPS_RTS));
static_assert(same(QpState::send_queue_drain, IBV_QPS_SQD));
static_assert(same(QpState::send_queue_error, IBV_QPS_SQE));
static_assert(same(QpState::error, IBV_QPS_ERR));

static_assert(same(Mtu::bytes256, IBV_MTU_256));
static_assert(same(Mtu::bytes512, IBV_MTU_512));
static_assert(same(Mtu::bytes1024, IBV_MTU_1024));
static_assert(same(Mtu::bytes2048, IBV_MTU_2048));
static_assert(same(Mtu::bytes4096, IBV_MTU_4096));

static_assert(same(CompletionStatus::success, IBV_WC_SUCCESS));
static_assert(same(CompletionStatus::local_length_error, IBV_WC_LOC_LEN_ERR));
static_assert(same(CompletionStatus::local_qp_operation_error, IBV_WC_LOC_QP_OP_ERR));
static_assert(same(CompletionStatus::local_protection_error, IBV_WC_LOC_PROT_ERR));
static_assert(same(CompletionStatus::flushed, IBV_WC_WR_FLUSH_ERR));
static_assert(same(CompletionStatus::window_bind_error, IBV_WC_MW_BIND_ERR));
static_assert(same(CompletionStatus::bad_response, IBV_WC_BAD_RESP_ERR));
static_assert(same(CompletionStatus::local_access_error, IBV_WC_LOC_ACCESS_ERR));
static_assert(same(CompletionStatus::remote_invalid_request, IBV_WC_REM_INV_REQ_ERR));
static_assert(same(CompletionStatus::remote_access_error, IBV_WC_REM_ACCESS_ERR));
static_assert(same(CompletionStatus::remote_operational_error, IBV_WC_REM_OP_ERR));
static_assert(same(CompletionStatus::retry_exceeded, IBV_WC_RETRY_EXC_ERR));
static_assert(same(CompletionStatus::rnr_retry_exceeded, IBV_WC_RNR_RETRY_EXC_ERR));

// What a program compares with is libibverbs'; FLUSH and ATOMIC WRITE came after Debian 12's.
static_assert(same(CompletionOpcode::send, IBV_WC_SEND));
static_assert(same(CompletionOpcode::rdma_write, IBV_WC_RDMA_WRITE));
static_assert(same(CompletionOpcode::rdma_read, IBV_WC_RDMA_READ));
static_assert(same(CompletionOpcode::compare_swap, IBV_WC_COMP_SWAP));
static_assert(same(CompletionOpcode::fetch_add, IBV_WC_FETCH_ADD));
static_assert(same(CompletionOpcode::bind_window, IBV_WC_BIND_MW));
static_assert(same(CompletionOpcode::local_invalidate, IBV_WC_LOCAL_INV));
static_assert(same(CompletionOpcode::receive, IBV_WC_RECV));
static_assert(same(CompletionOpcode::receive_rdma_with_immediate, IBV_WC_RECV_RDMA_WITH_IMM));

static_assert(same(WorkOpcode::rdma_write, IB_UVERBS_WR_RDMA_WRITE));
static_assert(same(WorkOpcode::rdma_write_with_immediate, IB_UVERBS_WR_RDMA_WRITE_WITH_IMM));
static_assert(same(WorkOpcode::send, IB_UVERBS_WR_SEND));
static_assert(same(WorkOpcode::send_with_immediate, IB_UVERBS_WR_SEND_WITH_IMM));
static_assert(same(WorkOpcode::rdma_read, IB_UVERBS_WR_RDMA_READ));
static_assert(same(WorkOpcode::compare_swap, IB_UVERBS_WR_ATOMIC_CMP_AND_SWP));
static_assert(same(WorkOpcode::fetch_add, IB_UVERBS_WR_ATOMIC_FETCH_AND_ADD));
static_assert(same(WorkOpcode::local_invalidate, IB_UVERBS_WR_LOCAL_INV));
static_assert(same(WorkOpcode::bind_window, IB_UVERBS_WR_BIND_MW));
static_assert(same(WorkOpcode::send_with_invalidate, IB_UVERBS_WR_SEND_WITH_INV));

static_assert(same(AsyncEventType::cq_error, IBV_EVENT_CQ_ERR));
static_assert(same(AsyncEventType::qp_fatal, IBV_EVENT_QP_FATAL));
static_assert(same(AsyncEventType::qp_request_error, IBV_EVENT_QP_REQ_ERR));
static_assert(same(AsyncEventType::qp_access_error, IBV_EVENT_QP_ACCESS_ERR));
static_assert(same(AsyncEventType::communication_established, IBV_EVENT_COMM_EST));
static_assert(same(AsyncEventType::send_queue_drained, IBV_EVENT_SQ_DRAINED));
static_assert(same(AsyncEventType::path_migrated, IBV_EVENT_PATH_MIG));
static_assert(same(AsyncEventType::path_migration_error, IBV_EVENT_PATH_MIG_ERR));
static_assert(same(AsyncEventType::device_fatal, IBV_EVENT_DEVICE_FATAL));
static_assert(same(AsyncEventType::port_active, IBV_EVENT_PORT_ACTIVE));
static_assert(same(AsyncEventType::port_error, IBV_EVENT_PORT_ERR));
static_assert(same(AsyncEventType::lid_change, IBV_EVENT_LID_CHANGE));
static_assert(same(AsyncEventType::pkey_change, IBV_EVENT_PKEY_CHANGE));
static_assert(same(AsyncEventType::sm_change, IBV_EVENT_SM_CHANGE));
static_assert(same(AsyncEventType::srq_error, IBV_EVENT_SRQ_ERR));
static_assert(same(AsyncEventType::srq_limit_reached, IBV_EVENT_SRQ_LIMIT_REACHED));
static_assert(same(AsyncEventType::last_wqe_reached, IBV_EVENT_QP_LAST_WQE_REACHED));
static_assert(same(AsyncEventType::client_reregister, IBV_EVENT_CLIENT_REREGISTER));
static_assert(same(AsyncEventType::gid_change, IBV_EVENT_GID_CHANGE));

static_assert(same(kLocalWrite, IB_UVERBS_ACCESS_LOCAL_WRITE));
static_assert(same(kRemoteWrite, IB_UVERBS_ACCESS_REMOTE_WRITE));
static_assert(same(kRemoteRead, IB_UVERBS_ACCESS_REMOTE_READ));
static_assert(same(kRemoteAtomic, IB_UVERBS_ACCESS_REMOTE_ATOMIC));
static_assert(same(kWindowBind, IB_UVERBS_ACCESS_MW_BIND));
static_assert(same(kZeroBased, IB_UVERBS_ACCESS_ZERO_BASED));
static_assert(same(kOnDemand, IB_UVERBS_ACCESS_ON_DEMAND));
static_assert(same(kHugeTlb, IB_UVERBS_ACCESS_HUGETLB));
static_assert(same(kRelaxedOrdering, IB_UVERBS_ACCESS_RELAXED_ORDERING));

static_assert(same(kFence, IBV_SEND_FENCE));
static_assert(same(kSignaled, IBV_SEND_SIGNALED));
static_assert(same(kSolicited, IBV_SEND_SOLICITED));
static_assert(same(kInline, IBV_SEND_INLINE));

static_assert(same(kWithGrh, IBV_WC_GRH));
static_assert(same(kWithImmediate, IBV_WC_WITH_IMM));
static_assert(same(kWithInvalidate, IBV_WC_WITH_INV));

// rxe_poll_cq copies what stands in the ring into the program's struct.
static_assert(sizeof(ib_uverbs_wc) == sizeof(ibv_wc));
static_assert(offsetof(ib_uverbs_wc, ex) == offsetof(ibv_wc, imm_data));
static_assert(offsetof(ib_uverbs_wc, wc_flags) == offsetof(ibv_wc, wc_flags));
static_assert(offsetof(ib_uverbs_wc, sl) == offsetof(ibv_wc, sl));

}  // namespace
}  // namespace urxe::emulator
