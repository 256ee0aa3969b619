// What completions of the swarm's queue pairs must say.
#include <algorithm>
#include <cstring>

#include "tests/sim/swarm/endpoint.h"

namespace urxe::swarm {

using namespace emulator;

namespace {

constexpr std::size_t kGrh = 40;

CompletionOpcode completion_opcode(WorkOpcode opcode) {
  switch (opcode) {
    case WorkOpcode::rdma_write:
    case WorkOpcode::rdma_write_with_immediate:
      return CompletionOpcode::rdma_write;
    case WorkOpcode::rdma_read:
      return CompletionOpcode::rdma_read;
    case WorkOpcode::compare_swap:
      return CompletionOpcode::compare_swap;
    case WorkOpcode::fetch_add:
      return CompletionOpcode::fetch_add;
    case WorkOpcode::bind_window:
      return CompletionOpcode::bind_window;
    case WorkOpcode::local_invalidate:
      return CompletionOpcode::local_invalidate;
    case WorkOpcode::atomic_write:
      return CompletionOpcode::atomic_write;
    case WorkOpcode::flush:
      return CompletionOpcode::flush;
    default:
      return CompletionOpcode::send;
  }
}

// How a request with this flaw must end.
CompletionStatus outcome_of(Flaw flaw, QpType type) {
  switch (flaw) {
    case Flaw::bad_lkey:
      return CompletionStatus::local_protection_error;
    case Flaw::bad_rkey:
    case Flaw::out_of_bounds:
    case Flaw::no_permission:
      return CompletionStatus::remote_access_error;
    case Flaw::not_allowed:
    case Flaw::misaligned:
      return CompletionStatus::remote_invalid_request;
    case Flaw::short_atomic:
      return CompletionStatus::local_length_error;
    case Flaw::too_long:
      return type == QpType::rc ? CompletionStatus::remote_invalid_request
                                : CompletionStatus::local_length_error;
    case Flaw::bad_invalidate:
      return CompletionStatus::retry_exceeded;
    case Flaw::unsupported:
      return CompletionStatus::local_qp_operation_error;
    case Flaw::bad_bind:
      return CompletionStatus::window_bind_error;
    case Flaw::none:
      break;
  }
  return CompletionStatus::success;
}

bool is_remote(Flaw flaw) {
  return flaw == Flaw::bad_rkey || flaw == Flaw::out_of_bounds || flaw == Flaw::no_permission;
}

}  // namespace

void Endpoint::on_completion(const Completion& completion) {
  constexpr auto kFirstReceive = static_cast<int>(CompletionOpcode::receive);
  if (static_cast<int>(completion.opcode) < kFirstReceive) {
    on_sent(completion);
  } else {
    on_received(completion);
  }
}

// --- of sends

// What was retired without a completion: unsignalled requests that succeeded.
void Endpoint::trim() {
  while (posted_.size() > sends_.held()) {
    const Posted posted = posted_.front();
    posted_.pop_front();
    slot_used_[posted.slot] = false;
    if (posted.signalled) {
      shared_.findings.add("{}: request {} was retired without its completion", name_,
                           posted.message->id);
    }
    check_done(*posted.message);
  }
}

void Endpoint::on_sent(const Completion& completion) {
  const auto found = std::find_if(posted_.begin(), posted_.end(), [&](const Posted& posted) {
    return posted.message->id == completion.wr_id;
  });
  if (found == posted_.end()) {
    shared_.findings.add("{}: request {} completes twice, or was never posted", name_,
                         completion.wr_id);
    return;
  }
  while (posted_.front().message->id != completion.wr_id) {
    const Posted skipped = posted_.front();
    posted_.pop_front();
    slot_used_[skipped.slot] = false;
    if (skipped.signalled) {
      shared_.findings.add("{}: request {} completes before {}", name_, completion.wr_id,
                           skipped.message->id);
    }
    check_done(*skipped.message);
  }
  const Posted posted = posted_.front();
  posted_.pop_front();
  slot_used_[posted.slot] = false;
  check_sent(posted, completion);
}

void Endpoint::check_sent(const Posted& posted, const Completion& completion) {
  Message& message = *posted.message;
  if (completion.opcode != completion_opcode(message.opcode)) {
    shared_.findings.add("{}: request {} completes as opcode {}", name_, message.id,
                         static_cast<int>(completion.opcode));
  }
  const bool ended = state() == QpState::error || state() == QpState::send_queue_error;
  switch (completion.status) {
    case CompletionStatus::success:
      if (!posted.signalled) {
        shared_.findings.add("{}: unsignalled request {} has a completion", name_, message.id);
      }
      if (failed_) {
        shared_.findings.add("{}: request {} succeeds after one that failed", name_, message.id);
      }
      return check_done(message);
    case CompletionStatus::flushed:
      if (!ended || (!failed_ && !may_collapse_ && !receives_->had_bad && !shared_.plan.hostile)) {
        shared_.findings.add("{}: request {} is flushed for no reason, state {}", name_, message.id,
                             to_string(state()));
      }
      return;
    default:
      if (failed_) {
        shared_.findings.add("{}: request {} fails after another one", name_, message.id);
      }
      failed_ = true;
      peer_->peer_was_lost_ = peer_->peer_was_lost_ || type() == QpType::rc;
      check_failure(message, completion.status);
  }
}

void Endpoint::check_done(Message& message) {
  note_window(message);
  if (shared_.plan.hostile) return;
  const bool dropped_silently = type() != QpType::rc && is_remote(message.flaw);
  if (message.flaw != Flaw::none && !dropped_silently) {
    shared_.findings.add("{}: request {} ({}) succeeds, though it is wrong (flaw {})", name_,
                         message.id, to_string(message.opcode), static_cast<int>(message.flaw));
  }
  if (message.refused) {
    shared_.findings.add("{}: request {} ({}) succeeds, though memory that it needs was gone",
                         name_, message.id, to_string(message.opcode));
  }
  if (type() != QpType::rc || message.flaw != Flaw::none) return;
  if (message.is_flush()) check_flushed(message, "completes");
  if (message.is_flush() || message.is_atomic_write()) ++shared_.placements;
  const bool has_effect = message.writes() || message.is_atomic() || message.is_atomic_write() ||
                          message.opcode == WorkOpcode::rdma_read;
  if (has_effect && message.effect_done != message.bytes.size()) {
    shared_.findings.add("{}: request {} ({}) completes when {} of {} bytes are there", name_,
                         message.id, to_string(message.opcode), message.effect_done,
                         message.bytes.size());
  }
  if (message.takes_receive() && message.delivered != 1) {
    shared_.findings.add("{}: request {} completes, delivered {} times", name_, message.id,
                         message.delivered);
  }
  if (message.is_atomic()) check_atomic(message);
}

void Endpoint::check_atomic(const Message& message) {
  std::uint64_t value = 0;
  std::memcpy(&value, machine_.bytes(message.local_address, sizeof(value)), sizeof(value));
  if (message.executions != 1 || value != message.old_value) {
    shared_.findings.add(
        "{}: atomic {} was executed {} times and found {:#x}, its answer says {:#x}", name_,
        message.id, message.executions, message.old_value, value);
  }
}

// What was asked for before the FLUSH has to be in the peer's memory.
void Endpoint::check_flushed(const Message& flush, const char* when) {
  for (std::size_t i = 0; i < flush.writes_before && i < placed_.size(); ++i) {
    const Message& write = *placed_[i];
    if (write.effect_done == write.bytes.size()) continue;
    shared_.findings.add("{}: FLUSH {} {} when {} of {} bytes of request {} are in memory", name_,
                         flush.id, when, write.effect_done, write.bytes.size(), write.id);
    return;
  }
}

void Endpoint::on_response_leaves(const wire::Packet& packet) {
  flow_->on_response_sent(packet);
  if (packet.info->operation == wire::Operation::acknowledge) return;
  const auto number = flow_->flush_at(packet.bth.psn);
  if (number && *number < flushes_.size()) check_flushed(*flushes_[*number], "is answered");
}

void Endpoint::note_window(const Message& message) {
  if (message.opcode == WorkOpcode::bind_window && window_state_ == WindowState::binding) {
    window_state_ = WindowState::bound;
  } else if (message.opcode == WorkOpcode::local_invalidate &&
             window_state_ == WindowState::leaving) {
    window_state_ = WindowState::unbound;
  }
}

bool Endpoint::may_fail_with(CompletionStatus status) const {
  const QpState peers = peer_->state();
  const bool peer_hears = peers == QpState::ready_to_send || peers == QpState::ready_to_receive ||
                          peers == QpState::send_queue_drain;
  switch (status) {
    case CompletionStatus::retry_exceeded:
      return !shared_.plan.calm || peer_was_lost_ || !peer_hears;
    case CompletionStatus::rnr_retry_exceeded:
      return connection_.rnr_retry < 7;
    case CompletionStatus::remote_access_error:
    case CompletionStatus::local_protection_error:
    case CompletionStatus::window_bind_error:
    case CompletionStatus::local_qp_operation_error:
      return memory_changed_;
    case CompletionStatus::remote_operational_error:
      return peer_->receives_->had_bad;
    default:
      return false;
  }
}

void Endpoint::check_failure(const Message& message, CompletionStatus status) {
  if (shared_.plan.hostile) return;
  const bool expected = message.flaw != Flaw::none && status == outcome_of(message.flaw, type());
  if (expected || may_fail_with(status)) return;
  shared_.findings.add("{}: request {} ({}, {} bytes, flaw {}) fails with {}", name_, message.id,
                       to_string(message.opcode), message.bytes.size(),
                       static_cast<int>(message.flaw), to_string(status));
}

// --- of receives

void Endpoint::on_received(const Completion& completion) {
  ReceivePool& pool = *receives_;
  const std::size_t number = completion.wr_id;
  if (number >= pool.slots.size() || !pool.slots[number].lent) {
    shared_.findings.add("{}: receive {} completes twice, or was never posted", name_, number);
    return;
  }
  if (!pool.shared && pool.order.front() != number) {
    shared_.findings.add("{}: receive {} completes before {}", name_, number, pool.order.front());
  }
  std::erase(pool.order, number);
  const ReceivePool::Slot slot = std::exchange(pool.slots[number], {});
  machine_.memory_checker().take_back(pool.start, pool.address_of(number));
  if (shared_.plan.hostile) return;
  if (type() == QpType::ud && completion.status != CompletionStatus::success &&
      completion.status != CompletionStatus::flushed) {
    machine_.groups().on_delivery(*this, std::nullopt);
  }
  if (completion.status == CompletionStatus::success) {
    const bool used = completion.opcode == CompletionOpcode::receive && completion.byte_count > 0;
    if (slot.bad && used) shared_.findings.add("{}: a receive with a bad key succeeds", name_);
    return check_delivery(completion, pool.address_of(number));
  }
  check_refused_receive(completion.status, slot);
}

void Endpoint::check_refused_receive(CompletionStatus status, const ReceivePool::Slot& slot) {
  if (status == CompletionStatus::flushed) {
    if (state() == QpState::error) return;
    shared_.findings.add("{}: a receive is flushed in state {}", name_, to_string(state()));
    return;
  }
  const bool bad =
      (slot.bad || receives_->had_hole) && status == CompletionStatus::local_protection_error;
  const Flaw flaw = incoming_.empty() ? Flaw::none : incoming_.front()->flaw;
  const bool too_long = flaw == Flaw::too_long && status == CompletionStatus::local_length_error;
  const bool invalidation = (flaw == Flaw::bad_invalidate || memory_changed_) &&
                            status == CompletionStatus::local_qp_operation_error;
  if (bad || too_long || invalidation) return;
  shared_.findings.add("{}: a receive fails with {}", name_, to_string(status));
}

// The message that a receive completion must belong to.
Message* Endpoint::message_for(const Completion& completion, std::uint64_t address) {
  if (type() == QpType::rc) {
    if (incoming_.empty()) return nullptr;
    Message* message = incoming_.front();
    incoming_.pop_front();
    return message;
  }
  if (type() == QpType::uc && completion.flags.has(kWithImmediate)) {
    const auto found = std::find_if(heard_of_.begin(), heard_of_.end(), [&](const Message* m) {
      return m->has_immediate() && m->immediate() == completion.immediate;
    });
    return found == heard_of_.end() ? nullptr : *found;
  }
  std::uint64_t id = 0;
  const std::size_t at = type() == QpType::ud ? kGrh : 0;
  std::memcpy(&id, machine_.bytes(address + at, sizeof(id)), sizeof(id));
  if (id == 0 || id > shared_.messages.size()) return nullptr;
  return &shared_.messages[id - 1];
}

void Endpoint::check_delivery(const Completion& completion, std::uint64_t address) {
  Message* message = message_for(completion, address);
  const bool mine = message != nullptr && (message->to_group || message->to == this);
  if (!mine || !message->takes_receive()) {
    shared_.findings.add("{}: received {} bytes that nobody sent", name_, completion.byte_count);
    return;
  }
  const std::size_t grh = type() == QpType::ud ? kGrh : 0;
  const bool wrote = message->writes();
  const CompletionOpcode opcode =
      wrote ? CompletionOpcode::receive_rdma_with_immediate : CompletionOpcode::receive;
  const bool right = completion.opcode == opcode &&
                     completion.byte_count == message->bytes.size() + grh &&
                     completion.flags.has(kWithImmediate) == message->has_immediate() &&
                     (!message->has_immediate() || completion.immediate == message->immediate()) &&
                     completion.invalidated.value() == message->invalidates;
  if (!right) {
    shared_.findings.add("{}: the completion of message {} ({}) is not what was sent", name_,
                         message->id, to_string(message->opcode));
  }
  const std::uint8_t* bytes = machine_.bytes(address + grh, message->bytes.size());
  if (!wrote && !std::equal(message->bytes.begin(), message->bytes.end(), bytes)) {
    shared_.findings.add("{}: message {} completes with other bytes than were sent", name_,
                         message->id);
  }
  if (wrote && type() == QpType::rc && message->effect_done != message->bytes.size()) {
    shared_.findings.add("{}: the immediate of message {} comes before its data", name_,
                         message->id);
  }
  if (message->flaw != Flaw::none) {
    shared_.findings.add("{}: message {} was executed, though it is wrong", name_, message->id);
  }
  if (message->to_group) {
    ++message->delivered;
    return machine_.groups().on_delivery(*this, message->id);
  }
  const bool once = type() == QpType::rc || shared_.plan.calm;
  if (++message->delivered > 1 && once) {
    shared_.findings.add("{}: message {} came {} times", name_, message->id, message->delivered);
  }
  if (message->invalidates != 0 && message->invalidates == window_key_) {
    window_state_ = WindowState::unbound;
  }
}

// --- at the end

std::string Endpoint::describe() const {
  return fmt::format("{} {} with {} requests", name_, to_string(state()), posted_.size());
}

void Endpoint::check_at_rest() {
  trim();
  if (!posted_.empty()) {
    shared_.findings.add("{} ({}) is at rest with {} requests that never completed, {} first",
                         name_, to_string(state()), posted_.size(), posted_.front().message->id);
  }
  const bool peer_lived = peer_->state() == QpState::ready_to_send && !peer_was_lost_;
  if (flow_ != nullptr && peer_lived) flow_->check_at_rest();
  MemoryChecker& memory = machine_.memory_checker();
  const bool refused =
      memory.was_refused(parts_[kTarget].start) || memory.was_refused(parts_[kSource].start);
  const bool goes_on = state() != QpState::error && state() != QpState::reset;
  if (type() == QpType::rc && refused && goes_on && !shared_.plan.hostile) {
    shared_.findings.add("{} is {}, though the peer asked for memory that was gone", name_,
                         to_string(state()));
  }
  const ReceivePool& pool = *receives_;
  if (pool.shared) return;
  const auto lent = static_cast<std::size_t>(std::count_if(
      pool.slots.begin(), pool.slots.end(), [](const ReceivePool::Slot& s) { return s.lent; }));
  if (state() == QpState::error && pool.source.posted() != 0) {
    shared_.findings.add("{}: {} receives are not flushed in the error state", name_,
                         pool.source.posted());
  }
  // One may be in hand, for a message that was broken off.
  if (lent > pool.source.posted() + std::size_t{1}) {
    shared_.findings.add("{}: {} receives are lent, {} are posted", name_, lent,
                         pool.source.posted());
  }
}

}  // namespace urxe::swarm
