// rdma/rdma_user_cm.h: the commands of /dev/infiniband/rdma_cm, with the sizes that librdmacm of
// every version sends and expects.
#pragma once

#include <cstddef>
#include <cstdint>

// First, or the kernel's headers bring an in6_addr of their own.
#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>

namespace urxe::verbs::abi {

static_assert(sizeof(rdma_ucm_cmd_hdr) == 8);
static_assert(sizeof(rdma_ucm_create_id) == 24);
static_assert(sizeof(rdma_ucm_create_id_resp) == 4);
static_assert(sizeof(rdma_ucm_destroy_id) == 16);
static_assert(sizeof(rdma_ucm_bind_ip) == 40);
static_assert(sizeof(rdma_ucm_bind) == 136);
static_assert(sizeof(rdma_ucm_resolve_ip) == 64);
static_assert(sizeof(rdma_ucm_resolve_addr) == 272);
static_assert(sizeof(rdma_ucm_resolve_route) == 8);
static_assert(sizeof(rdma_ucm_query) == 16);
static_assert(sizeof(rdma_ucm_query_route_resp) == 208);
static_assert(sizeof(rdma_ucm_query_addr_resp) == 280);
static_assert(sizeof(rdma_ucm_query_path_resp) == 8);
static_assert(sizeof(ib_path_rec_data) == 72);
static_assert(sizeof(ib_user_path_rec) == 64);
static_assert(sizeof(rdma_ucm_conn_param) == 272);
static_assert(sizeof(rdma_ucm_ud_param) == 304);
static_assert(sizeof(rdma_ucm_connect) == 288);
static_assert(sizeof(rdma_ucm_accept) == 296);
static_assert(sizeof(rdma_ucm_reject) == 264);
static_assert(sizeof(rdma_ucm_event_resp) == 336);
static_assert(offsetof(rdma_ucm_event_resp, param) == 20);
static_assert(sizeof(rdma_ucm_join_mcast) == 152);
static_assert(sizeof(rdma_ucm_set_option) == 24);
static_assert(sizeof(rdma_ucm_migrate_id) == 16);

// rdma_cm_event_type of the kernel's include/rdma/rdma_cm.h, which no user header has.
enum class CmEventType : std::uint32_t {
  addr_resolved,
  addr_error,
  route_resolved,
  route_error,
  connect_request,
  connect_response,
  connect_error,
  unreachable,
  rejected,
  established,
  disconnected,
  device_removal,
  multicast_join,
  multicast_error,
  addr_change,
  timewait_exit,
};

// Of the kernel's include/rdma/ib.h: an InfiniBand address as a socket address.
inline constexpr std::uint16_t kAfIb = 27;
struct SocketAddressIb {
  std::uint16_t family;
  std::uint16_t pkey;  // big endian, as all that follows but the scope
  std::uint32_t flow_info;
  std::uint8_t address[16];
  std::uint64_t service;
  std::uint64_t service_mask;
  std::uint64_t scope;
};
static_assert(sizeof(SocketAddressIb) == 48);

}  // namespace urxe::verbs::abi
