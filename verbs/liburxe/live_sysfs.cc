#include "verbs/liburxe/live_sysfs.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace urxe::verbs {
namespace {

using emulator::Counters;

// What a file shows: the sum of counters of the device and of one of its fabric, in units of
// `unit`.
struct Meaning {
  CounterSet set;
  std::string_view name;
  std::array<std::uint64_t Counters::*, 2> counters;
  std::uint64_t unit = 1;
  std::string_view fabric = {};
  std::uint64_t Counters::*without =
      nullptr;  // what is counted among them and does not belong here
};

constexpr auto kHardware = CounterSet::hardware;
constexpr auto kPortSet = CounterSet::port;

// What is not here is always 0: it cannot happen on a device like this one.
constexpr Meaning kMeanings[] = {
    {kHardware, "sent_pkts", {&Counters::sent_packets, nullptr}},
    {kHardware, "rcvd_pkts", {&Counters::received_packets, nullptr}},
    {kHardware, "duplicate_request", {&Counters::duplicate_requests, nullptr}},
    {kHardware, "out_of_seq_request", {&Counters::out_of_sequence_requests, nullptr}},
    {kHardware, "rcvd_rnr_err", {&Counters::received_rnr_naks, nullptr}},
    {kHardware, "send_rnr_err", {&Counters::sent_rnr_naks, nullptr}},
    {kHardware, "rcvd_seq_err", {&Counters::received_sequence_naks, nullptr}},
    {kHardware, "retry_exceeded_err", {&Counters::retries_exceeded, nullptr}},
    {kHardware, "retry_rnr_exceeded_err", {&Counters::rnr_retries_exceeded, nullptr}},
    {kHardware, "completer_retry_err", {&Counters::timeouts, &Counters::received_sequence_naks}},
    {kHardware, "rdma_sends", {&Counters::completed_sends, nullptr}},
    {kHardware, "rdma_recvs", {&Counters::completed_receives, nullptr}},
    {kHardware, "np_cnp_sent", {&Counters::congestion_notifications_sent, nullptr}},
    {kHardware, "np_ecn_marked_roce_packets", {&Counters::ce_marked_packets, nullptr}},
    {kHardware, "rp_cnp_handled", {&Counters::congestion_notifications_received, nullptr}},
    {kPortSet, "port_xmit_packets", {&Counters::sent_packets, nullptr}},
    {kPortSet, "port_rcv_packets", {&Counters::received_packets, nullptr}},
    {kPortSet,
     "unicast_xmit_packets",
     {&Counters::sent_packets, nullptr},
     1,
     {},
     &Counters::sent_multicast_packets},
    {kPortSet,
     "unicast_rcv_packets",
     {&Counters::received_packets, nullptr},
     1,
     {},
     &Counters::received_multicast_packets},
    {kPortSet, "multicast_xmit_packets", {&Counters::sent_multicast_packets, nullptr}},
    {kPortSet, "multicast_rcv_packets", {&Counters::received_multicast_packets, nullptr}},
    {kPortSet, "link_downed", {&Counters::port_errors, nullptr}},
    {kHardware, "link_downed", {&Counters::port_errors, nullptr}},
    {kHardware, "send_err", {nullptr, nullptr}, 1, "send_errors"},
    {kPortSet, "port_xmit_data", {&Counters::sent_bytes, nullptr}, 4},
    {kPortSet, "port_rcv_data", {&Counters::received_bytes, nullptr}, 4},
    {kPortSet,
     "port_rcv_errors",
     {&Counters::icrc_errors, &Counters::malformed_packets},
     1,
     "malformed"},
    // Packets to queue pairs that nobody has.
    {kPortSet, "port_rcv_switch_relay_errors", {&Counters::unknown_qp, nullptr}, 1, "ownerless"},
    {kPortSet,
     "port_rcv_constraint_errors",
     {&Counters::wrong_address, &Counters::pkey_violations}},
    {kPortSet, "excessive_buffer_overrun_errors", {nullptr, nullptr}, 1, "receive_drops"},
    {kPortSet, "port_xmit_discards", {nullptr, nullptr}, 1, "send_errors"},
};

// In the order of their attributes.
constexpr std::array<std::string_view, wire::kCmAttributes> kCmMessages = {
    "req", "mra", "rej", "rep", "rtu", "dreq", "drep", "sidr_req", "sidr_rep", "lap", "apr",
};

const emulator::CmCounters::Row* row_of(const emulator::CmCounters& counters, CounterSet set) {
  switch (set) {
    case CounterSet::cm_sent:
      return &counters.sent;
    case CounterSet::cm_sent_again:
      return &counters.sent_again;
    case CounterSet::cm_received:
      return &counters.received;
    case CounterSet::cm_received_again:
      return &counters.received_again;
    default:
      return nullptr;
  }
}

std::uint64_t cm_counter(const emulator::CmCounters& counters, CounterSet set,
                         std::string_view name) {
  const auto* const row = row_of(counters, set);
  const auto* const message = std::find(kCmMessages.begin(), kCmMessages.end(), name);
  if (row == nullptr || message == kCmMessages.end()) return 0;
  return (*row)[static_cast<std::size_t>(message - kCmMessages.begin())];
}

}  // namespace

std::vector<wire::IpAddress> LiveSysfs::gids(std::size_t device) {
  auto gids = runtime_.gids(devices_[device].name);
  return gids ? *std::move(gids) : ConfigProvider::gids(device);
}

std::uint64_t LiveSysfs::counter(std::size_t device, CounterSet set, std::string_view name) {
  const auto meaning = std::find_if(std::begin(kMeanings), std::end(kMeanings),
                                    [&](const auto& m) { return m.set == set && m.name == name; });
  if (meaning == std::end(kMeanings)) {
    const auto cm_counters = runtime_.cm_counters(devices_[device].name);
    return cm_counters ? cm_counter(*cm_counters, set, name) : 0;
  }
  const auto counters = runtime_.counters(devices_[device].name);
  if (!counters) return 0;
  std::uint64_t sum = 0;
  for (const auto counter : meaning->counters) {
    if (counter != nullptr) sum += *counters.*counter;
  }
  if (!meaning->fabric.empty())
    sum += runtime_.fabric_counter(devices_[device].name, meaning->fabric);
  if (meaning->without != nullptr) sum -= *counters.*meaning->without;
  return sum / meaning->unit;
}

}  // namespace urxe::verbs
