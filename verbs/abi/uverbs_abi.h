// rdma/ib_user_verbs.h: the commands, with the sizes that libibverbs of every version sends and
// expects. That they are what the kernel was built with is checked here and nowhere else.
#pragma once

#include <cstddef>

#include <rdma/ib_user_verbs.h>

namespace urxe::verbs::abi {

static_assert(sizeof(ib_uverbs_cmd_hdr) == 8);
static_assert(sizeof(ib_uverbs_ex_cmd_hdr) == 16);

static_assert(sizeof(ib_uverbs_async_event_desc) == 16);
static_assert(sizeof(ib_uverbs_comp_event_desc) == 8);

static_assert(sizeof(ib_uverbs_get_context) == 8);
static_assert(sizeof(ib_uverbs_get_context_resp) == 8);
static_assert(sizeof(ib_uverbs_query_device) == 8);
static_assert(sizeof(ib_uverbs_query_device_resp) == 176);
static_assert(sizeof(ib_uverbs_ex_query_device) == 8);
static_assert(sizeof(ib_uverbs_query_port) == 16);
static_assert(sizeof(ib_uverbs_query_port_resp) == 40);

static_assert(sizeof(ib_uverbs_alloc_pd) == 8);
static_assert(sizeof(ib_uverbs_alloc_pd_resp) == 4);
static_assert(sizeof(ib_uverbs_dealloc_pd) == 4);
static_assert(sizeof(ib_uverbs_reg_mr) == 40);
static_assert(sizeof(ib_uverbs_reg_mr_resp) == 12);
static_assert(sizeof(ib_uverbs_rereg_mr) == 48);
static_assert(sizeof(ib_uverbs_rereg_mr_resp) == 8);
static_assert(sizeof(ib_uverbs_dereg_mr) == 4);
static_assert(sizeof(ib_uverbs_alloc_mw) == 16);
static_assert(sizeof(ib_uverbs_alloc_mw_resp) == 8);
static_assert(sizeof(ib_uverbs_dealloc_mw) == 4);

static_assert(sizeof(ib_uverbs_create_comp_channel) == 8);
static_assert(sizeof(ib_uverbs_create_comp_channel_resp) == 4);
static_assert(sizeof(ib_uverbs_create_cq) == 32);
static_assert(sizeof(ib_uverbs_create_cq_resp) == 8);
static_assert(sizeof(ib_uverbs_ex_create_cq) == 32);
static_assert(sizeof(ib_uverbs_ex_create_cq_resp) == 16);
static_assert(sizeof(ib_uverbs_resize_cq) == 16);
static_assert(sizeof(ib_uverbs_resize_cq_resp) == 8);
static_assert(sizeof(ib_uverbs_req_notify_cq) == 8);
static_assert(sizeof(ib_uverbs_destroy_cq) == 16);
static_assert(sizeof(ib_uverbs_destroy_cq_resp) == 8);

static_assert(sizeof(ib_uverbs_global_route) == 24);
static_assert(sizeof(ib_uverbs_ah_attr) == 32);
static_assert(sizeof(ib_uverbs_create_ah) == 56);
static_assert(sizeof(ib_uverbs_create_ah_resp) == 4);
static_assert(sizeof(ib_uverbs_destroy_ah) == 4);

static_assert(sizeof(ib_uverbs_create_qp) == 56);
static_assert(sizeof(ib_uverbs_create_qp_resp) == 32);
static_assert(sizeof(ib_uverbs_ex_create_qp) == 64);
static_assert(sizeof(ib_uverbs_ex_create_qp_resp) == 40);
static_assert(sizeof(ib_uverbs_qp_dest) == 32);
static_assert(sizeof(ib_uverbs_query_qp) == 16);
static_assert(sizeof(ib_uverbs_query_qp_resp) == 128);
static_assert(sizeof(ib_uverbs_modify_qp) == 112);
static_assert(sizeof(ib_uverbs_ex_modify_qp) == 120);
static_assert(sizeof(ib_uverbs_ex_modify_qp_resp) == 8);
static_assert(sizeof(ib_uverbs_destroy_qp) == 16);
static_assert(sizeof(ib_uverbs_destroy_qp_resp) == 4);
static_assert(sizeof(ib_uverbs_qp_attr) == 144);
static_assert(sizeof(ib_uverbs_post_send) == 24);
static_assert(sizeof(ib_uverbs_post_send_resp) == 4);

static_assert(sizeof(ib_uverbs_create_srq) == 32);
static_assert(sizeof(ib_uverbs_create_srq_resp) == 16);
static_assert(sizeof(ib_uverbs_create_xsrq) == 48);
static_assert(sizeof(ib_uverbs_modify_srq) == 16);
static_assert(sizeof(ib_uverbs_query_srq) == 16);
static_assert(sizeof(ib_uverbs_query_srq_resp) == 16);
static_assert(sizeof(ib_uverbs_destroy_srq) == 16);
static_assert(sizeof(ib_uverbs_destroy_srq_resp) == 4);
static_assert(sizeof(ib_uverbs_attach_mcast) == 24);
static_assert(sizeof(ib_uverbs_detach_mcast) == 24);

}  // namespace urxe::verbs::abi
