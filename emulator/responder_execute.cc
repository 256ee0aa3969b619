// The responder's deeds: data, receive completions, answers.
#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/request_builder.h"
#include "emulator/responder.h"

namespace urxe::emulator {

Step Responder::execute(const wire::Packet& packet) {
  switch (packet.info->operation) {
    case wire::Operation::send:
      return execute_send(packet);
    case wire::Operation::rdma_write:
      return execute_write(packet);
    case wire::Operation::rdma_read_request:
      return execute_read(packet);
    case wire::Operation::flush:
    case wire::Operation::atomic_write:
      return execute_placement(packet);
    default:
      return execute_atomic(packet);
  }
}

void Responder::begin_message(const wire::Packet& packet) {
  if (!packet.info->starts_message()) return;
  received_ = 0;
  address_ = packet.reth.address;
  rkey_ = packet.reth.rkey;
  remaining_ = packet.reth.length;
  message_ = packet.info->operation == wire::Operation::rdma_write ? Message::write : Message::send;
}

Step Responder::scatter(wire::Bytes data) {
  const auto fault = position_.scatter(receive_.list(), context_.memory(), data);
  if (!fault) return Step::proceed;
  explain(
      "QP {:#x}: the receive request (wr_id {:#x}) cannot use {:#x} + {:#x} with lkey {:#x}: {}",
      context_.qpn.value(), receive_.wr_id, fault->sge.address, fault->sge.length, fault->sge.lkey,
      to_string(fault->fault));
  receive_status_ = CompletionStatus::local_protection_error;
  receive_fault_ = vendor_error_of(fault->fault);
  return Step::operational_error;
}

Step Responder::execute_send(const wire::Packet& packet) {
  begin_message(packet);
  if (const Step step = scatter(packet.payload); step != Step::proceed) return step;
  received_ += packet.payload.size();
  return packet.info->has(wire::Header::ieth) ? invalidate(packet) : Step::proceed;
}

Step Responder::invalidate(const wire::Packet& packet) {
  const auto done = context_.engine.keys.invalidate(*context_.pd, context_.qpn, packet.invalidate);
  if (done) return Step::proceed;
  explain("QP {:#x}: {} refused: {}", context_.qpn.value(), packet.info->name,
          done.error().sentence);
  receive_status_ = CompletionStatus::local_qp_operation_error;
  receive_fault_ = VendorError::invalidate_refused;
  return Step::silent_error;
}

Step Responder::execute_write(const wire::Packet& packet) {
  begin_message(packet);
  const std::size_t size = packet.payload.size();
  if (size > 0) {
    // Looked up again for each packet: the region may have gone since the first.
    const auto where = context_.engine.keys.resolve_remote(*context_.pd, context_.qpn, rkey_,
                                                           address_, size, kRemoteWrite);
    if (!where || !context_.engine.memory.write(*where, packet.payload)) {
      explain("QP {:#x}: {} to {:#x} + {:#x} with rkey {:#x} fails: {}", context_.qpn.value(),
              packet.info->name, address_, size, rkey_.value(),
              to_string(where ? MemoryFault::gone : where.error()));
      return Step::access_error;
    }
  }
  address_ += size;
  remaining_ -= size;
  received_ += size;
  return Step::proceed;
}

Step Responder::execute_read(const wire::Packet& packet) {
  if (pending_reads_and_atomics(false) >= read_atomic_depth()) return Step::invalid_request;
  remember({.first = expected_,
            .packets = packets_of(packet.reth.length, context_.mtu),
            .read = packet.reth,
            .kind = Resource::Kind::read});
  responses_.push({.kind = Response::Kind::read,
                   .psn = expected_,
                   .msn = wire::next(msn_),  // IBA C9-148: counted when it is executed
                   .rest = packet.reth});
  return Step::proceed;
}

Step Responder::execute_atomic(const wire::Packet& packet) {
  if (pending_reads_and_atomics(false) >= read_atomic_depth()) return Step::invalid_request;
  const wire::AtomicEth& atomic = packet.atomic;
  const auto where =
      context_.engine.keys.resolve_remote(*context_.pd, context_.qpn, atomic.rkey, atomic.address,
                                          sizeof(std::uint64_t), kRemoteAtomic);
  URXE_ASSERT(where.has_value());  // check_key saw to it, and nothing happened since
  ProgramMemory& memory = context_.engine.memory;
  const auto old_value = packet.info->operation == wire::Operation::compare_swap
                             ? memory.compare_swap(*where, atomic.compare, atomic.swap_or_add)
                             : memory.fetch_add(*where, atomic.swap_or_add);
  if (!old_value) {
    explain("QP {:#x}: {} of {:#x} fails: {}", context_.qpn.value(), packet.info->name,
            atomic.address, to_string(MemoryFault::gone));
    return Step::access_error;
  }
  remember(
      {.first = expected_, .packets = 1, .old_value = *old_value, .kind = Resource::Kind::atomic});
  responses_.push({.kind = Response::Kind::atomic,
                   .psn = expected_,
                   .msn = wire::next(msn_),
                   .old_value = *old_value});
  return Step::proceed;
}

// A FLUSH finds its work done: every WRITE before it has reached memory (docs/limitations.md).
Step Responder::execute_placement(const wire::Packet& packet) {
  if (pending_reads_and_atomics(false) >= read_atomic_depth()) return Step::invalid_request;
  if (packet.info->operation == wire::Operation::atomic_write) {
    const wire::Reth& reth = packet.reth;
    const auto where = context_.engine.keys.resolve_remote(
        *context_.pd, context_.qpn, reth.rkey, reth.address, sizeof(std::uint64_t), kRemoteWrite);
    URXE_ASSERT(where.has_value());  // check_key saw to it, and nothing happened since
    std::uint64_t value = 0;
    std::memcpy(&value, packet.payload.data(), sizeof(value));  // the payload rule: eight bytes
    if (!context_.engine.memory.store(*where, value)) {
      explain("QP {:#x}: {} of {:#x} fails: {}", context_.qpn.value(), packet.info->name,
              reth.address, to_string(MemoryFault::gone));
      return Step::access_error;
    }
  }
  remember({.first = expected_, .packets = 1, .kind = Resource::Kind::placement});
  responses_.push({.kind = Response::Kind::placement, .psn = expected_, .msn = wire::next(msn_)});
  return Step::proceed;
}

// A request packet was executed: count it, complete its message, acknowledge it if it asks.
void Responder::finish_packet(const wire::Packet& packet) {
  const wire::OpcodeInfo& info = *packet.info;
  const bool is_read = info.operation == wire::Operation::rdma_read_request;
  const wire::Psn executed = expected_;
  expected_ = expected_ + (is_read ? packets_of(packet.reth.length, context_.mtu) : 1);
  if (info.ends_message()) {
    msn_ = wire::next(msn_);
    message_ = Message::none;
    const bool completes =
        info.operation == wire::Operation::send || info.has(wire::Header::immediate);
    if (completes) complete_receive(packet, CompletionStatus::success);
  }
  if (context_.is_reliable() && !info.needs_response() && packet.bth.ack_request) {
    acknowledge(wire::Syndrome::ack(), executed);
  }
}

void Responder::complete_receive(const wire::Packet& packet, CompletionStatus status) {
  if (!has_receive_) return;
  const wire::OpcodeInfo& info = *packet.info;
  const bool wrote = info.operation == wire::Operation::rdma_write;
  const bool datagram = info.has(wire::Header::deth);
  Completion completion{
      .wr_id = receive_.wr_id,
      .status = status,
      .opcode = wrote ? CompletionOpcode::receive_rdma_with_immediate : CompletionOpcode::receive,
      .vendor_error = static_cast<std::uint32_t>(receive_fault_),
      .byte_count = static_cast<std::uint32_t>(received_),
      .qpn = context_.qpn,
      .source_qpn = datagram ? packet.deth.source : wire::Qpn{},
      .flags = datagram ? kWithGrh : CompletionFlags{},
      .pkey_index = context_.attributes.pkey_index,
      .service_level = datagram ? header_type_ : std::uint8_t{0},
  };
  if (info.has(wire::Header::immediate)) {
    completion.immediate = packet.immediate;
    completion.flags |= kWithImmediate;
  }
  if (info.has(wire::Header::ieth)) {
    completion.invalidated = packet.invalidate;
    completion.flags |= kWithInvalidate;
  }
  has_receive_ = false;
  receive_status_ = CompletionStatus::success;
  receive_fault_ = VendorError::none;
  if (status == CompletionStatus::success) ++context_.engine.counters.completed_receives;
  context_.receive_cq->push(completion, packet.bth.solicited);
}

// --- answers

void Responder::acknowledge(wire::Syndrome syndrome, wire::Psn psn) {
  // A later acknowledgement says all that an earlier one said, but not what a NAK said; and nothing
  // is said twice in a row.
  const Response* last = responses_.empty() ? nullptr : &responses_.back();
  const bool replaces = last != nullptr && last->kind == Response::Kind::acknowledge &&
                        (last->syndrome.kind() == wire::Syndrome::Kind::ack ||
                         (last->syndrome == syndrome && last->psn == psn));
  Response& response = replaces ? responses_.back() : responses_.push_slot();
  response = {.kind = Response::Kind::acknowledge, .syndrome = syndrome, .psn = psn, .msn = msn_};
}

// Rounded up as Linux's rxe does, which sends as many as that.
std::uint32_t Responder::read_atomic_depth() const {
  return std::bit_ceil(std::uint32_t{context_.attributes.max_dest_read_atomic}) *
         (context_.attributes.max_dest_read_atomic != 0 ? 1 : 0);
}

// Answers that wait, to new requests or to duplicates.
std::uint32_t Responder::pending_reads_and_atomics(bool replays) const {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < responses_.size(); ++i) {
    const Response& response = responses_[i];
    if (response.kind != Response::Kind::acknowledge && response.replay == replays) ++count;
  }
  return count;
}

