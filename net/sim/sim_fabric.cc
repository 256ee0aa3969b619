#include "net/sim/sim_fabric.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "net/wire/frame.h"
#include "net/wire/opcode.h"

namespace urxe::net {

// --- the node

bool SimNode::is_for_us(const wire::IpAddress& destination) const {
  return destination == spec_.address || groups_.members(destination).contains(spec_.address);
}

void SimNode::take(Time now, SimPacket packet) {
  const auto frame = wire::parse_frame(packet);
  if (!frame || !is_for_us(frame->path.destination)) {
    ++counters_.strays;
    return;
  }
  if (inbox_bytes_ + packet.size() > spec_.receive_buffer) {
    ++counters_.overruns;
    return;
  }
  inbox_bytes_ += packet.size();
  inbox_.push_back(std::move(packet));
  if (listener_ != nullptr) listener_->wake(now);
}

// --- sending

wire::MutableBytes SimFabric::reserve() {
  waits_for_room_ = !node_.uplink().has_room(now_, kMaxIpPacket);
  if (waits_for_room_) return {};
  return slot_;
}

void SimFabric::commit(Time now, const wire::Outbound& outbound) {
  now_ = now;
  const wire::Path& path = *outbound.path;
  const std::size_t roce_size = outbound.size + wire::kIcrcSize;
  SimPacket packet(wire::ip_udp_size(path.source.is_v4()) + roce_size);
  const std::size_t header = wire::write_ip_udp(packet, path, wire::Ipv4Fragment{}, roce_size);
  const wire::MutableBytes roce = wire::MutableBytes(packet).subspan(header);
  std::copy_n(slot_.begin(), outbound.size, roce.begin());
  const std::uint32_t seed = wire::IcrcSeed(path, roce_size).value(wire::Ipv4Fragment{});
  const std::uint32_t icrc = wire::icrc(seed, roce.first(outbound.size));
  wire::store_icrc(roce, icrc ^ outbound.icrc_error);
  ++node_.counters_.sent_packets;
  if (node_.observer_ != nullptr) node_.observer_->on_sent(now, node_.address(), packet);
  node_.uplink().offer(now, std::move(packet));
}

bool SimFabric::flush(Time now) {
  now_ = now;
  waits_for_room_ = waits_for_room_ && !node_.uplink().has_room(now, kMaxIpPacket);
  return !waits_for_room_;
}

Time SimFabric::next_deadline() const {
  return waits_for_room_ ? node_.uplink().room_at(now_, kMaxIpPacket) : kNever;
}

// --- receiving

void SimFabric::hand_over(Time now, const SimPacket& packet, Receiver& receiver) {
  const auto frame = wire::parse_frame(packet);
  const wire::Bytes roce = frame->roce;  // take() has seen that it is a frame
  wire::Inbound inbound{.path = frame->path, .bytes = roce};
  if (roce.size() >= wire::kBthSize + wire::kIcrcSize) {
    const wire::IcrcSeed seed(frame->path, roce.size());
    inbound.icrc_is_right = wire::icrc_matches(seed.value(frame->fragment), roce);
  }
  ++node_.counters_.received_packets;
  if (!inbound.icrc_is_right) ++node_.counters_.icrc_errors;
  receiver.on_packet(now, inbound);
}

ReceiveResult SimFabric::receive(Time now, Receiver& receiver, std::size_t budget) {
  now_ = now;
  ReceiveResult result;
  while (result.packets < budget && !node_.inbox_.empty()) {
    const SimPacket packet = std::move(node_.inbox_.front());
    node_.inbox_.pop_front();
    node_.inbox_bytes_ -= packet.size();
    hand_over(now, packet, receiver);
    ++result.packets;
  }
  result.more = !node_.inbox_.empty();
  return result;
}

int SimFabric::join(const wire::IpAddress& group) {
  if (!group.is_multicast()) return EINVAL;
  node_.groups_.join(group, node_.address());
  return 0;
}

int SimFabric::leave(const wire::IpAddress& group) {
  return node_.groups_.leave(group, node_.address()) ? 0 : EADDRNOTAVAIL;
}

}  // namespace urxe::net
