#include "tests/sim/swarm/wire_watcher.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace urxe::swarm {

using namespace std::chrono_literals;

namespace {

// A turn that a busy machine or a full cable may need before a packet that is due leaves.
constexpr Duration kSlack = 20ms;

std::uint32_t checksum_of(wire::Bytes bytes) {
  std::uint32_t hash = 2166136261;  // FNV-1a
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 16777619;
  return hash;
}

std::uint32_t packets_of(std::uint32_t length, std::uint32_t mtu) {
  return std::max(1U, (length + mtu - 1) / mtu);
}

std::uint64_t address_in(const wire::Packet& packet) {
  return packet.info->is_atomic() ? packet.atomic.address : packet.reth.address;
}

}  // namespace

std::uint32_t Flow::messages_up_to(std::int64_t index) const {
  if (index < 0 || slots_.empty()) return 0;
  return slots_[std::min(static_cast<std::size_t>(index), slots_.size() - 1)].messages;
}

// --- requests

void Flow::on_request_sent(Time now, const wire::Packet& packet) {
  const std::int64_t index = index_of(packet.bth.psn);
  const auto size = static_cast<std::int64_t>(slots_.size());
  if (index < 0 || index > size) {
    findings_.add("{}: request with PSN {:#x} when {:#x} is next", name_, packet.bth.psn.value(),
                  (limits_.first + static_cast<std::uint32_t>(size)).value());
    return;
  }
  if (index < size) {
    if (!limits_.reliable) {
      findings_.add("{}: PSN {:#x} sent twice on an unreliable service", name_,
                    packet.bth.psn.value());
      return;
    }
    check_retries(now, index);
    return check_repetition(index, packet);
  }
  check_order(packet);
  check_answers_asked_for(packet);
  alive_at_ = now;
  if (packet.info->operation == wire::Operation::rdma_read_request) return add_read(packet);
  add_request(packet);
}

void Flow::check_order(const wire::Packet& packet) {
  const bool within = !slots_.empty() && !slots_.back().ends_message;
  const bool cut_short = !limits_.reliable && within && packet.info->starts_message();
  if (within == packet.info->starts_message() && !cut_short) {
    findings_.add("{}: {} {} a message", name_, packet.info->name, within ? "within" : "outside");
  }
  const bool full = packet.info->payload == wire::PayloadRule::exact_mtu;
  if (packet.payload.size() > limits_.mtu || (full && packet.payload.size() != limits_.mtu)) {
    findings_.add("{}: {} of {} bytes", name_, packet.info->name, packet.payload.size());
  }
}

void Flow::check_answers_asked_for(const wire::Packet& packet) {
  const wire::OpcodeInfo& info = *packet.info;
  if (!info.needs_response()) return;
  const auto waiting = std::count_if(slots_.begin() + una_, slots_.end(),
                                     [](const Slot& slot) { return slot.asks_for_answer; });
  if (waiting >= limits_.max_read_atomic) {
    findings_.add("{}: {} while {} others wait for their answers, max_rd_atomic is {}", name_,
                  info.name, waiting, limits_.max_read_atomic);
  }
}

void Flow::add_request(const wire::Packet& packet) {
  const bool ends = packet.info->ends_message();
  const std::uint32_t before = slots_.empty() ? 0 : slots_.back().messages;
  slots_.push_back({.opcode = packet.info->opcode,
                    .address = address_in(packet),
                    .payload = static_cast<std::uint32_t>(packet.payload.size()),
                    .checksum = checksum_of(packet.payload),
                    .messages = before + (ends ? 1 : 0),
                    .flushes = flushes_,
                    .ends_message = ends,
                    .asks_for_answer = packet.info->needs_response()});
  if (packet.info->operation == wire::Operation::flush) ++flushes_;
}

std::optional<std::size_t> Flow::flush_at(wire::Psn psn) const {
  const std::int64_t index = index_of(psn);
  if (index < 0 || index >= static_cast<std::int64_t>(slots_.size())) return std::nullopt;
  const Slot& slot = slots_[static_cast<std::size_t>(index)];
  if (slot.opcode != wire::Opcode::rc_flush) return std::nullopt;
  return slot.flushes;
}

void Flow::add_read(const wire::Packet& packet) {
  const std::uint32_t count = packets_of(packet.reth.length, limits_.mtu);
  const std::uint32_t before = slots_.empty() ? 0 : slots_.back().messages;
  std::uint32_t left = packet.reth.length;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t payload = std::min(left, limits_.mtu);
    slots_.push_back({.opcode = packet.info->opcode,
                      .address = packet.reth.address + std::uint64_t{i} * limits_.mtu,
                      .payload = payload,
                      .checksum = 0,
                      .messages = before + (i + 1 == count ? 1 : 0),
                      .ends_message = true,
                      .asks_for_answer = i == 0});
    left -= payload;
  }
}

