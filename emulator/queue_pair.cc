#include "emulator/queue_pair.h"

#include <fmt/core.h>

namespace urxe::emulator {
namespace {

constexpr std::uint16_t kPKeyBaseMask = 0x7FFF;
constexpr std::uint16_t kFullMembership = 0x8000;

// IBTA 10.9.3: equal but for the membership bit, and not both limited members.
bool pkeys_match(wire::PKey a, wire::PKey b) {
  return ((a.value() ^ b.value()) & kPKeyBaseMask) == 0 && (a.value() & kPKeyBaseMask) != 0 &&
         ((a.value() | b.value()) & kFullMembership) != 0;
}

wire::Service service_of(QpType type) {
  switch (type) {
    case QpType::rc:
      return wire::Service::rc;
    case QpType::uc:
      return wire::Service::uc;
    default:
      return wire::Service::ud;
  }
}

ReceiveQueue& receives_of(const QueuePairSpec& spec, std::optional<ReceiveQueue>& own,
                          EventQueue& events) {
  if (spec.srq != nullptr) return *spec.srq;
  return own.emplace(events, *spec.receive_source);
}

}  // namespace

QueuePair::QueuePair(Engine& engine, ProtectionDomain& pd, const QueuePairSpec& spec, wire::Qpn qpn)
    : context_(engine, pd, spec.type, qpn, *spec.send_cq, *spec.receive_cq,
               receives_of(spec, own_receives_, engine.events)),
      send_queue_(context_, *spec.send_source),
      requester_(context_, send_queue_, *this),
      completer_(context_, send_queue_, requester_),
      responder_(context_),
      send_source_(*spec.send_source) {
  context_.signal_all = spec.signal_all;
  context_.shares_receives = spec.srq != nullptr;
  context_.attributes.capabilities = spec.capabilities;
  // A datagram is one packet. How long it may be is the port's affair when it is sent.
  if (!context_.is_connected()) context_.mtu = bytes_of(Mtu::bytes4096);
  if (engine.options.congestion.enabled && context_.is_connected()) {
    congestion_ = std::make_unique<Congestion>(engine.options.congestion);
  }
}

QueuePair::~QueuePair() {
  context_.engine.timers.forget(*this);
  context_.engine.events.forget(*this);
}

// --- work

Result<void> QueuePair::ring_doorbell() {
  switch (state()) {
    case QpState::ready_to_send:
    case QpState::send_queue_drain:
      activate();
      return {};
    case QpState::error:
    case QpState::send_queue_error:
      send_queue_.flush();
      return {};
    default:
      send_queue_.clear();
      return tl::unexpected(
          Error{Failure::invalid,
                fmt::format("QP {:#x}: send requests posted in state {}, which takes none",
                            qpn().value(), to_string(state()))});
  }
}

void QueuePair::flush_posted_receives() {
  if (state() == QpState::error) responder_.flush_receives();
}

// --- packets

bool QueuePair::accepts(const wire::Packet& packet, const wire::Inbound& inbound) {
  Counters& counters = context_.engine.counters;
  const bool fits =
      packet.info->service == service_of(type()) || packet.info->service == wire::Service::cnp;
  if (!fits) {
    ++counters.unknown_qp;
    return false;
  }
  const bool response = packet.info->is_response();
  const bool sends = state() == QpState::ready_to_send || state() == QpState::send_queue_drain;
  const bool receives =
      sends || state() == QpState::ready_to_receive || state() == QpState::send_queue_error;
  if (response ? !sends : !receives) {
    ++counters.wrong_state;
    return false;
  }
  const bool from_peer = inbound.path.source == context_.path.destination &&
                         inbound.path.destination == context_.path.source;
  if (context_.is_connected() && !from_peer) {
    ++counters.wrong_address;
    return false;
  }
  return accepts_keys(packet);
}

bool QueuePair::accepts_keys(const wire::Packet& packet) {
  Counters& counters = context_.engine.counters;
  if (!pkeys_match(packet.bth.pkey, wire::kDefaultPKey)) {
    ++counters.pkey_violations;
    return false;
  }
  const wire::QKey qkey = type() == QpType::gsi ? wire::kGsiQKey : context_.attributes.qkey;
  if (packet.info->has(wire::Header::deth) && packet.deth.qkey != qkey) {
    ++counters.qkey_violations;
    return false;
  }
  return true;
}

void QueuePair::handle_packet(Time now, const wire::Packet& packet, const wire::Inbound& inbound) {
  if (!accepts(packet, inbound)) return;
  note_established();
  if (packet.info->service == wire::Service::cnp) {
    ++context_.engine.counters.congestion_notifications_received;
    if (congestion_) congestion_->sender.notified(now);
    return settle();
  }
  if (congestion_) note_congestion(now, packet, inbound);
  if (packet.info->is_response()) {
    completer_.handle_response(now, packet);
    activate();
  } else {
    responder_.handle_request(packet, inbound);
    if (responder_.has_output()) activate();
  }
  settle();
}

// The first packet in RTR: the program may go to RTS now (IBTA 11.6.3.1).
void QueuePair::note_established() {
  if (state() != QpState::ready_to_receive || established_ || !context_.is_connected()) return;
  established_ = true;
  context_.engine.events.add({AsyncEventType::communication_established, this});
}

void QueuePair::handle_timer(Time now) {
  if (congestion_) {
    congestion_->is_held = false;
    congestion_->sender.handle_timer(now);
    activate();
  }
  requester_.handle_timer(now);
  settle();
}

std::optional<wire::Outbound> QueuePair::poll_answer(wire::MutableBytes slot) {
  const auto size = responder_.poll_transmit(slot);
  if (!size) return std::nullopt;
  return wire::Outbound{.path = &context_.path, .size = *size};
}

std::optional<wire::Outbound> QueuePair::poll_request(Time now, wire::MutableBytes slot) {
  const auto output = requester_.poll_transmit(now, slot);
  if (!output) return std::nullopt;
  return wire::Outbound{.path = output->path, .size = output->size};
}

std::optional<wire::Outbound> QueuePair::poll_transmit(Time now, wire::MutableBytes slot) {
  auto outbound = congestion_ ? poll_limited(now, slot) : poll_halves(now, slot);
  settle();
  return outbound;
}

std::optional<wire::Outbound> QueuePair::poll_halves(Time now, wire::MutableBytes slot) {
  // What answers read from memory goes at once.
  const bool request_first =
      context_.engine.requests_first && !sent_request_ && !responder_.reads_memory();
  auto outbound = request_first ? poll_request(now, slot) : poll_answer(slot);
  sent_request_ = request_first && outbound;
  if (!outbound) outbound = request_first ? poll_answer(slot) : poll_request(now, slot);
  return outbound;
}

// --- endings

void QueuePair::settle() {
  const Collapse collapse = std::exchange(context_.collapse, Collapse::none);
  switch (collapse) {
    case Collapse::none:
      break;
    case Collapse::send_queue:
      set_state(QpState::send_queue_error);
      break;
    case Collapse::by_responder:
      context_.engine.events.add({context_.collapse_event, this});
      [[fallthrough]];
    case Collapse::by_requester:
      set_state(QpState::error);
      if (responder_.has_output()) activate();  // the NAK still has to leave
      break;
  }
  note_drained();
  arm_timer();
}

void QueuePair::arm_timer() {
  Time deadline = requester_.deadline();
  if (congestion_) deadline = std::min(deadline, congestion_->deadline());
  context_.engine.timers.set(*this, deadline);
}

void QueuePair::force_error(AsyncEventType event) {
  if (state() == QpState::error || state() == QpState::reset) return;
  context_.engine.events.add({event, this});
  responder_.drop_responses();
  set_state(QpState::error);
  settle();
}

void QueuePair::note_drained() {
  if (!drain_is_pending_ || !requester_.is_drained()) return;
  drain_is_pending_ = false;
  context_.attributes.draining = false;
  if (context_.attributes.drain_notify) {
    context_.engine.events.add({AsyncEventType::send_queue_drained, this});
  }
}

void QueuePair::set_state(QpState to) {
  const QpState from = state();
  context_.attributes.state = to;
  context_.attributes.current_state = to;
  enter_state(from, to);
}

void QueuePair::enter_state(QpState from, QpState to) {
  switch (to) {
    case QpState::reset:
      Flusher::unlink();
      requester_.reset();
      send_queue_.clear();
      responder_.reset();
      if (!context_.shares_receives) context_.receive_queue->source().clear();
      drain_is_pending_ = established_ = false;
      if (congestion_) *congestion_ = Congestion(context_.engine.options.congestion);
      break;
    case QpState::ready_to_receive:
      responder_.start(context_.attributes.receive_psn);
      break;
    case QpState::ready_to_send:
      if (from == QpState::ready_to_receive) {
        send_source_.clear();  // what was posted too early was refused
        requester_.start(context_.attributes.send_psn);
      } else if (from == QpState::send_queue_error) {
        requester_.resume();
      }
      drain_is_pending_ = false;
      activate();
      break;
    case QpState::send_queue_drain:
      drain_is_pending_ = true;
      context_.attributes.draining = true;
      activate();
      break;
    case QpState::send_queue_error:
      requester_.reset();
      send_queue_.flush();
      break;
    case QpState::error:
      if (from != QpState::error) enter_error();
      break;
    case QpState::init:
      break;
  }
}

void QueuePair::enter_error() {
  if (!context_.shares_receives) context_.engine.flushers.push_back(*this);
  requester_.reset();
  send_queue_.flush();
  responder_.flush_receives();
  drain_is_pending_ = false;
  if (context_.shares_receives) {  // IBTA 11.6.3.1: no more receives will be taken from the SRQ
    context_.engine.events.add({AsyncEventType::last_wqe_reached, this});
  }
}

}  // namespace urxe::emulator
