// A queue pair with congestion control: what it tells its peer, and how it waits for its rate.
#include "emulator/queue_pair.h"

namespace urxe::emulator {
namespace {

constexpr std::size_t kNotificationPayload = 16;  // reserved, zero (IBTA A17.9.3)

}  // namespace

// Acknowledgements say nothing of who sends too much, so their marks do not count. IBA CA17-44
void QueuePair::note_congestion(Time now, const wire::Packet& packet,
                                const wire::Inbound& inbound) {
  if (inbound.path.ecn() != wire::Ecn::ce || packet.payload.empty()) return;
  if (!congestion_->receiver.packet_was_marked(now)) return;
  congestion_->owes_notification = true;
  activate();
}

wire::Outbound QueuePair::write_notification(wire::MutableBytes slot) {
  congestion_->owes_notification = false;
  ++context_.engine.counters.congestion_notifications_sent;
  wire::Packet packet;
  packet.info = &wire::info(wire::Opcode::cnp);
  packet.bth.opcode = static_cast<std::uint8_t>(packet.info->opcode);
  packet.bth.becn = true;
  packet.bth.destination = context_.attributes.destination;
  const std::size_t header = wire::write_headers(packet, slot);
  std::fill_n(slot.begin() + static_cast<std::ptrdiff_t>(header), kNotificationPayload,
              std::uint8_t{0});
  return {.path = &context_.path, .size = header + kNotificationPayload};
}

// Acknowledgements leave whatever the rate is; requests and the answers of READs wait for it.
std::optional<wire::Outbound> QueuePair::poll_limited(Time now, wire::MutableBytes slot) {
  if (congestion_->owes_notification) return write_notification(slot);
  ReactionPoint& sender = congestion_->sender;
  if (sender.free_at() > now) {
    if (responder_.has_output() && !responder_.reads_memory()) return poll_answer(slot);
    congestion_->is_held = true;
    requester_.pass_on_turn();
    return std::nullopt;
  }
  auto outbound = poll_halves(now, slot);
  if (outbound) sender.sent(now, outbound->size);
  return outbound;
}

}  // namespace urxe::emulator
