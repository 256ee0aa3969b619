#include "emulator/completer.h"

#include <cstring>

#include "emulator/request_builder.h"

namespace urxe::emulator {

void Completer::handle_response(Time now, const wire::Packet& packet) {
  if (!requester_.is_outstanding(packet.bth.psn)) {
    ++context_.engine.counters.stray_responses;
    if (packet.info->operation == wire::Operation::rdma_read_response) {
      requester_.hear_busy_peer(now);
    }
    return;
  }
  switch (packet.info->operation) {
    case wire::Operation::acknowledge:
      return handle_acknowledge(now, packet);
    case wire::Operation::atomic_acknowledge:
      return handle_atomic_response(now, packet);
    default:
      return handle_read_response(now, packet);
  }
}

// --- acknowledgements

void Completer::handle_acknowledge(Time now, const wire::Packet& packet) {
  switch (packet.aeth.syndrome.kind()) {
    case wire::Syndrome::Kind::ack:
      return handle_ack(now, packet.bth.psn);
    case wire::Syndrome::Kind::rnr_nak:
      return handle_rnr_nak(now, packet);
    case wire::Syndrome::Kind::nak:
      return handle_nak(now, packet);
    case wire::Syndrome::Kind::reserved:
      break;
  }
  ++context_.engine.counters.malformed_packets;
}

void Completer::handle_ack(Time now, wire::Psn psn) {
  // IBA C9-99: an acknowledgement acknowledges everything before it too.
  // What follows may not have been sent yet: a message that waits for room is no loss.
  const bool probed = requester_.was_probed(psn);
  if (!acknowledge_before(now, psn + 1)) return;
  if (probed && requester_.is_outstanding(psn + 1)) requester_.resend(now);
}

void Completer::handle_rnr_nak(Time now, const wire::Packet& packet) {
  ++context_.engine.counters.received_rnr_naks;
  if (!acknowledge_before(now, packet.bth.psn)) return;
  if (requester_.waits_for_receiver()) return;
  const auto delay = wire::rnr_delay(packet.aeth.syndrome.value());
  if (requester_.wait_for_receiver(now, delay)) return;
  ++context_.engine.counters.rnr_retries_exceeded;
  context_.engine.explanations.add(
      "QP {:#x}: the peer posted no receive within {} RNR retries of {} us", context_.qpn.value(),
      context_.attributes.rnr_retry, delay.count());
  requester_.fail_oldest(CompletionStatus::rnr_retry_exceeded, VendorError::no_answer);
}

void Completer::handle_sequence_nak(Time now, wire::Psn psn) {
  ++context_.engine.counters.received_sequence_naks;
  if (!acknowledge_before(now, psn)) return;
  if (!requester_.already_went_back_to(psn)) retry(now);
}

void Completer::handle_nak(Time now, const wire::Packet& packet) {
  const std::uint8_t code = packet.aeth.syndrome.value();
  if (code == static_cast<std::uint8_t>(wire::NakCode::psn_sequence_error)) {
    return handle_sequence_nak(now, packet.bth.psn);
  }
  CompletionStatus status{};
  switch (static_cast<wire::NakCode>(code)) {
    case wire::NakCode::invalid_request:
      status = CompletionStatus::remote_invalid_request;
      break;
    case wire::NakCode::remote_access_error:
      status = CompletionStatus::remote_access_error;
      break;
    case wire::NakCode::remote_operational_error:
      status = CompletionStatus::remote_operational_error;
      break;
    default:
      ++context_.engine.counters.malformed_packets;
      return;
  }
  ++context_.engine.counters.received_naks;
  if (!acknowledge_before(now, packet.bth.psn)) return;
  requester_.fail_oldest(status, VendorError::nak_received);
}

bool Completer::acknowledge_before(Time now, wire::Psn psn) {
  const wire::Psn reached = first_missing_response_before(psn);
  requester_.acknowledge_before(reached, now);
  if (reached == psn) return true;
  if (!requester_.already_went_back_to(reached)) {
    ++context_.engine.counters.lost_read_responses;
    retry(now);
  }
  return false;
}

wire::Psn Completer::first_missing_response_before(wire::Psn psn) {
  const wire::Psn una = requester_.una_psn();
  for (std::uint32_t ordinal = queue_.oldest(); queue_.holds(ordinal); ++ordinal) {
    const Work& work = queue_.at(ordinal);
    if (work.is_local()) continue;
    if (!work.started() || !work.first_psn.is_before(psn)) break;
    if (work.needs_response() && una.is_before(work.end_psn())) {
      return una.is_before(work.first_psn) ? work.first_psn : una;
    }
  }
  return psn;
}

void Completer::retry(Time now) {
  if (requester_.retry(now)) return;
  ++context_.engine.counters.retries_exceeded;
  context_.engine.explanations.add("QP {:#x}: packets were lost more than {} times in a row",
                                   context_.qpn.value(), context_.attributes.retry_count);
  requester_.fail_oldest(CompletionStatus::retry_exceeded, VendorError::no_answer);
}

// --- responses

Work* Completer::awaited(Time now, wire::Psn psn) {
  // IBA C9-100: a response acknowledges the requests before its own.
  if (!acknowledge_before(now, psn)) return nullptr;
  const auto ordinal = requester_.find_unacknowledged();
  return ordinal ? &queue_.at(*ordinal) : nullptr;
}

void Completer::handle_read_response(Time now, const wire::Packet& packet) {
  const wire::Psn psn = packet.bth.psn;
  const Work* work = awaited(now, psn);
  if (work == nullptr) return requester_.hear_busy_peer(now);
  if (work->is_placement()) return handle_placement_response(now, packet);
  if (!work->is_read()) return refuse_response(packet, VendorError::response_without_request);
  const auto index = static_cast<std::uint32_t>(psn.ahead_of(work->first_psn));
  if (packet.payload.size() != payload_of(work->request.length, context_.mtu, index, 1)) {
    return refuse_response(packet, VendorError::bad_response_length);
  }
  if (!deliver(*work, std::uint64_t{index} * context_.mtu, packet.payload)) return;
  position_psn_ = psn + 1;
  position_is_known_ = true;
  requester_.acknowledge_before(psn + 1, now);
}

// A FLUSH and an ATOMIC WRITE are answered with a READ response without data (IBTA A19.4.3).
void Completer::handle_placement_response(Time now, const wire::Packet& packet) {
  if (packet.info->position != wire::Position::only || !packet.payload.empty()) {
    return refuse_response(packet, VendorError::bad_response_length);
  }
  requester_.acknowledge_before(packet.bth.psn + 1, now);
}

void Completer::handle_atomic_response(Time now, const wire::Packet& packet) {
  const Work* work = awaited(now, packet.bth.psn);
  if (work == nullptr) return;
  if (!work->is_atomic()) return refuse_response(packet, VendorError::response_without_request);
  std::array<std::uint8_t, sizeof(packet.atomic_result)> value;
  std::memcpy(value.data(), &packet.atomic_result, value.size());
  position_is_known_ = false;
  if (!deliver(*work, 0, value)) return;
  requester_.acknowledge_before(packet.bth.psn + 1, now);
}

bool Completer::deliver(const Work& work, std::uint64_t offset, wire::Bytes data) {
  const bool continues = position_is_known_ && position_psn_ == requester_.una_psn() && offset != 0;
  if (!continues) position_.seek(work.request.sges, offset);
  const auto fault = position_.scatter(work.request.sges, context_.memory(), data);
  if (!fault) return true;
  context_.engine.explanations.add(
      "QP {:#x}: the response of {} cannot be written to {:#x} + {:#x} with lkey {:#x}: {}",
      context_.qpn.value(), to_string(work.request.opcode), fault->sge.address, fault->sge.length,
      fault->sge.lkey, to_string(fault->fault));
  requester_.fail_oldest(CompletionStatus::local_protection_error, vendor_error_of(fault->fault));
  return false;
}

void Completer::refuse_response(const wire::Packet& packet, VendorError why) {
  context_.engine.explanations.add(
      "QP {:#x}: the peer answered PSN {:#x} with {} of {} bytes, which no request asks for",
      context_.qpn.value(), packet.bth.psn.value(), packet.info->name, packet.payload.size());
  requester_.fail_oldest(CompletionStatus::bad_response, why);
}

}  // namespace urxe::emulator
