#include "emulator/gsi_port.h"

namespace urxe::emulator {

void GsiPort::handle_packet(Time now, const wire::Packet& packet, const wire::Inbound& inbound) {
  if (packet.info->opcode != wire::Opcode::ud_send_only) {
    ++counters_.unknown_qp;
    return;
  }
  if (!wire::in_default_partition(packet.bth.pkey)) {
    ++counters_.pkey_violations;
    return;
  }
  if (packet.deth.qkey != wire::kGsiQKey) {
    ++counters_.qkey_violations;
    return;
  }
  cm_.handle_mad(now, packet.payload, inbound.path);
}

std::optional<wire::Outbound> GsiPort::poll_transmit(wire::MutableBytes slot) {
  wire::Packet packet;
  packet.info = &wire::info(wire::Opcode::ud_send_only);
  packet.bth.opcode = static_cast<std::uint8_t>(wire::Opcode::ud_send_only);
  const std::size_t headers = packet.info->header_size();
  const wire::Path* path = cm_.poll_transmit(slot.subspan(headers, wire::kMadSize));
  if (path == nullptr) return std::nullopt;
  packet.bth.destination = wire::kGsiQpn;
  packet.bth.psn = next_psn_;
  ++next_psn_;
  packet.deth = {.qkey = wire::kGsiQKey, .source = wire::kGsiQpn};
  wire::write_headers(packet, slot);
  return wire::Outbound{.path = path, .size = headers + wire::kMadSize};
}

}  // namespace urxe::emulator