void Responder::remember(const Resource& resource) {
  while (resources_.size() >= read_atomic_depth()) resources_.pop_front();
  resources_.push(resource);
}

const Responder::Resource* Responder::find_resource(wire::Psn psn) const {
  for (std::uint32_t i = resources_.size(); i-- > 0;) {
    if (psn.in_window(resources_[i].first, resources_[i].packets)) return &resources_[i];
  }
  return nullptr;
}

// Whether an answer that waits to be sent has this PSN: the requester was only impatient.
bool Responder::is_answering(wire::Psn psn) const {
  for (std::uint32_t i = 0; i < responses_.size(); ++i) {
    const Response& response = responses_[i];
    if (response.kind == Response::Kind::acknowledge) continue;
    const std::uint32_t packets =
        response.kind == Response::Kind::read ? packets_of(response.rest.length, context_.mtu) : 1;
    if (psn.in_window(response.psn, packets)) return true;
  }
  return false;
}

wire::Opcode Responder::short_answer(Response::Kind kind) {
  switch (kind) {
    case Response::Kind::atomic:
      return wire::Opcode::rc_atomic_acknowledge;
    case Response::Kind::placement:
      return wire::Opcode::rc_read_response_only;
    default:
      return wire::Opcode::rc_acknowledge;
  }
}

