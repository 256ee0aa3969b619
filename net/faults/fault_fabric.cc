#include "net/faults/fault_fabric.h"

#include <algorithm>
#include <utility>

#include "net/wire/icrc.h"
#include "net/wire/opcode.h"

namespace urxe::net {
namespace {

constexpr std::uint32_t kBitsPerByte = 8;

// Flips bits of `bytes`, which may or may not reach to the ICRC; bits beyond are left out.
void flip(wire::MutableBytes bytes, const std::vector<std::uint32_t>& bits) {
  for (const std::uint32_t bit : bits) {
    const std::uint32_t byte = bit / kBitsPerByte;
    if (byte < bytes.size()) bytes[byte] ^= static_cast<std::uint8_t>(0x80 >> bit % kBitsPerByte);
  }
}

// What the flipped bits of a packet of `size` bytes without ICRC do to its ICRC field.
std::uint32_t flips_of_icrc(std::size_t size, const std::vector<std::uint32_t>& bits) {
  std::array<std::uint8_t, wire::kIcrcSize> field{};
  for (const std::uint32_t bit : bits) {
    const std::size_t byte = bit / kBitsPerByte;
    if (byte >= size && byte < size + field.size()) {
      field[byte - size] ^= static_cast<std::uint8_t>(0x80 >> bit % kBitsPerByte);
    }
  }
  return wire::load_icrc(field);
}

// Flips bits of a packet without ICRC. Returns how its ICRC is wrong afterwards: not at all if the
// flips were in fields that the ICRC does not cover. CRCs are linear, so the seed does not matter.
std::uint32_t damage(wire::MutableBytes packet, const Verdict& verdict) {
  if (verdict.flips.empty()) return 0;
  const std::uint32_t before = wire::icrc(0, packet);
  flip(packet, verdict.flips);
  if (verdict.repair_icrc) return 0;
  return before ^ wire::icrc(0, packet) ^ flips_of_icrc(packet.size(), verdict.flips);
}

void mark(wire::Path& path) { path.traffic_class |= wire::kEcnMask; }

}  // namespace

// --- who waits

void FaultFabric::WaitingRoom::note_passing() {
  for (Waiting& packet : packets_) {
    if (packet.packets_to_pass > 0 && --packet.packets_to_pass == 0) packet.due = Time::min();
  }
}

std::optional<FaultFabric::Waiting> FaultFabric::WaitingRoom::take_due(Time now) {
  const auto first =
      std::min_element(packets_.begin(), packets_.end(),
                       [](const Waiting& a, const Waiting& b) { return a.due < b.due; });
  if (first == packets_.end() || first->due > now) return std::nullopt;
  Waiting packet = std::move(*first);
  packets_.erase(first);
  return packet;
}

Time FaultFabric::WaitingRoom::next_deadline() const {
  Time earliest = kNever;
  for (const Waiting& packet : packets_) earliest = std::min(earliest, packet.due);
  return earliest;
}

void FaultFabric::wait(Time now, const Verdict& verdict, WaitingRoom& room, Waiting packet) {
  packet.due = now + verdict.delay.value_or(Duration{});
  if (verdict.held_back) {
    packet.packets_to_pass = verdict.held_back->packets;
    packet.due += verdict.held_back->within;
  }
  room.add(std::move(packet));
}

// What is due but finds no room waits for the inner fabric: a deadline that has passed would keep
// the owner busy until there is room.
Time FaultFabric::next_deadline() const {
  const Time own = inner_is_full_ ? kNever : to_send_.next_deadline();
  return std::min({inner_->next_deadline(), own, to_deliver_.next_deadline()});
}

// --- sending

void FaultFabric::commit(Time now, const wire::Outbound& outbound) {
  const wire::MutableBytes bytes = slot_.first(outbound.size);
  const Verdict verdict =
      injector_.judge(now, Direction::transmit, outbound.path->destination, bytes);
  if (verdict.drop) return;  // the slot stays reserved
  Waiting packet{.path = *outbound.path, .icrc_error = outbound.icrc_error};
  packet.icrc_error ^= damage(bytes, verdict);
  if (verdict.mark) mark(packet.path);
  const bool waits = verdict.delay || verdict.held_back;
  if (waits || verdict.copies > 0) packet.bytes.assign(bytes.begin(), bytes.end());
  if (!waits) {
    inner_->commit(now,
                   {.path = &packet.path, .size = outbound.size, .icrc_error = packet.icrc_error});
    to_send_.note_passing();
  }
  for (std::uint32_t i = waits ? 0 : 1; i <= verdict.copies; ++i) {
    wait(now, verdict, to_send_, packet);
  }
  send_due(now);
}

bool FaultFabric::send(Time now, const Waiting& packet) {
  const wire::MutableBytes slot = inner_->reserve();
  if (slot.empty()) return false;
  std::copy(packet.bytes.begin(), packet.bytes.end(), slot.begin());
  inner_->commit(
      now, {.path = &packet.path, .size = packet.bytes.size(), .icrc_error = packet.icrc_error});
  return true;
}

void FaultFabric::send_due(Time now) {
  while (auto packet = to_send_.take_due(now)) {
    if (send(now, *packet)) continue;
    inner_is_full_ = true;
    return to_send_.put_back(std::move(*packet));
  }
}

bool FaultFabric::flush(Time now) {
  inner_is_full_ = !inner_->flush(now);
  if (!inner_is_full_ && to_send_.next_deadline() <= now) {
    send_due(now);
    inner_is_full_ = !inner_->flush(now) || inner_is_full_;
  }
  return !inner_is_full_;
}

// --- receiving

void FaultFabric::on_packet(Time now, const wire::Inbound& inbound) {
  if (inbound.bytes.size() < wire::kBthSize + wire::kIcrcSize) {
    return receiver_->on_packet(now, inbound);
  }
  const std::size_t size = inbound.bytes.size() - wire::kIcrcSize;
  const Verdict verdict =
      injector_.judge(now, Direction::receive, inbound.path.source, inbound.bytes.first(size));
  if (verdict.drop) return;
  Waiting packet{.path = inbound.path,
                 .bytes = {inbound.bytes.begin(), inbound.bytes.end()},
                 .icrc_is_right = inbound.icrc_is_right};
  if (damage(wire::MutableBytes(packet.bytes).first(size), verdict) != 0) {
    packet.icrc_is_right = false;
  }
  if (verdict.mark) mark(packet.path);
  const bool waits = verdict.delay || verdict.held_back;
  for (std::uint32_t i = 0; i <= verdict.copies; ++i) {
    if (waits) {
      wait(now, verdict, to_deliver_, packet);
    } else {
      deliver(now, packet);
    }
  }
  if (!waits) to_deliver_.note_passing();
  deliver_due(now);
}

void FaultFabric::deliver(Time now, const Waiting& packet) {
  receiver_->on_packet(
      now, {.path = packet.path, .bytes = packet.bytes, .icrc_is_right = packet.icrc_is_right});
}

std::size_t FaultFabric::deliver_due(Time now) {
  std::size_t packets = 0;
  while (const auto packet = to_deliver_.take_due(now)) {
    deliver(now, *packet);
    ++packets;
  }
  return packets;
}

ReceiveResult FaultFabric::receive(Time now, Receiver& receiver, std::size_t budget) {
  receiver_ = &receiver;
  const std::size_t waited = deliver_due(now);
  ReceiveResult result = inner_->receive(now, *this, budget);
  result.packets += waited;
  receiver_ = nullptr;
  // The owner flushes when it sends; nobody but this knows of what waited.
  if (inner_is_full_ || to_send_.next_deadline() <= now) flush(now);
  return result;
}

}  // namespace urxe::net
