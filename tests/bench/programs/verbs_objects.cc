#include "tests/bench/programs/verbs_objects.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace urxe::bench {
namespace {

constexpr std::uint8_t kPort = 1;

void modify(ibv_qp* qp, ibv_qp_attr& attributes, int mask) {
  errno = ibv_modify_qp(qp, &attributes, mask);
  if (errno != 0) die("ibv_modify_qp");
}

void bring_up(ibv_qp* qp, std::uint32_t peer, const ibv_gid& gid) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kPort;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  modify(qp, attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = IBV_MTU_1024;
  attributes.dest_qp_num = peer;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = 12;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = kPort;
  attributes.ah_attr.grh.dgid = gid;
  attributes.ah_attr.grh.hop_limit = 64;
  modify(qp, attributes,
         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = 14;
  attributes.retry_cnt = attributes.rnr_retry = 7;
  attributes.max_rd_atomic = 1;
  modify(qp, attributes,
         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC);
}

}  // namespace

void die(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

Objects open_first_device(int cq_entries) {
  ibv_device** const list = made(ibv_get_device_list(nullptr), "ibv_get_device_list");
  Objects objects{};
  objects.context = made(ibv_open_device(made(list[0], "no device")), "ibv_open_device");
  ibv_free_device_list(list);
  objects.pd = made(ibv_alloc_pd(objects.context), "ibv_alloc_pd");
  objects.cq =
      made(ibv_create_cq(objects.context, cq_entries, nullptr, nullptr, 0), "ibv_create_cq");
  return objects;
}

std::vector<ibv_qp*> make_connected(const Objects& objects, std::size_t count,
                                    std::uint32_t depth) {
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = objects.cq;
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_wr = init.cap.max_recv_wr = depth;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  std::vector<ibv_qp*> qps;
  for (std::size_t i = 0; i < count; ++i) {
    qps.push_back(made(ibv_create_qp(objects.pd, &init), "ibv_create_qp"));
  }
  ibv_gid gid{};
  if (ibv_query_gid(objects.context, kPort, 0, &gid) != 0) die("ibv_query_gid");
  for (std::size_t i = 0; i < count; ++i) bring_up(qps[i], qps[i ^ 1]->qp_num, gid);
  return qps;
}

}  // namespace urxe::bench
