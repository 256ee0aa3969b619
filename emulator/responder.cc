#include "emulator/responder.h"

#include <bit>

#include "emulator/request_builder.h"

namespace urxe::emulator {
namespace {

Access flush_access(const wire::Feth& feth) {
  Access access;
  if ((feth.placement & wire::Feth::kGlobalVisibility) != 0) access |= kFlushGlobal;
  if ((feth.placement & wire::Feth::kPersistence) != 0) access |= kFlushPersistent;
  return access;
}

Access access_for(const wire::Packet& packet) {
  switch (packet.info->operation) {
    case wire::Operation::compare_swap:
    case wire::Operation::fetch_add:
      return kRemoteAtomic;
    case wire::Operation::rdma_write:
    case wire::Operation::atomic_write:
      return kRemoteWrite;
    case wire::Operation::flush:
      return flush_access(packet.feth);
    default:
      return kRemoteRead;
  }
}

}  // namespace

void Responder::start(wire::Psn first) {
  reset();
  expected_ = first;
}

void Responder::reset() {
  msn_ = wire::Msn{};
  nak_sent_ = drop_message_ = has_receive_ = false;
  message_ = Message::none;
  resources_.release();
  responses_.release();
}

void Responder::flush_receives() {
  const auto flush = [this] {
    context_.receive_cq->push(
        Completion{.wr_id = receive_.wr_id,
                   .status = CompletionStatus::flushed,
                   .opcode = CompletionOpcode::receive,
                   .vendor_error = static_cast<std::uint32_t>(VendorError::flushed_by_error),
                   .qpn = context_.qpn},
        true);
  };
  if (has_receive_) flush();
  has_receive_ = false;
  message_ = Message::none;
  if (context_.shares_receives) return;  // others may use what is posted there
  // Who posts again at each completion, from another thread, does not keep us here.
  std::uint32_t left = context_.receive_queue->source().posted();
  for (; left > 0 && context_.receive_queue->take(receive_); --left) flush();
}

void Responder::handle_request(const wire::Packet& packet, const wire::Inbound& inbound) {
  switch (context_.type) {
    case QpType::rc:
      return handle_reliable(packet);
    case QpType::uc:
      return handle_unreliable(packet);
    default:
      return handle_datagram(packet, inbound);
  }
}

// --- RC: the line of checks

void Responder::handle_reliable(const wire::Packet& packet) {
  using Check = Step (Responder::*)(const wire::Packet&);
  static constexpr Check kChecks[] = {
      &Responder::check_psn,    &Responder::check_sequence, &Responder::check_operation,
      &Responder::check_length, &Responder::check_receive,  &Responder::check_key,
      &Responder::execute,
  };
  for (const Check check : kChecks) {
    const Step step = (this->*check)(packet);
    if (step != Step::proceed) return refuse(step, packet);
  }
  finish_packet(packet);
}

Step Responder::check_psn(const wire::Packet& packet) {
  const std::int32_t ahead = packet.bth.psn.ahead_of(expected_);
  if (ahead > 0) return nak_sent_ ? Step::drop : Step::out_of_sequence;
  if (ahead < 0) return Step::duplicate;
  nak_sent_ = false;
  return Step::proceed;
}

Step Responder::check_sequence(const wire::Packet& packet) {
  const wire::OpcodeInfo& info = *packet.info;
  const bool begins = message_ == Message::none;
  if (begins != info.starts_message()) {  // IBA C9-92 ... C9-94
    explain("QP {:#x}: {} {} a message", context_.qpn.value(), info.name,
            begins ? "outside" : "within");
    return Step::invalid_request;
  }
  if (begins) return Step::proceed;
  const Message kind =
      info.operation == wire::Operation::rdma_write ? Message::write : Message::send;
  return kind == message_ ? Step::proceed : Step::invalid_request;
}

Step Responder::check_operation(const wire::Packet& packet) {
  const Access granted = context_.attributes.access;
  const auto needs = [&](Access access, const char* name) {
    if (granted.has(access)) return Step::proceed;
    explain("QP {:#x} refuses {}: its access flags lack {}", context_.qpn.value(),
            packet.info->name, name);
    return Step::invalid_request;
  };
  switch (packet.info->operation) {
    case wire::Operation::send:
      return Step::proceed;
    case wire::Operation::rdma_write:
      return needs(kRemoteWrite, "REMOTE_WRITE");
    case wire::Operation::atomic_write:
      if (read_atomic_depth() == 0) return Step::invalid_request;
      return needs(kRemoteWrite, "REMOTE_WRITE");
    case wire::Operation::flush:
      if (read_atomic_depth() == 0) return Step::invalid_request;
      return needs(flush_access(packet.feth), "the FLUSH permissions");
    case wire::Operation::rdma_read_request:
      if (read_atomic_depth() == 0) return Step::invalid_request;
      return needs(kRemoteRead, "REMOTE_READ");
    case wire::Operation::compare_swap:
    case wire::Operation::fetch_add:
      if (read_atomic_depth() == 0) return Step::invalid_request;
      return needs(kRemoteAtomic, "REMOTE_ATOMIC");
    default:
      return Step::invalid_request;
  }
}

Step Responder::check_length(const wire::Packet& packet) {
  const std::size_t payload = packet.payload.size();
  const bool exact = packet.info->payload == wire::PayloadRule::exact_mtu;
  const bool empty_last = packet.info->position == wire::Position::last && payload == 0;
  if (payload > context_.mtu || (exact && payload != context_.mtu) || empty_last) {
    explain(
        "QP {:#x}: {} carries {} bytes, but this side's path MTU is {}: do both sides have the "
        "same?",
        context_.qpn.value(), packet.info->name, payload, context_.mtu);
    return Step::invalid_request;
  }
  switch (packet.info->operation) {
    case wire::Operation::rdma_write:
      return check_write_length(packet);
    case wire::Operation::rdma_read_request:
    case wire::Operation::flush:
      return packet.reth.length > kMaxMessageSize ? Step::invalid_request : Step::proceed;
    case wire::Operation::atomic_write:
      return packet.reth.length == sizeof(std::uint64_t) ? Step::proceed : Step::invalid_request;
    default:
      return Step::proceed;
  }
}

Step Responder::check_write_length(const wire::Packet& packet) {
  const std::size_t payload = packet.payload.size();
  const std::uint64_t rest = packet.info->starts_message() ? packet.reth.length : remaining_;
  const bool fits = packet.info->ends_message() ? payload == rest : payload < rest;
  if (fits && rest <= kMaxMessageSize) return Step::proceed;
  explain("QP {:#x}: {} carries {} bytes where {} are left of the message", context_.qpn.value(),
          packet.info->name, payload, rest);
  return Step::invalid_request;
}

Step Responder::check_receive(const wire::Packet& packet) {
  const bool is_send = packet.info->operation == wire::Operation::send;
  const bool needs = is_send || packet.info->has(wire::Header::immediate);
  if (!needs) return Step::proceed;
  if (!has_receive_) {
    if (!context_.receive_queue->take(receive_)) return Step::receiver_not_ready;
    has_receive_ = true;
    position_.rewind();
  }
  if (receive_.malformed) {
    receive_status_ = CompletionStatus::local_qp_operation_error;
    receive_fault_ = VendorError::malformed_request;
    return Step::operational_error;
  }
  const std::uint64_t before = packet.info->starts_message() ? 0 : received_;
  if (!is_send || before + packet.payload.size() <= receive_.length) return Step::proceed;
  explain(
      "QP {:#x}: a message of more than {} bytes came, the receive request (wr_id {:#x}) holds "
      "{}",
      context_.qpn.value(), before + packet.payload.size() - 1, receive_.wr_id, receive_.length);
  receive_status_ = CompletionStatus::local_length_error;
  receive_fault_ = VendorError::receive_too_short;
  return Step::invalid_request;
}

Step Responder::check_key(const wire::Packet& packet) {
  const wire::OpcodeInfo& info = *packet.info;
  if (info.operation == wire::Operation::flush) return check_flush(packet);
  const bool atomic = info.is_atomic();
  if (!atomic && !info.has(wire::Header::reth)) return Step::proceed;
  const std::uint64_t address = atomic ? packet.atomic.address : packet.reth.address;
  const std::uint64_t length = atomic ? sizeof(std::uint64_t) : packet.reth.length;
  const wire::RKey rkey = atomic ? packet.atomic.rkey : packet.reth.rkey;
  if (length == 0) return Step::proceed;  // IBA C9-88: neither key nor address is looked at
  const auto where = context_.engine.keys.resolve_remote(*context_.pd, context_.qpn, rkey, address,
                                                         length, access_for(packet));
  if (!where) {
    explain("QP {:#x} refuses {} of {:#x} + {:#x} with rkey {:#x}: {}", context_.qpn.value(),
            info.name, address, length, rkey.value(), to_string(where.error()));
    return Step::access_error;
  }
  const bool aligned = atomic || info.operation == wire::Operation::atomic_write;
  if (aligned && *where % sizeof(std::uint64_t) != 0) {  // IBA C9-83, oA19-28
    explain("QP {:#x} refuses {} of {:#x}: not a multiple of 8", context_.qpn.value(), info.name,
            address);
    return Step::invalid_request;
  }
  return Step::proceed;
}

// Of a whole region only the key counts; no range of it is named.
Step Responder::check_flush(const wire::Packet& packet) {
  const bool whole = packet.feth.selectivity == wire::Feth::kWholeRegion;
  const wire::Reth& reth = packet.reth;
  const auto where = whole ? context_.engine.keys.resolve_whole(
                                 *context_.pd, context_.qpn, reth.rkey, flush_access(packet.feth))
                           : context_.engine.keys.resolve_remote(
                                 *context_.pd, context_.qpn, reth.rkey, reth.address, reth.length,
                                 flush_access(packet.feth));
  if (where) return Step::proceed;
  explain("QP {:#x} refuses {} of {:#x} + {:#x} with rkey {:#x}: {}", context_.qpn.value(),
          packet.info->name, reth.address, reth.length, reth.rkey.value(),
          to_string(where.error()));
  return Step::access_error;
}

// --- RC: what does not proceed

void Responder::refuse(Step step, const wire::Packet& packet) {
  Counters& counters = context_.engine.counters;
  switch (step) {
    case Step::proceed:
      return;
    case Step::drop:
      ++counters.dropped_requests;
      return;
    case Step::duplicate:
      ++counters.duplicate_requests;
      return answer_duplicate(packet);
    case Step::out_of_sequence:
      ++counters.out_of_sequence_requests;
      nak_sent_ = true;
      return acknowledge(wire::Syndrome::nak(wire::NakCode::psn_sequence_error), expected_);
    case Step::receiver_not_ready:
      ++counters.sent_rnr_naks;
      nak_sent_ = true;  // what follows is out of sequence, and no news
      return acknowledge(wire::Syndrome::rnr_nak(context_.attributes.min_rnr_timer), expected_);
    default:
      return refuse_finally(step, packet);
  }
}

void Responder::refuse_finally(Step step, const wire::Packet& packet) {
  ++context_.engine.counters.sent_naks;
  if (receive_status_ != CompletionStatus::success) complete_receive(packet, receive_status_);
  context_.collapse = Collapse::by_responder;
  context_.collapse_event = AsyncEventType::qp_fatal;
  switch (step) {
    case Step::invalid_request:
      context_.collapse_event = AsyncEventType::qp_request_error;
      return acknowledge(wire::Syndrome::nak(wire::NakCode::invalid_request), expected_);
    case Step::access_error:
      context_.collapse_event = AsyncEventType::qp_access_error;
      return acknowledge(wire::Syndrome::nak(wire::NakCode::remote_access_error), expected_);
    case Step::operational_error:
      return acknowledge(wire::Syndrome::nak(wire::NakCode::remote_operational_error), expected_);
    default:
      return;  // IBTA class J: no NAK
  }
}

void Responder::answer_duplicate(const wire::Packet& packet) {
  switch (packet.info->operation) {
    case wire::Operation::rdma_read_request:
      return answer_duplicate_read(packet);
    case wire::Operation::compare_swap:
    case wire::Operation::fetch_add:
    case wire::Operation::flush:
    case wire::Operation::atomic_write:
      return answer_duplicate_at_once(packet);
    default:
      return acknowledge(wire::Syndrome::ack(), expected_ - 1);  // IBA C9-105
  }
}

// A duplicate READ may ask for a part of the original (IBTA 9.7.4.1.2, C9-110).
void Responder::answer_duplicate_read(const wire::Packet& packet) {
  const wire::Psn psn = packet.bth.psn;
  const Resource* resource = find_resource(psn);
  if (resource == nullptr || resource->kind != Resource::Kind::read || is_answering(psn)) return;
  const wire::Reth& asked = packet.reth;
  const wire::Reth& original = resource->read;
  const std::uint64_t skipped =
      std::uint64_t{static_cast<std::uint32_t>(psn.ahead_of(resource->first))} * context_.mtu;
  const bool is_part = asked.rkey == original.rkey && asked.address == original.address + skipped &&
                       skipped + asked.length <= original.length;
  if (!is_part) return;
  // A requester has no more READs outstanding than this. Whoever asks for more asked before.
  if (pending_reads_and_atomics(true) >= read_atomic_depth()) return;
  responses_.push(
      {.kind = Response::Kind::read, .psn = psn, .msn = msn_, .rest = asked, .replay = true});
}

// The saved result is sent again; executing twice would be a second effect (IBA C9-111).
void Responder::answer_duplicate_at_once(const wire::Packet& packet) {
  const Resource* resource = find_resource(packet.bth.psn);
  const auto kind = packet.info->is_atomic() ? Resource::Kind::atomic : Resource::Kind::placement;
  if (resource == nullptr || resource->kind != kind || is_answering(packet.bth.psn)) return;
  responses_.push(
      {.kind = packet.info->is_atomic() ? Response::Kind::atomic : Response::Kind::placement,
       .psn = packet.bth.psn,
       .msn = msn_,
       .old_value = resource->old_value,
       .replay = true});
}

}  // namespace urxe::emulator
