// The names of a port's counters.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "verbs/sysfs/provider.h"

namespace urxe::verbs {

// InfiniBand's counters (IBTA 16.1). rxe has none of them, but monitoring tools look for them.
inline constexpr std::array<std::string_view, 21> kPortCounters = {
    "VL15_dropped",
    "excessive_buffer_overrun_errors",
    "link_downed",
    "link_error_recovery",
    "local_link_integrity_errors",
    "multicast_rcv_packets",
    "multicast_xmit_packets",
    "port_rcv_constraint_errors",
    "port_rcv_data",  // in units of four bytes
    "port_rcv_errors",
    "port_rcv_packets",
    "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors",
    "port_xmit_constraint_errors",
    "port_xmit_data",  // in units of four bytes
    "port_xmit_discards",
    "port_xmit_packets",
    "port_xmit_wait",
    "symbol_error",
    "unicast_rcv_packets",
    "unicast_xmit_packets",
};

// As rxe names them, and, of congestion control, which rxe has not, as mlx5 does.
inline constexpr std::array<std::string_view, 18> kHardwareCounters = {
    "ack_deferred",
    "completer_retry_err",
    "duplicate_request",
    "link_downed",
    "out_of_seq_request",
    "rcvd_pkts",
    "rcvd_rnr_err",
    "rcvd_seq_err",
    "rdma_recvs",
    "rdma_sends",
    "retry_exceeded_err",
    "retry_rnr_exceeded_err",
    "send_err",
    "send_rnr_err",
    "sent_pkts",
    "np_cnp_sent",
    "np_ecn_marked_roce_packets",
    "rp_cnp_handled",
};

// The messages of the connection manager.
inline constexpr std::array<std::string_view, 11> kCmCounters = {
    "apr", "drep", "dreq", "lap", "mra", "rej", "rep", "req", "rtu", "sidr_rep", "sidr_req",
};

struct CounterDirectory {
  CounterSet set;
  std::string_view name;
  std::span<const std::string_view> counters;
};

inline constexpr std::array<CounterDirectory, 6> kCounterDirectories = {{
    {CounterSet::port, "counters", kPortCounters},
    {CounterSet::hardware, "hw_counters", kHardwareCounters},
    {CounterSet::cm_sent, "cm_tx_msgs", kCmCounters},
    {CounterSet::cm_sent_again, "cm_tx_retries", kCmCounters},
    {CounterSet::cm_received, "cm_rx_msgs", kCmCounters},
    {CounterSet::cm_received_again, "cm_rx_duplicates", kCmCounters},
}};

}  // namespace urxe::verbs
