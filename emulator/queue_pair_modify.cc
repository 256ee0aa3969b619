// ibv_modify_qp: what may change when, and to what.
#include <fmt/core.h>

#include "emulator/queue_pair.h"

namespace urxe::emulator {
namespace {

constexpr std::uint8_t kMaxTimeout = 31;
constexpr std::uint8_t kMaxRetries = 7;
constexpr std::uint8_t kMaxRnrTimer = 31;

Result<void> at_most(AttributeMask mask, AttributeMask attribute, std::uint32_t value,
                     std::uint32_t limit, const char* name) {
  if (!mask.has(attribute) || value <= limit) return {};
  return fail(Failure::invalid, fmt::format("{} {} exceeds {}", name, value, limit));
}

}  // namespace

Result<void> QueuePair::modify(const QpAttributes& wanted, AttributeMask mask) {
  for (const auto& checked :
       {check_states(wanted, mask), check_ranges(wanted, mask), check_values(wanted, mask)}) {
    if (!checked) {
      context_.engine.explanations.add("modify QP {:#x} in state {}: {}", qpn().value(),
                                       to_string(state()), checked.error().sentence);
      return checked;
    }
  }
  apply(wanted, mask);
  if (mask.has(kAttrState)) {
    if (wanted.state == QpState::error) responder_.drop_responses();
    set_state(wanted.state);
  }
  settle();
  return {};
}

Result<void> QueuePair::check_states(const QpAttributes& wanted, AttributeMask mask) const {
  if (mask.has(kAttrCurrentState) && wanted.current_state != state()) {
    return fail(Failure::invalid, fmt::format("its state is not {}, as the attributes say",
                                              to_string(wanted.current_state)));
  }
  const QpState to = mask.has(kAttrState) ? wanted.state : state();
  const TransitionCheck check = check_transition(state(), to, type(), mask);
  if (!check.exists) {
    return fail(Failure::invalid,
                fmt::format("an {} queue pair cannot go to {}", to_string(type()), to_string(to)));
  }
  if (!check.ok()) {
    return fail(Failure::invalid,
                fmt::format("going to {} lacks attributes {:#x} and has {:#x} too many",
                            to_string(to), check.missing.bits(), check.surplus.bits()));
  }
  const bool leaves_drain =
      state() == QpState::send_queue_drain && mask.has(kAttrState) && to == QpState::ready_to_send;
  if (leaves_drain && drain_is_pending_) {
    return fail(Failure::invalid, "it is still draining");
  }
  return {};
}

Result<void> QueuePair::check_ranges(const QpAttributes& wanted, AttributeMask mask) const {
  const DeviceLimits& limits = context_.engine.options.limits;
  const auto max_mtu = static_cast<std::uint32_t>(context_.engine.options.port_mtu);
  for (const auto& checked : {
           at_most(mask, kAttrTimeout, wanted.timeout, kMaxTimeout, "timeout"),
           at_most(mask, kAttrRetryCount, wanted.retry_count, kMaxRetries, "retry_cnt"),
           at_most(mask, kAttrRnrRetry, wanted.rnr_retry, kMaxRetries, "rnr_retry"),
           at_most(mask, kAttrMinRnrTimer, wanted.min_rnr_timer, kMaxRnrTimer, "min_rnr_timer"),
           at_most(mask, kAttrMaxReadAtomic, wanted.max_read_atomic, limits.max_qp_read_atomic,
                   "max_rd_atomic"),
           at_most(mask, kAttrMaxDestReadAtomic, wanted.max_dest_read_atomic,
                   limits.max_qp_read_atomic, "max_dest_rd_atomic"),
           at_most(mask, kAttrPKeyIndex, wanted.pkey_index, 0, "pkey_index"),
           at_most(mask, kAttrPathMtu, static_cast<std::uint32_t>(wanted.path_mtu), max_mtu,
                   "path_mtu (5 is 4096)"),
       }) {
    if (!checked) return checked;
  }
  if (mask.has(kAttrPathMtu) && wanted.path_mtu < Mtu::bytes256) {
    return fail(Failure::invalid, "path_mtu 0 is not an MTU");
  }
  return {};
}

Result<void> QueuePair::check_values(const QpAttributes& wanted, AttributeMask mask) const {
  if (mask.has(kAttrPort) && wanted.port != 1) {
    return fail(Failure::invalid, fmt::format("port {} does not exist", wanted.port));
  }
  if (mask.has(kAttrAlternatePath)) {
    return fail(Failure::not_supported, "RoCE has no alternate paths");
  }
  if (mask.has(kAttrAddressVector)) {
    const wire::Qpn remote =
        mask.has(kAttrDestinationQpn) ? wanted.destination : attributes().destination;
    const auto path = context_.engine.gids.path_of(wanted.vector, qpn(), remote);
    if (!path) return tl::unexpected(path.error());
  }
  return {};
}

void QueuePair::apply(const QpAttributes& wanted, AttributeMask mask) {
  QpAttributes& own = context_.attributes;
  if (mask.has(kAttrDrainNotify)) own.drain_notify = wanted.drain_notify;
  if (mask.has(kAttrAccess)) own.access = wanted.access;
  if (mask.has(kAttrPKeyIndex)) own.pkey_index = wanted.pkey_index;
  if (mask.has(kAttrPort)) own.port = wanted.port;
  if (mask.has(kAttrQKey)) own.qkey = wanted.qkey;
  if (mask.has(kAttrTimeout)) own.timeout = wanted.timeout;
  if (mask.has(kAttrRetryCount)) own.retry_count = wanted.retry_count;
  if (mask.has(kAttrRnrRetry)) own.rnr_retry = wanted.rnr_retry;
  if (mask.has(kAttrMinRnrTimer)) own.min_rnr_timer = wanted.min_rnr_timer;
  if (mask.has(kAttrMaxReadAtomic)) own.max_read_atomic = wanted.max_read_atomic;
  if (mask.has(kAttrMaxDestReadAtomic)) own.max_dest_read_atomic = wanted.max_dest_read_atomic;
  if (mask.has(kAttrReceivePsn)) own.receive_psn = wanted.receive_psn;
  if (mask.has(kAttrSendPsn)) own.send_psn = wanted.send_psn;
  if (mask.has(kAttrMigrationState)) own.migration_state = wanted.migration_state;
  apply_connection(wanted, mask);
}

void QueuePair::apply_connection(const QpAttributes& wanted, AttributeMask mask) {
  QpAttributes& own = context_.attributes;
  if (mask.has(kAttrDestinationQpn)) own.destination = wanted.destination;
  if (mask.has(kAttrPathMtu)) {
    own.path_mtu = wanted.path_mtu;
    context_.mtu = bytes_of(wanted.path_mtu);
  }
  if (mask.has(kAttrAddressVector)) {
    own.vector = wanted.vector;
    context_.path = *context_.engine.gids.path_of(wanted.vector, qpn(), own.destination);
    if (congestion_ && context_.path.ecn() == wire::Ecn::not_ect) {
      context_.path.traffic_class |= static_cast<std::uint8_t>(wire::Ecn::ect0);
    }
  }
}

}  // namespace urxe::emulator