std::optional<std::size_t> Responder::poll_transmit(wire::MutableBytes slot) {
  if (responses_.empty()) return std::nullopt;
  Response& response = responses_.front();
  if (response.kind == Response::Kind::read) return send_read_response(slot);
  wire::Packet packet;
  packet.info = &wire::info(short_answer(response.kind));
  packet.bth.opcode = static_cast<std::uint8_t>(packet.info->opcode);
  packet.bth.destination = context_.attributes.destination;
  packet.bth.psn = response.psn;
  packet.aeth = {.syndrome = response.syndrome, .msn = response.msn};
  packet.atomic_result = response.old_value;
  responses_.pop_front();
  return wire::write_headers(packet, slot);
}

std::optional<std::size_t> Responder::send_read_response(wire::MutableBytes slot) {
  Response& response = responses_.front();
  wire::Reth& rest = response.rest;
  const std::uint32_t payload = std::min(rest.length, context_.mtu);
  const bool last = payload == rest.length;
  const wire::Position position = response.started
                                      ? (last ? wire::Position::last : wire::Position::middle)
                                      : (last ? wire::Position::only : wire::Position::first);
  wire::Packet packet;
  packet.info = &wire::info(wire::read_response_opcode(position));
  packet.bth.opcode = static_cast<std::uint8_t>(packet.info->opcode);
  packet.bth.pad_count = wire::pad_count(payload);
  packet.bth.destination = context_.attributes.destination;
  packet.bth.psn = response.psn;
  packet.aeth = {.syndrome = wire::Syndrome::ack(), .msn = response.msn};
  const std::size_t header = wire::write_headers(packet, slot);
  if (payload > 0) {
    const auto where = context_.engine.keys.resolve_remote(*context_.pd, context_.qpn, rest.rkey,
                                                           rest.address, payload, kRemoteRead);
    if (!where) return response.replay ? refuse_replay(slot) : refuse_read(where.error());
    if (!context_.engine.memory.read(*where, slot.subspan(header, payload))) {
      return refuse_read(MemoryFault::gone);
    }
  }
  rest.address += payload;
  rest.length -= payload;
  ++response.psn;
  response.started = true;
  if (last) responses_.pop_front();
  return pad(slot, header + payload);
}

// The answer to a READ is wanted again whose key the program took back meanwhile. The requester may
// have got it the first time, and sent again because that took long: then its program has done
// nothing wrong, and the NAK finds nobody who waits for it.
std::optional<std::size_t> Responder::refuse_replay(wire::MutableBytes slot) {
  Response& response = responses_.front();
  response.kind = Response::Kind::acknowledge;
  response.syndrome = wire::Syndrome::nak(wire::NakCode::remote_access_error);
  ++context_.engine.counters.sent_naks;
  return poll_transmit(slot);
}

// The memory went away under a READ whose answer is on its way.
std::optional<std::size_t> Responder::refuse_read(MemoryFault fault) {
  const Response response = responses_.front();
  explain("QP {:#x}: READ of {:#x} + {:#x} with rkey {:#x} ends: {}", context_.qpn.value(),
          response.rest.address, response.rest.length, response.rest.rkey.value(),
          to_string(fault));
  responses_.clear();
  responses_.push({.kind = Response::Kind::acknowledge,
                   .syndrome = wire::Syndrome::nak(wire::NakCode::remote_access_error),
                   .psn = response.psn,
                   .msn = response.msn});
  ++context_.engine.counters.sent_naks;
  context_.collapse = Collapse::by_responder;
  context_.collapse_event = AsyncEventType::qp_access_error;
  return std::nullopt;
}

}  // namespace urxe::emulator
