#include "verbs/uverbs/device_facts.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <endian.h>
#include <unistd.h>

#include "verbs/abi/rxe_abi.h"
#include "verbs/config/port_status.h"

namespace urxe::verbs::uverbs {
namespace {

// What rxe says of itself (rxe_param.h), where the emulator has no limit of its own.
constexpr std::uint64_t kPageSizes = 0xFFFFF000;
constexpr std::uint32_t kVendorId = 0xFFFFFF;
constexpr std::uint32_t kMaxReadAtomicResources = 0x3F000;
constexpr std::uint16_t kMaxPKeys = 64;
constexpr std::uint8_t kLocalAckDelay = 15;
constexpr std::uint32_t kCapabilities =
    IB_UVERBS_DEVICE_BAD_PKEY_CNTR | IB_UVERBS_DEVICE_BAD_QKEY_CNTR |
    IB_UVERBS_DEVICE_AUTO_PATH_MIG | IB_UVERBS_DEVICE_CHANGE_PHY_PORT |
    IB_UVERBS_DEVICE_UD_AV_PORT_ENFORCE | IB_UVERBS_DEVICE_PORT_ACTIVE_EVENT |
    IB_UVERBS_DEVICE_SYS_IMAGE_GUID | IB_UVERBS_DEVICE_RC_RNR_NAK_GEN |
    IB_UVERBS_DEVICE_SRQ_RESIZE | IB_UVERBS_DEVICE_MEM_MGT_EXTENSIONS |
    IB_UVERBS_DEVICE_MEM_WINDOW | IB_UVERBS_DEVICE_MEM_WINDOW_TYPE_2B;

// ib_odp_general_cap_bits and ib_odp_transport_cap_bits of the kernel's ib_verbs.h. Memory is never
// pinned here, so all of it is paged on demand.
constexpr std::uint64_t kOdpGeneral = 1U << 0 | 1U << 1;  // supported, implicit too
constexpr std::uint32_t kOdpSend = 1U << 0;
constexpr std::uint32_t kOdpReceive = 1U << 1;
constexpr std::uint32_t kOdpWrite = 1U << 2;
constexpr std::uint32_t kOdpRead = 1U << 3;
constexpr std::uint32_t kOdpAtomic = 1U << 4;
constexpr std::uint32_t kOdpSrqReceive = 1U << 5;

constexpr std::uint32_t kAtomicHca = 1;    // IB_ATOMIC_HCA
constexpr std::uint8_t kLinkEthernet = 2;  // IBV_LINK_LAYER_ETHERNET
constexpr std::uint32_t kAtLeastVectors = 2;

}  // namespace

std::uint32_t completion_vectors() {
  const long processors = sysconf(_SC_NPROCESSORS_CONF);
  return std::max(kAtLeastVectors, static_cast<std::uint32_t>(std::max(processors, 0L)));
}

ib_uverbs_query_device_resp device_facts(const DeviceConfig& config,
                                         const emulator::Device& device) {
  const emulator::DeviceLimits& limits = device.options().limits;
  ib_uverbs_query_device_resp facts{};
  facts.node_guid = htobe64(config.guid);
  facts.sys_image_guid = htobe64(config.guid);
  facts.max_mr_size = limits.max_region_size;
  facts.page_size_cap = kPageSizes;
  facts.vendor_id = kVendorId;
  facts.max_qp = limits.max_qp;
  facts.max_qp_wr = limits.max_qp_wr;
  facts.device_cap_flags = kCapabilities;
  facts.max_sge = limits.max_sge;
  facts.max_sge_rd = limits.max_sge;
  facts.max_cq = limits.max_cq;
  facts.max_cqe = limits.max_cqe;
  facts.max_mr = limits.max_regions;
  facts.max_pd = limits.max_pd;
  facts.max_qp_rd_atom = limits.max_qp_read_atomic;
  facts.max_res_rd_atom = kMaxReadAtomicResources;
  facts.max_qp_init_rd_atom = limits.max_qp_read_atomic;
  facts.atomic_cap = kAtomicHca;
  facts.max_mw = limits.max_windows;
  facts.max_mcast_grp = limits.max_multicast_groups;
  facts.max_mcast_qp_attach = limits.max_multicast_attach;
  facts.max_total_mcast_qp_attach = limits.max_multicast_groups * limits.max_multicast_attach;
  facts.max_ah = limits.max_ah;
  facts.max_srq = limits.max_srq;
  facts.max_srq_wr = limits.max_srq_wr;
  facts.max_srq_sge = limits.max_srq_sge;
  facts.max_pkeys = kMaxPKeys;
  facts.local_ca_ack_delay = kLocalAckDelay;
  facts.phys_port_cnt = kPort;
  return facts;
}

ib_uverbs_ex_query_device_resp extended_device_facts(const DeviceConfig& config,
                                                     const emulator::Device& device) {
  ib_uverbs_ex_query_device_resp facts{};
  facts.base = device_facts(config, device);
  facts.device_cap_flags_ex = kCapabilities | abi::kDeviceAtomicWrite | abi::kDeviceFlushGlobal;
  facts.odp_caps.general_caps = kOdpGeneral;
  auto& transports = facts.odp_caps.per_transport_caps;
  transports.ud_odp_caps = kOdpSend | kOdpReceive | kOdpSrqReceive;
  transports.uc_odp_caps = transports.ud_odp_caps | kOdpWrite;
  transports.rc_odp_caps = transports.uc_odp_caps | kOdpRead | kOdpAtomic;
  return facts;
}

ib_uverbs_query_port_resp port_facts(const DeviceConfig& config, const emulator::Device& device) {
  const PortStatus status = port_status(config);
  ib_uverbs_query_port_resp facts{};
  facts.port_cap_flags = IB_UVERBS_PCF_CM_SUP;
  facts.max_msg_sz = emulator::kMaxMessageSize;
  facts.gid_tbl_len = kGidTableSize;
  facts.pkey_tbl_len = 1;
  facts.state = static_cast<std::uint8_t>(status.state);
  facts.max_mtu = static_cast<std::uint8_t>(emulator::Mtu::bytes4096);
  facts.active_mtu = static_cast<std::uint8_t>(device.options().port_mtu);
  facts.max_vl_num = 1;
  facts.active_width = static_cast<std::uint8_t>(status.rate.width);
  facts.active_speed = static_cast<std::uint8_t>(status.rate.speed);
  facts.phys_state = static_cast<std::uint8_t>(status.physical);
  facts.link_layer = kLinkEthernet;
  return facts;
}

ib_uverbs_gid_entry gid_entry(const DeviceConfig& config, const emulator::Device& device,
                              std::uint32_t index) {
  ib_uverbs_gid_entry entry{};
  const auto& bytes = device.gids().gids()[index].bytes();
  static_assert(sizeof(entry.gid) == wire::IpAddress::kSize);
  std::memcpy(&entry.gid, bytes.data(), bytes.size());
  entry.gid_index = index;
  entry.port_num = kPort;
  entry.gid_type = IB_UVERBS_GID_TYPE_ROCE_V2;
  entry.netdev_ifindex = config.ifindex;
  return entry;
}

}  // namespace urxe::verbs::uverbs
