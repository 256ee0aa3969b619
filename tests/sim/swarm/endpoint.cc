// How queue pairs of the swarm come, change and go.
#include "tests/sim/swarm/endpoint.h"

#include <algorithm>

#include "tests/support/bring_up.h"

namespace urxe::swarm {

using namespace emulator;

namespace {

constexpr std::size_t kOutstanding = 8;  // requests of an endpoint
constexpr std::size_t kOwnReceives = 16;
constexpr std::size_t kTargetPackets = 5;
constexpr wire::QKey kQKey{0x11111111};

}  // namespace

Endpoint::Endpoint(Shared& shared, Machine& machine, const ConnectionPlan& connection,
                   const EndPlan& plan, std::string name)
    : shared_(shared),
      machine_(machine),
      connection_(connection),
      plan_(plan),
      name_(std::move(name)),
      mtu_(bytes_of(connection.mtu)),
      receives_(&machine.shared_receives()),
      slot_used_(kOutstanding) {
  if (!plan.shares_receives) {
    own_receives_ = machine.make_receives(kOwnReceives, plan.paging);
    receives_ = own_receives_.get();
  }
  using Kind = MemoryChecker::Area;
  parts_[kTarget] = machine.make_area(
      kTargetPackets * mtu_, kLocalWrite | kRemoteWrite | kWindowBind | kFlushGlobal,
      type() == QpType::rc ? Kind::in_turn : Kind::unordered, plan.paging);
  parts_[kSource] = machine.make_area(kTargetPackets * mtu_, kLocalWrite | kRemoteRead,
                                      Kind::untouched, plan.paging);
  parts_[kLocal] = machine.make_area(kOutstanding * (shared.max_message + sizeof(std::uint64_t)),
                                     kLocalWrite, Kind::in_turn, plan.paging);
  const auto bytes = bytes_of_message(~parts_[kSource].start, parts_[kSource].size);
  std::copy(bytes.begin(), bytes.end(), machine.bytes(parts_[kSource].start, parts_[kSource].size));
  if (type() == QpType::ud) shared.datagram_ends.push_back(this);
  create_qp();
}

std::uint64_t Endpoint::slot_address(std::size_t slot) const {
  return parts_[kLocal].start + slot * (parts_[kLocal].size / kOutstanding);
}

std::optional<std::size_t> Endpoint::free_slot() {
  const auto found = std::find(slot_used_.begin(), slot_used_.end(), false);
  if (found == slot_used_.end()) return std::nullopt;
  *found = true;
  return static_cast<std::size_t>(found - slot_used_.begin());
}

void Endpoint::create_qp() {
  const bool own = own_receives_ != nullptr;
  qp_ = *machine_.device().create_qp(
      machine_.pd(), {.type = type(),
                      .send_cq = &machine_.cq(),
                      .receive_cq = &machine_.cq(),
                      .srq = own ? nullptr : &machine_.srq(),
                      .send_source = &sends_,
                      .receive_source = own ? &own_receives_->source : nullptr,
                      .capabilities = {.max_send_wr = 64, .max_send_sge = 8, .max_recv_sge = 8},
                      .signal_all = plan_.signal_all});
  machine_.add(*this, *qp_);
  if (type() != QpType::ud) {
    window_ = *machine_.device().create_window(machine_.pd(), WindowType::type2);
  }
}

void Endpoint::destroy_qp() {
  reset();
  machine_.remove(*qp_);
  const auto groups = machine_.groups().groups_of(*this);
  if (!groups.empty() && machine_.device().destroy(*qp_)) {
    shared_.findings.add("{} was destroyed in spite of its multicast groups", name_);
    return;
  }
  for (const wire::IpAddress& group : groups) machine_.detach(*this, group);
  if (!machine_.device().destroy(*qp_)) shared_.findings.add("{} cannot be destroyed", name_);
  if (window_ != nullptr) machine_.device().destroy(*window_);
  qp_ = nullptr;
  window_ = nullptr;
}

void Endpoint::destroy_rest() {
  for (const auto& [address, handle] : handles_) machine_.device().destroy(*handle);
  for (Area& part : parts_) {
    if (part.region != nullptr && !machine_.deregister_area(part)) {
      shared_.findings.add("{}: a region cannot be deregistered", name_);
    }
  }
}

void Endpoint::bring_up(wire::Psn send_psn, wire::Psn receive_psn) {
  QpAttributes attributes;
  attributes.path_mtu = connection_.mtu;
  attributes.qkey = kQKey;
  attributes.send_psn = send_psn;
  attributes.receive_psn = receive_psn;
  attributes.destination = peer_->qp().qpn();
  attributes.access = plan_.access;
  attributes.vector.destination = peer_->machine().host().address();
  attributes.vector.global = true;
  attributes.max_read_atomic = connection_.max_read_atomic;
  attributes.max_dest_read_atomic = plan_.max_dest_read_atomic;
  attributes.min_rnr_timer = connection_.min_rnr_timer;
  attributes.timeout = connection_.timeout;
  attributes.retry_count = connection_.retry_count;
  attributes.rnr_retry = connection_.rnr_retry;
  test::bring_up(*qp_, attributes);
  failed_ = may_collapse_ = peer_was_lost_ = memory_changed_ = false;
  if (type() == QpType::ud) return machine_.forget_datagrams(*qp_);
  constexpr std::int64_t kTimeoutUnitNs = 4096;
  constexpr std::int64_t kMostStretch = 4;
  const bool never = connection_.timeout == 0;
  const emulator::DeviceOptions& options = machine_.device().options();
  const Duration first =
      std::max(Duration{kTimeoutUnitNs << connection_.timeout}, options.min_ack_timeout);
  flow_ = std::make_unique<Flow>(
      shared_.findings, name_,
      Flow::Limits{
          .mtu = mtu_,
          .first = send_psn,
          .retry_count = connection_.retry_count,
          .rnr_retry = connection_.rnr_retry,
          .max_read_atomic = connection_.max_read_atomic,
          .ack_timeout = never ? Duration{}
                               : std::max(first, std::min(kMostStretch * first,
                                                          options.max_stretched_ack_timeout)),
          .reliable = type() == QpType::rc});
}

void Endpoint::forget_epoch() {
  posted_.clear();
  std::fill(slot_used_.begin(), slot_used_.end(), false);
  incoming_.clear();
  placed_.clear();
  flushes_.clear();
  machine_.memory_checker().forget(parts_[kLocal].start);
  machine_.memory_checker().forget(parts_[kSource].start);
  // Old packets of UC may still begin messages: nothing tells them from new ones.
  if (type() == QpType::rc) machine_.memory_checker().forget(parts_[kTarget].start);
  if (own_receives_ == nullptr) return;
  own_receives_->order.clear();
  for (std::size_t slot = 0; slot < own_receives_->slots.size(); ++slot) {
    machine_.memory_checker().take_back(own_receives_->start, own_receives_->address_of(slot));
    own_receives_->slots[slot] = {};
  }
}

void Endpoint::reset() {
  QpAttributes attributes;
  attributes.state = QpState::reset;
  if (!qp_->modify(attributes, kAttrState)) shared_.findings.add("{} cannot be reset", name_);
  machine_.host().settle();
  forget_epoch();
  peer_->peer_was_lost_ = true;
  // What became of a bind that was under way, nobody says.
  if (window_ == nullptr) return;
  machine_.device().destroy(*window_);
  window_ = *machine_.device().create_window(machine_.pd(), WindowType::type2);
  window_state_ = WindowState::unbound;
}

void Endpoint::fail() {
  if (state() != QpState::ready_to_send && state() != QpState::send_queue_drain) return;
  trim();
  may_collapse_ = true;
  peer_->peer_was_lost_ = true;
  QpAttributes attributes;
  attributes.state = QpState::error;
  if (!qp_->modify(attributes, kAttrState)) {
    shared_.findings.add("{} cannot be put in error", name_);
  }
  machine_.host().settle();
}

void Endpoint::drain() {
  const bool drains = state() == QpState::send_queue_drain;
  if (!drains && state() != QpState::ready_to_send) return;
  QpAttributes attributes;
  attributes.state = drains ? QpState::ready_to_send : QpState::send_queue_drain;
  // Refused while it still drains.
  static_cast<void>(qp_->modify(attributes, kAttrState));
  machine_.host().settle();
}

void Endpoint::recover() {
  if (state() != QpState::send_queue_error) return;
  QpAttributes attributes;
  attributes.state = QpState::ready_to_send;
  if (!qp_->modify(attributes, kAttrState)) {
    shared_.findings.add("{} cannot go from SQE to RTS", name_);
  }
  failed_ = false;
  machine_.host().settle();
}

void Endpoint::make_ready(net::Random& dice) {
  for (Area& part : parts_) {
    if (part.region == nullptr) machine_.register_area(part);
    machine_.bring_back(part);
  }
  machine_.bring_back(*receives_->area);
  machine_.bring_back(machine_.counters());
  if (state() == QpState::send_queue_drain) drain();
  recover();
  // Believing what is wrong, two ends may lose each other for good.
  const bool peer_lives =
      peer_->state() == QpState::ready_to_send && !peer_was_lost_ && !shared_.plan.hostile;
  if (type() == QpType::rc && connection_.timeout == 0 && !peer_lives) fail();
  if (state() != QpState::reset) post_receives(dice, receives_->slots.size());
}

}  // namespace urxe::swarm