void Flow::check_repetition(std::int64_t index, const wire::Packet& packet) {
  const Slot& slot = slots_[static_cast<std::size_t>(index)];
  const bool read = packet.info->operation == wire::Operation::rdma_read_request;
  const bool same = slot.opcode == packet.info->opcode &&
                    (!packet.info->starts_message() || slot.address == address_in(packet)) &&
                    (read || (slot.payload == packet.payload.size() &&
                              slot.checksum == checksum_of(packet.payload)));
  if (!same) {
    findings_.add("{}: PSN {:#x} is sent again as another packet ({})", name_,
                  packet.bth.psn.value(), packet.info->name);
  }
}

void Flow::check_retries(Time now, std::int64_t index) {
  if (index < una_) {
    findings_.add("{}: sends PSN index {} again, though all before {} was acknowledged", name_,
                  index, una_);
  }
  if (std::exchange(rnr_pending_, false)) {
    alive_at_ = now;
    if (now < rnr_until_) {
      findings_.add("{}: sends PSN index {} again {} ns before the RNR timer ends", name_, index,
                    (rnr_until_ - now).count());
    }
    ++rnr_retries_;
    if (limits_.rnr_retry < 7 && rnr_retries_ > limits_.rnr_retry) {
      findings_.add("{}: {} RNR retries, rnr_retry is {}", name_, rnr_retries_, limits_.rnr_retry);
    }
  }
  if (limits_.ack_timeout == Duration{}) return;
  const Duration limit = (limits_.retry_count + 1) * limits_.ack_timeout + kSlack;
  if (now - alive_at_ > limit) {
    findings_.add("{}: still sends PSN index {} after {} us of silence, retry_cnt is {}", name_,
                  index, (now - alive_at_).count() / 1000, limits_.retry_count);
  }
}

void Flow::on_response_received(Time now, const wire::Packet& packet) {
  const std::int64_t index = index_of(packet.bth.psn);
  if (index < 0 || index >= static_cast<std::int64_t>(slots_.size())) return;
  alive_at_ = now;
  if (packet.info->operation != wire::Operation::acknowledge) {
    answered_before(index);
    if (una_ != index) return;
    ++una_;
    rnr_pending_ = false;
    rnr_retries_ = 0;
    return;
  }
  switch (packet.aeth.syndrome.kind()) {
    case wire::Syndrome::Kind::ack:
      return answered_before(index + 1);
    case wire::Syndrome::Kind::rnr_nak:
      answered_before(index);
      if (una_ != index || rnr_pending_) return;
      rnr_pending_ = true;
      rnr_until_ = now + wire::rnr_delay(packet.aeth.syndrome.value());
      return;
    default:
      return answered_before(index);
  }
}

// Acknowledgements do not reach past a request whose own response is missing.
void Flow::answered_before(std::int64_t index) {
  const auto answers = [this] {
    return wire::info(slots_[static_cast<std::size_t>(una_)].opcode).needs_response();
  };
  const std::int64_t before = una_;
  while (una_ < index && !answers()) ++una_;
  if (una_ == before) return;
  rnr_pending_ = false;
  rnr_retries_ = 0;
}

void Flow::on_request_received(const wire::Packet& packet) {
  const std::int64_t index = index_of(packet.bth.psn);
  if (index < 0 || index >= static_cast<std::int64_t>(slots_.size())) return;
  ++slots_[static_cast<std::size_t>(index)].arrivals;
  const bool gap = index > received_ && limits_.reliable;
  if (gap && !naks_said_.contains(received_)) naks_due_.insert(received_);
  if (index != received_) return;
  const bool read = packet.info->operation == wire::Operation::rdma_read_request;
  const std::int64_t next = received_ + (read ? packets_of(packet.reth.length, limits_.mtu) : 1);
  received_ = std::min(next, static_cast<std::int64_t>(slots_.size()));
}

// --- answers

void Flow::on_response_sent(const wire::Packet& packet) {
  const std::int64_t index = index_of(packet.bth.psn);
  switch (packet.info->operation) {
    case wire::Operation::acknowledge:
      return check_acknowledge(packet);
    case wire::Operation::atomic_acknowledge:
      break;
    default:
      return check_read_response(index, packet);
  }
  const bool known = index >= 0 && index < received_ &&
                     wire::info(slots_[static_cast<std::size_t>(index)].opcode).is_atomic();
  if (!known) {
    findings_.add("{}: answer to an atomic with PSN {:#x}, which is none", name_,
                  packet.bth.psn.value());
    return;
  }
  static_cast<void>(has_msn(packet, messages_up_to(index), messages_up_to(received_ - 1)));
}

bool Flow::has_msn(const wire::Packet& packet, std::uint32_t low, std::uint32_t high) {
  const std::uint32_t msn = packet.aeth.msn.value();
  if (low <= msn && msn <= high) return true;
  findings_.add("{}: {} of PSN {:#x} (syndrome {:#x}) has MSN {}, not {} to {}", name_,
                packet.info->name, packet.bth.psn.value(), packet.aeth.syndrome.bits(), msn, low,
                high);
  return false;
}

