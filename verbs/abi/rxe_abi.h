// rdma/rdma_user_rxe.h, as the kernel and librxe see it. Include this, not that: what C++ makes of
// the header by itself has another layout.
#pragma once

#include <cstddef>

#include <linux/stddef.h>
// First, or the kernel's headers bring an in6_addr of their own.
#include <netinet/in.h>
// The kernel's macro wraps a flexible array in a struct with an empty member, which takes no room
// in C but a byte in C++, so that lists would start 8 bytes too late.
#pragma push_macro("__DECLARE_FLEX_ARRAY")
#undef __DECLARE_FLEX_ARRAY
#define __DECLARE_FLEX_ARRAY(type, name) __extension__ type name[0]
#include <rdma/rdma_user_rxe.h>
#pragma pop_macro("__DECLARE_FLEX_ARRAY")

#include <rdma/ib_user_verbs.h>

namespace urxe::verbs::abi {

// The start of every ring. The indexes are apart, so that program and device write to cache lines
// of their own.
static_assert(sizeof(rxe_queue_buf) == 384);
static_assert(offsetof(rxe_queue_buf, log2_elem_size) == 0);
static_assert(offsetof(rxe_queue_buf, index_mask) == 4);
static_assert(offsetof(rxe_queue_buf, producer_index) == 128);
static_assert(offsetof(rxe_queue_buf, consumer_index) == 256);
static_assert(offsetof(rxe_queue_buf, data) == 384);

static_assert(sizeof(rxe_sge) == 16);
static_assert(offsetof(rxe_sge, addr) == 0);
static_assert(offsetof(rxe_sge, length) == 8);
static_assert(offsetof(rxe_sge, lkey) == 12);

// What librxe fills of it: length, resid, num_sge and the list, or the inline data.
static_assert(sizeof(rxe_dma_info) == 24);
static_assert(offsetof(rxe_dma_info, length) == 0);
static_assert(offsetof(rxe_dma_info, num_sge) == 12);
static_assert(offsetof(rxe_dma_info, inline_data) == 24);
static_assert(offsetof(rxe_dma_info, sge) == 24);

static_assert(sizeof(rxe_global_route) == 24);
static_assert(offsetof(rxe_global_route, flow_label) == 16);
static_assert(offsetof(rxe_global_route, traffic_class) == 22);
static_assert(sizeof(rxe_av) == 88);
static_assert(offsetof(rxe_av, network_type) == 1);
static_assert(offsetof(rxe_av, grh) == 8);

static_assert(sizeof(rxe_send_wr) == 144);
static_assert(offsetof(rxe_send_wr, wr_id) == 0);
static_assert(offsetof(rxe_send_wr, opcode) == 12);
static_assert(offsetof(rxe_send_wr, send_flags) == 16);
static_assert(offsetof(rxe_send_wr, ex) == 20);
static_assert(offsetof(rxe_send_wr, wr.rdma.remote_addr) == 24);
static_assert(offsetof(rxe_send_wr, wr.rdma.rkey) == 32);
static_assert(offsetof(rxe_send_wr, wr.atomic.compare_add) == 32);
static_assert(offsetof(rxe_send_wr, wr.atomic.swap) == 40);
static_assert(offsetof(rxe_send_wr, wr.atomic.rkey) == 48);
static_assert(offsetof(rxe_send_wr, wr.ud.remote_qpn) == 24);
static_assert(offsetof(rxe_send_wr, wr.ud.remote_qkey) == 28);
static_assert(offsetof(rxe_send_wr, wr.ud.ah_num) == 36);
static_assert(offsetof(rxe_send_wr, wr.ud.av) == 56);
static_assert(offsetof(rxe_send_wr, wr.mw.addr) == 24);
static_assert(offsetof(rxe_send_wr, wr.mw.length) == 32);
static_assert(offsetof(rxe_send_wr, wr.mw.mr_lkey) == 40);
static_assert(offsetof(rxe_send_wr, wr.mw.mw_rkey) == 44);
static_assert(offsetof(rxe_send_wr, wr.mw.rkey) == 48);
static_assert(offsetof(rxe_send_wr, wr.mw.access) == 52);

// wr.flush of rxe_send_wr, which the headers have since Linux 6.2. librxe leaves `length` 0: that
// of the WQE's dma counts.
struct FlushTarget {
  __u64 remote_address;
  __u32 length;
  __u32 rkey;
  __u8 placement;
  __u8 selectivity;
};
static_assert(offsetof(FlushTarget, rkey) + offsetof(rxe_send_wr, wr) ==
              offsetof(rxe_send_wr, wr.rdma.reserved));
static_assert(offsetof(FlushTarget, placement) == 16);

// ib_uverbs_access_flags and ib_uverbs_device_cap_flags, likewise.
inline constexpr __u32 kAccessFlushGlobal = 1U << 8;
inline constexpr __u32 kAccessFlushPersistent = 1U << 9;
inline constexpr __u64 kDeviceFlushGlobal = __u64{1} << 38;
inline constexpr __u64 kDeviceAtomicWrite = __u64{1} << 40;

static_assert(sizeof(rxe_send_wqe) == 208);
static_assert(offsetof(rxe_send_wqe, wr) == 0);
static_assert(offsetof(rxe_send_wqe, dma) == 184);

static_assert(sizeof(rxe_recv_wqe) == 40);
static_assert(offsetof(rxe_recv_wqe, wr_id) == 0);
static_assert(offsetof(rxe_recv_wqe, dma) == 16);

// A completion, which librxe copies into the program's ibv_wc as it stands.
static_assert(sizeof(ib_uverbs_wc) == 48);
static_assert(offsetof(ib_uverbs_wc, wr_id) == 0);
static_assert(offsetof(ib_uverbs_wc, status) == 8);
static_assert(offsetof(ib_uverbs_wc, opcode) == 12);
static_assert(offsetof(ib_uverbs_wc, vendor_err) == 16);
static_assert(offsetof(ib_uverbs_wc, byte_len) == 20);
static_assert(offsetof(ib_uverbs_wc, ex) == 24);
static_assert(offsetof(ib_uverbs_wc, qp_num) == 28);
static_assert(offsetof(ib_uverbs_wc, src_qp) == 32);
static_assert(offsetof(ib_uverbs_wc, wc_flags) == 36);
static_assert(offsetof(ib_uverbs_wc, pkey_index) == 40);
static_assert(offsetof(ib_uverbs_wc, slid) == 42);
static_assert(offsetof(ib_uverbs_wc, sl) == 44);

// Driver data of commands: where rings are.
static_assert(sizeof(mminfo) == 16);
static_assert(offsetof(mminfo, offset) == 0);
static_assert(offsetof(mminfo, size) == 8);
static_assert(sizeof(rxe_create_ah_resp) == 8);
static_assert(sizeof(rxe_create_cq_resp) == 16);
static_assert(sizeof(rxe_resize_cq_resp) == 16);
static_assert(sizeof(rxe_create_qp_resp) == 32);
static_assert(offsetof(rxe_create_qp_resp, rq_mi) == 0);
static_assert(offsetof(rxe_create_qp_resp, sq_mi) == 16);
static_assert(sizeof(rxe_create_srq_resp) == 24);
static_assert(offsetof(rxe_create_srq_resp, srq_num) == 16);
static_assert(sizeof(rxe_modify_srq_cmd) == 8);

}  // namespace urxe::verbs::abi
