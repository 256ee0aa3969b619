#include "emulator/requester.h"

#include <algorithm>

#include "emulator/request_builder.h"

namespace urxe::emulator {
namespace {

// A long message asks for an acknowledgement this often, so that the window opens before it is
// shut.
constexpr std::uint32_t kAckRequestsPerWindow = 4;
// Who has to wait for room waits until so much of the window is free, if that takes a message to
// its end: packets that follow each other cost far less than packets of many queue pairs in turn.
constexpr std::uint32_t kTurnsPerWindow = 8;

}  // namespace

void Requester::start(wire::Psn first) {
  reset();
  una_psn_ = send_psn_ = next_psn_ = first;
  asked_psn_ = first - 1;
  cursor_ = queue_.end();
  if (context_.is_connected()) {
    peer_ = context_.engine.peers.find(context_.path.destination, context_.attributes.destination);
  }
}

void Requester::reset() {
  go_back();
  unlink();
  end_turn();
  offer_rooms();
  peer_ = {};
  reads_in_flight_.release();
  next_psn_ = send_psn_ = una_psn_;
  cursor_ = queue_.end();
  cursor_packet_ = 0;
  retries_ = rnr_retries_ = probes_ = 0;
  probe_is_due_ = waits_for_receiver_ = false;
  probed_psn_.reset();
  asked_again_until_.reset();
  read_window_eighths_ = kNoReadWindow;
  went_back_to_.reset();
  timed_psn_.reset();
  ack_deadline_ = probe_deadline_ = kNever;
}

// --- sending

bool Requester::may_send(Time now) const {
  const QpState state = context_.attributes.state;
  if (state != QpState::ready_to_send && state != QpState::send_queue_drain) return false;
  return !waits_for_receiver_ || now >= receiver_ready_at_;
}

std::optional<Requester::Output> Requester::poll_transmit(Time now, wire::MutableBytes slot) {
  std::optional<Output> output;
  Wait wait = Wait::elsewhere;
  if (may_send(now)) {
    waits_for_receiver_ = false;
    if (probe_is_due_) output = send_probe(slot);
    if (output) return output;
    wait = find_work();
    if (wait == Wait::nothing) output = send_current(now, slot);
  }
  if (!output && wait != Wait::window) pass_on_turn();
  return output;
}

// It has no use for room now: those behind it in line may have.
void Requester::pass_on_turn() {
  end_turn();
  offer_rooms();
}

void Requester::offer_rooms() {
  if (peer_) peer_->offer_room();
  context_.engine.reads.offer_room();
}

Requester::Wait Requester::find_work() {
  while (true) {
    if (!queue_.holds(cursor_)) {
      if (context_.attributes.state == QpState::send_queue_drain || !queue_.take()) {
        return Wait::work;
      }
    }
    Work& work = queue_.at(cursor_);
    if (work.done && work.status != CompletionStatus::success) return Wait::elsewhere;
    if (work.done || (work.started() && cursor_packet_ >= work.packets)) {
      ++cursor_;
      cursor_packet_ = 0;
      position_.rewind();
      position_is_current_ = true;
      continue;
    }
    if (!work.started()) {
      if (context_.attributes.state == QpState::send_queue_drain) return Wait::elsewhere;
      if (const Wait wait = start_work(work); wait != Wait::nothing) return wait;
      if (work.is_local()) {
        ++cursor_;
        complete_requests();
        continue;
      }
    }
    return check_windows(work);
  }
}

Requester::Wait Requester::start_work(Work& work) {
  if (work.request.flags.has(kFence) && !reads_in_flight_.empty()) return Wait::elsewhere;
  if (const auto status = refuse(work)) {
    halt(work, *status, work.vendor_error);
    return Wait::elsewhere;
  }
  if (work.is_local()) {
    execute_local(work);
    return work.status == CompletionStatus::success ? Wait::nothing : Wait::elsewhere;
  }
  work.first_psn = next_psn_;
  work.packets = packets_of(work.request.length, context_.mtu);
  work.read_piece = read_piece();
  position_.rewind();
  position_is_current_ = true;
  return Wait::nothing;
}

void Requester::execute_local(Work& work) {
  const SendRequest& request = work.request;
  const bool binds = request.opcode == WorkOpcode::bind_window;
  const auto result =
      binds ? context_.engine.keys.bind_window(*context_.pd, context_.qpn, request.bind)
            : context_.engine.keys.invalidate(*context_.pd, context_.qpn, request.invalidate);
  if (result) {
    work.finish(CompletionStatus::success);
    return;
  }
  context_.engine.explanations.add("QP {:#x}: {} refused: {}", context_.qpn.value(),
                                   to_string(request.opcode), result.error().sentence);
  halt(work,
       binds ? CompletionStatus::window_bind_error : CompletionStatus::local_qp_operation_error,
       binds ? VendorError::bind_refused : VendorError::invalidate_refused);
}

Requester::Wait Requester::check_windows(const Work& work) {
  if (!context_.is_reliable()) return Wait::nothing;
  const std::uint32_t packets = read_packets(work, cursor_packet_);
  const std::uint32_t payload =
      payload_of(work.request.length, context_.mtu, cursor_packet_, packets);
  const bool goes_again = send_psn_ == went_back_to_;
  if (work.needs_response()) {
    if (reads_in_flight_.size() >= context_.attributes.max_read_atomic) return Wait::elsewhere;
    const auto asked = static_cast<std::uint32_t>(send_psn_.ahead_of(una_psn_)) + packets;
    if (!reads_in_flight_.empty() && 8 * asked > read_window_eighths_) return Wait::elsewhere;
    if (goes_again) return Wait::nothing;
    return ask_for_room(context_.engine.reads, payload, payload);
  }
  if (goes_again) return Wait::nothing;
  const std::uint32_t packet = payload + kPacketOverhead;
  const std::uint32_t rest = work.packets - cursor_packet_;
  const bool ends = rest <= context_.engine.options.transmit_quantum &&
                    rest * packet <= peer_->window() / kTurnsPerWindow;
  return ask_for_room(*peer_, packet, ends ? rest * packet : packet);
}

template <typename Window>
Requester::Wait Requester::ask_for_room(Window& window, std::uint32_t packet, std::uint32_t turn) {
  if (window.has_room(packet) && (has_turn() || !window.has_waiters())) return Wait::nothing;
  const bool gives_up_turn = has_turn();
  window.wait_for_room(*this, turn);
  if (gives_up_turn) offer_rooms();
  return Wait::window;
}

// READs are split, so that no more arrives at one time than this device's socket buffer holds.
std::uint32_t Requester::read_piece() const {
  const std::uint32_t pieces = std::clamp<std::uint32_t>(context_.attributes.max_read_atomic, 1, 4);
  return std::max(context_.engine.reads.limit() / pieces / context_.mtu, std::uint32_t{1});
}

// For how many response packets a request from packet `from` on asks: up to the end of the piece
// that the first transmission asked for too. A responder answers a duplicate only if it is a part
// of one request that it executed (IBTA 9.7.4.1.2). Within a piece of which something came, which
// was executed therefore, the request may end earlier: when losses made the window small.
std::uint32_t Requester::read_packets(const Work& work, std::uint32_t from) const {
  if (!work.is_read()) return 1;
  const std::uint32_t into_piece = from % work.read_piece;
  const std::uint32_t rest = std::min(work.read_piece - into_piece, work.packets - from);
  if (into_piece == 0) return rest;
  return std::min(rest, read_window_eighths_ / 8);
}

std::optional<Requester::Output> Requester::send_current(Time now, wire::MutableBytes slot) {
  Work& work = queue_.at(cursor_);
  const std::uint32_t packets = read_packets(work, cursor_packet_);
  const std::uint32_t payload =
      payload_of(work.request.length, context_.mtu, cursor_packet_, packets);
  const bool last = cursor_packet_ + packets == work.packets;
  const bool ack_request = context_.is_reliable() && (last || must_ask_for_ack(payload));
  if (ack_request) {
    bytes_since_ack_request_ = 0;
    asked_psn_ = send_psn_;
  }
  if (!position_is_current_) {
    position_.seek(work.request.sges, std::uint64_t{cursor_packet_} * context_.mtu);
    position_is_current_ = true;
  }
  const wire::Path* path = path_of(work);
  if (path == nullptr) return std::nullopt;
  const auto size = build_request(
      context_, work, {.index = cursor_packet_, .count = packets, .ack_request = ack_request},
      position_, slot);
  if (!size) {
    fail_memory(work, size.error());
    return std::nullopt;
  }
  if (ack_request && send_psn_ == next_psn_ && !timed_psn_) {
    timed_psn_ = send_psn_;
    timed_since_ = now;
  }
  after_send(work, packets, payload, now);
  return Output{*size, path};
}

bool Requester::must_ask_for_ack(std::uint32_t payload) {
  bytes_since_ack_request_ += payload;
  if (bytes_since_ack_request_ >= peer_->window() / kAckRequestsPerWindow) return true;
  const std::uint64_t after_next =
      peer_->in_flight() + payload + context_.mtu + 2 * kPacketOverhead;
  if (after_next > peer_->window()) {
    // Others may have filled the window: what opens it again has to be asked for before it is shut.
    const auto unacknowledged = static_cast<std::uint32_t>(send_psn_.ahead_of(una_psn_));
    if (!asked_psn_.in_window(una_psn_, unacknowledged)) return true;
  }
  return send_psn_ == went_back_to_;
}

const wire::Path* Requester::path_of(Work& work) {
  if (context_.is_connected()) return &context_.path;
  const DatagramAddress& address = work.request.datagram;
  const AddressHandle* handle = context_.engine.address_handles.find(address.handle_number);
  const AddressVector& vector = handle != nullptr ? handle->vector() : address.vector;
  const bool usable =
      address.handle_number == 0 || (handle != nullptr && &handle->pd() == context_.pd.get());
  auto path = context_.engine.gids.path_of(vector, context_.qpn, address.qpn);
  if (usable && path) {
    datagram_path_ = *path;
    return &datagram_path_;
  }
  context_.engine.explanations.add(
      "QP {:#x}: SEND with a bad address handle: {}", context_.qpn.value(),
      usable ? path.error().sentence : "it does not exist or is of another protection domain");
  halt(work, CompletionStatus::local_qp_operation_error, VendorError::bad_address_handle);
  return nullptr;
}

void Requester::after_send(Work& work, std::uint32_t packets, std::uint32_t payload, Time now) {
  if (context_.is_reliable()) {
    if (work.needs_response()) {
      reads_in_flight_.push({.end = send_psn_ + packets, .bytes_left = payload});
      context_.engine.reads.asked(payload);
    } else {
      in_flight_bytes_ += payload + kPacketOverhead;
      peer_->sent(payload + kPacketOverhead);
    }
    if (send_psn_ != next_psn_) ++context_.engine.counters.retransmitted_packets;
  }
  send_psn_ = send_psn_ + packets;
  cursor_packet_ += packets;
  if (next_psn_.is_before(send_psn_)) next_psn_ = send_psn_;
  if (context_.is_reliable() && ack_deadline_ == kNever && probe_deadline_ == kNever) {
    restart_timers(now);
  }
  if (!context_.is_reliable()) {
    una_psn_ = send_psn_;
    if (cursor_packet_ == work.packets) finish_unacknowledged(work);
  }
}

// UC and UD: a request completes when its last packet is on its way.
void Requester::finish_unacknowledged(Work& work) {
  work.finish(CompletionStatus::success);
  ++cursor_;
  cursor_packet_ = 0;
  complete_requests();
}

std::optional<Requester::Output> Requester::send_probe(wire::MutableBytes slot) {
  probe_is_due_ = false;
  if (una_psn_ == next_psn_) return std::nullopt;
  const auto found = find_unacknowledged();
  if (!found) return std::nullopt;
  Work& work = queue_.at(*found);
  ++context_.engine.counters.probes;
  // What goes again in its turn needs no probe.
  if (work.needs_response() && send_psn_ == una_psn_) return std::nullopt;
  const auto index = static_cast<std::uint32_t>(una_psn_.ahead_of(work.first_psn));
  const std::uint32_t count = read_packets(work, index);
  SgePosition position;
  position.seek(work.request.sges, std::uint64_t{index} * context_.mtu);
  const auto size = build_request(
      context_, work, {.index = index, .count = count, .ack_request = true}, position, slot);
  if (!size) {
    go_back();  // sending it in its turn will tell
    return std::nullopt;
  }
  ++context_.engine.counters.retransmitted_packets;
  if (work.needs_response()) {
    asked_again_until_ = una_psn_ + count;
    give_up_read_budget();
    context_.engine.reads.offer_room();
  } else {
    probed_psn_ = una_psn_;
  }
  return Output{*size, &context_.path};
}

std::optional<std::uint32_t> Requester::find_unacknowledged() {
  for (std::uint32_t ordinal = queue_.oldest(); queue_.holds(ordinal); ++ordinal) {
    const Work& work = queue_.at(ordinal);
    if (work.started() && una_psn_.in_window(work.first_psn, work.packets)) return ordinal;
  }
  return std::nullopt;
}

bool Requester::is_drained() const {
  if (una_psn_ != next_psn_) return false;
  return !queue_.holds(cursor_) || !queue_.at(cursor_).started();
}

// --- refusals

std::optional<CompletionStatus> Requester::refuse(Work& work) const {
  const auto because = [&work](VendorError why, CompletionStatus status) {
    work.vendor_error = why;
    return status;
  };
  const SendRequest& request = work.request;
  if (request.malformed) {
    return because(VendorError::malformed_request, CompletionStatus::local_qp_operation_error);
  }
  if (!supports(context_.type, request.opcode)) {
    return because(VendorError::opcode_not_for_this_type,
                   CompletionStatus::local_qp_operation_error);
  }
  if (work.is_local()) return std::nullopt;
  const std::uint64_t limit =
      context_.is_connected() ? kMaxMessageSize : bytes_of(context_.engine.options.port_mtu);
  if (request.length > limit || request.flush.length > kMaxMessageSize) {
    return because(VendorError::message_too_long, CompletionStatus::local_length_error);
  }
  const bool needs_eight = work.is_atomic() || request.opcode == WorkOpcode::atomic_write;
  if (needs_eight && request.length != sizeof(std::uint64_t)) {
    return because(VendorError::atomic_needs_eight_bytes, CompletionStatus::local_length_error);
  }
  if (work.needs_response() && context_.attributes.max_read_atomic == 0) {
    return because(VendorError::reads_not_enabled, CompletionStatus::local_qp_operation_error);
  }
  return refuse_list(work);
}

std::optional<CompletionStatus> Requester::refuse_list(Work& work) const {
  const SendRequest& request = work.request;
  if (!request.inline_data.empty() && work.fetches()) {
    work.vendor_error = VendorError::malformed_request;
    return CompletionStatus::local_qp_operation_error;
  }
  const auto fault = check_list(request.sges, context_.engine.keys, *context_.pd,
                                work.fetches() ? kLocalWrite : kLocalRead);
  if (!fault) return std::nullopt;
  context_.engine.explanations.add("QP {:#x}: {} cannot use {:#x} + {:#x} with lkey {:#x}: {}",
                                   context_.qpn.value(), to_string(request.opcode),
                                   fault->sge.address, fault->sge.length, fault->sge.lkey,
                                   to_string(fault->fault));
  work.vendor_error = vendor_error_of(fault->fault);
  return CompletionStatus::local_protection_error;
}

void Requester::halt(Work& work, CompletionStatus status, VendorError why) {
  context_.engine.explanations.add("QP {:#x}: {} of {} bytes (wr_id {:#x}) fails: {}",
                                   context_.qpn.value(), to_string(work.request.opcode),
                                   work.request.length, work.request.wr_id, to_string(status));
  work.finish(status, why);
  complete_requests();
}

void Requester::fail_memory(Work& work, const LocalFault& fault) {
  context_.engine.explanations.add("QP {:#x}: {} cannot read {:#x} + {:#x} with lkey {:#x}: {}",
                                   context_.qpn.value(), to_string(work.request.opcode),
                                   fault.sge.address, fault.sge.length, fault.sge.lkey,
                                   to_string(fault.fault));
  halt(work, CompletionStatus::local_protection_error, vendor_error_of(fault.fault));
}

void Requester::fail_oldest(CompletionStatus status, VendorError why) {
  if (queue_.empty()) return;
  Work& work = queue_.at(queue_.oldest());
  if (!work.done) halt(work, status, why);
}

void Requester::complete_requests() {
  if (queue_.complete()) {
    context_.collapse = context_.is_reliable() ? Collapse::by_requester : Collapse::send_queue;
  }
  const bool left_behind = static_cast<std::int32_t>(cursor_ - queue_.oldest()) < 0;
  if (!left_behind) return;
  cursor_ = queue_.oldest();
  cursor_packet_ = 0;
  position_.rewind();
  position_is_current_ = true;
}

}  // namespace urxe::emulator