void Flow::check_acknowledge(const wire::Packet& packet) {
  const std::int64_t index = index_of(packet.bth.psn);
  if (packet.aeth.syndrome.kind() != wire::Syndrome::Kind::ack) return check_nak(index, packet);
  if (index < -1 || index >= received_) {
    findings_.add("{}: acknowledges PSN {:#x}, which never came", name_, packet.bth.psn.value());
    return;
  }
  if (index < acknowledged_) {
    findings_.add("{}: acknowledges PSN {:#x} after a later one", name_, packet.bth.psn.value());
  }
  acknowledged_ = index;
  const std::uint32_t messages = messages_up_to(index);
  static_cast<void>(has_msn(packet, messages, messages));
}

// The PSN of a NAK is the one that is due: all before it was executed.
void Flow::check_nak(std::int64_t index, const wire::Packet& packet) {
  const wire::Syndrome syndrome = packet.aeth.syndrome;
  const bool sequence = syndrome == wire::Syndrome::nak(wire::NakCode::psn_sequence_error);
  if (index < 0 || index > received_ || (!sequence && index == received_)) {
    findings_.add("{}: NAK {:#x} of PSN {:#x}, when {:#x} came last", name_, syndrome.bits(),
                  packet.bth.psn.value(),
                  (limits_.first + static_cast<std::uint32_t>(received_ - 1)).value());
    return;
  }
  naks_due_.erase(index);
  naks_said_.insert(index);
  had_rnr_ = had_rnr_ || syndrome.kind() == wire::Syndrome::Kind::rnr_nak;
  const bool soft = sequence || syndrome.kind() == wire::Syndrome::Kind::rnr_nak;
  // A READ whose memory is gone, perhaps when it is answered again, was counted when it began.
  const std::uint32_t high = messages_up_to(soft ? index - 1 : received_ - 1);
  static_cast<void>(has_msn(packet, messages_up_to(index - 1), high));
  if (!soft) return;
  // What was never sent is asked for when packets of an older connection come.
  if (index == static_cast<std::int64_t>(slots_.size())) return;
  // Each time that the packet comes it may be refused once more, and missed once before.
  Slot& slot = slots_[static_cast<std::size_t>(index)];
  const bool too_often =
      sequence ? ++slot.naks > slot.arrivals + 1 : ++slot.rnr_naks > slot.arrivals;
  if (too_often) {
    findings_.add("{}: says once too often (syndrome {:#x}) that PSN {:#x} is due", name_,
                  syndrome.bits(), packet.bth.psn.value());
  }
}

// A packet that found no receive counts as having come, so gaps are no more where they seem to be.
void Flow::check_at_rest() {
  if (naks_due_.empty() || had_rnr_) return;
  findings_.add("{}: packets came before PSN {:#x} did, and no NAK said so", name_,
                (limits_.first + static_cast<std::uint32_t>(*naks_due_.begin())).value());
}

void Flow::check_read_response(std::int64_t index, const wire::Packet& packet) {
  const bool came = index >= 0 && index < received_;
  const wire::Opcode asked =
      came ? slots_[static_cast<std::size_t>(index)].opcode : wire::Opcode::rc_send_only;
  const bool placed = asked == wire::Opcode::rc_flush || asked == wire::Opcode::rc_atomic_write;
  if (placed) return check_placement_response(packet);
  if (asked != wire::Opcode::rc_read_request) {
    findings_.add("{}: {} of PSN {:#x}, which is no READ", name_, packet.info->name,
                  packet.bth.psn.value());
    return;
  }
  const Slot& slot = slots_[static_cast<std::size_t>(index)];
  if (packet.payload.size() != slot.payload) {
    findings_.add("{}: {} of PSN {:#x} has {} bytes, not {}", name_, packet.info->name,
                  packet.bth.psn.value(), packet.payload.size(), slot.payload);
  }
  if (packet.info->has(wire::Header::aeth)) {
    static_cast<void>(has_msn(packet, messages_up_to(index), messages_up_to(received_ - 1)));
  }
}

// A READ response without data (IBTA A19.4.3).
void Flow::check_placement_response(const wire::Packet& packet) {
  if (packet.info->position != wire::Position::only || !packet.payload.empty()) {
    findings_.add("{}: {} of {} bytes answers PSN {:#x}, a FLUSH or an ATOMIC WRITE", name_,
                  packet.info->name, packet.payload.size(), packet.bth.psn.value());
    return;
  }
  const std::int64_t index = index_of(packet.bth.psn);
  static_cast<void>(has_msn(packet, messages_up_to(index), messages_up_to(received_ - 1)));
}

}  // namespace urxe::swarm
