#include "tests/support/device_pair.h"

#include <algorithm>
#include <array>

#include "tests/support/bring_up.h"

namespace urxe::test {
namespace {

using namespace emulator;

constexpr std::uint32_t kQpnsPerNode = 1024;
constexpr std::size_t kSlotSize = 4160;
constexpr Access kEverything =
    kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kWindowBind;

}  // namespace

Node::Node(const DeviceOptions& options, const wire::IpAddress& own_address,
           std::uint32_t first_qpn)
    : device(options, memory, {wire::Qpn{first_qpn}, kQpnsPerNode}), address(own_address) {
  device.assign_gids({address});
  pd = *device.create_pd();
  send_cq = *device.create_cq(send_completions);
  receive_cq = *device.create_cq(receive_completions);
}

Node::Buffer Node::buffer(std::size_t size) { return buffer(size, kEverything); }

Node::Buffer Node::buffer(std::size_t size, Access access) {
  const std::uint64_t start = memory.map(size);
  MemoryRegion* region = *device.register_region(
      *pd, {.start = start, .length = size, .iova = start, .access = access});
  regions.push_back(region);
  return {start, size, region->key()};
}

DevicePair::DevicePair(const PairOptions& options) : options_(options) {
  options_.device.port_mtu = Mtu::bytes4096;
  for (int i = 0; i < 2; ++i) {
    options_.device.seed = static_cast<std::uint32_t>(i);
    const auto address = wire::IpAddress::from_v4(0x0A000001 + static_cast<std::uint32_t>(i));
    nodes_.push_back(std::make_unique<Node>(options_.device, address,
                                            0x4000 * static_cast<std::uint32_t>(i + 1)));
    Node& node = *nodes_.back();
    node.qp = *node.device.create_qp(*node.pd, {.type = options_.type,
                                                .send_cq = node.send_cq,
                                                .receive_cq = node.receive_cq,
                                                .send_source = &node.sends,
                                                .receive_source = &node.receives,
                                                .capabilities = {.max_send_wr = 64},
                                                .signal_all = options_.signal_all});
  }
  connect(0);
  connect(1);
}

QpAttributes DevicePair::attributes(int index) const {
  const Node& peer = *nodes_.at(static_cast<std::size_t>(1 - index));
  const std::array psns{wire::Psn{options_.first_psn}, wire::Psn{options_.first_psn + 0x1000}};
  QpAttributes attributes;
  attributes.path_mtu = options_.mtu;
  attributes.qkey = kTestQKey;
  attributes.send_psn = psns.at(static_cast<std::size_t>(index));
  attributes.receive_psn = psns.at(static_cast<std::size_t>(1 - index));
  attributes.destination = peer.qp->qpn();
  attributes.access = options_.access;
  attributes.vector.destination = peer.address;
  attributes.vector.global = true;
  attributes.max_read_atomic = attributes.max_dest_read_atomic = options_.read_atomic;
  attributes.min_rnr_timer = options_.min_rnr_timer;
  attributes.timeout = options_.timeout;
  attributes.retry_count = options_.retry_count;
  attributes.rnr_retry = options_.rnr_retry;
  return attributes;
}

void DevicePair::connect(int index) { bring_up(*node(index).qp, attributes(index)); }

Result<void> DevicePair::post(int index, WorkOpcode opcode, const Node::Buffer& local,
                              std::size_t length, const Node::Buffer& remote,
                              const std::function<void(OwnedSend&)>& adjust) {
  OwnedSend send;
  send.request.opcode = opcode;
  send.request.length = length;
  send.request.remote_address = remote.address;
  send.request.rkey = wire::RKey{remote.key};
  send.sges = {{local.address, static_cast<std::uint32_t>(length), local.key}};
  if (adjust) adjust(send);
  node(index).sends.post(std::move(send));
  return node(index).qp->ring_doorbell();
}

void DevicePair::post_receive(int index, const Node::Buffer& buffer, std::uint64_t wr_id) {
  node(index).receives.post(
      wr_id, {{buffer.address, static_cast<std::uint32_t>(buffer.size), buffer.key}});
}

void DevicePair::transmit(int index) {
  std::array<std::uint8_t, kSlotSize> slot;
  while (const auto outbound = node(index).device.poll_transmit(now_, slot)) {
    WirePacket packet{.from = index, .path = *outbound->path, .sent = now_};
    packet.bytes.assign(slot.begin(), slot.begin() + static_cast<std::ptrdiff_t>(outbound->size));
    packet.bytes.resize(packet.bytes.size() + wire::kIcrcSize);
    log.push_back(packet);
    const int copies = fate ? fate(packet) : 1;
    for (int i = 0; i < copies; ++i) in_flight_.push_back({now_ + options_.latency, packet});
  }
}

void DevicePair::transmit() {
  transmit(0);
  transmit(1);
}

void DevicePair::deliver_next() {
  const InFlight next = std::move(in_flight_.front());
  in_flight_.pop_front();
  now_ = std::max(now_, next.arrival);
  const int to = 1 - next.packet.from;
  node(to).device.handle_packet(
      now_, {.path = next.packet.path, .bytes = next.packet.bytes, .icrc_is_right = true});
  transmit(to);
}

void DevicePair::inject(int to, wire::Packet packet, const std::vector<std::uint8_t>& payload) {
  packet.bth.opcode = static_cast<std::uint8_t>(packet.info->opcode);
  packet.bth.destination = node(to).qp->qpn();
  packet.bth.pad_count = wire::pad_count(payload.size());
  std::vector<std::uint8_t> bytes(kSlotSize);
  const std::size_t header = wire::write_headers(packet, bytes);
  std::copy(payload.begin(), payload.end(), bytes.begin() + static_cast<std::ptrdiff_t>(header));
  bytes.resize(header + payload.size() + packet.bth.pad_count + wire::kIcrcSize);
  const wire::Path path = node(1 - to).qp->path();
  node(to).device.handle_packet(now_, {.path = path, .bytes = bytes, .icrc_is_right = true});
  transmit();
}

Time DevicePair::next_event() {
  return std::min(client().device.next_deadline(), server().device.next_deadline());
}

void DevicePair::run(Duration limit) {
  const Time end = now_ + limit;
  transmit();
  while (true) {
    const Time deadline = next_event();
    const Time arrival = in_flight_.empty() ? kNever : in_flight_.front().arrival;
    const Time next = std::min(deadline, arrival);
    if (next == kNever || next > end) return;
    if (arrival <= deadline) {
      deliver_next();
      continue;
    }
    now_ = std::max(now_, deadline);
    client().device.handle_timer(now_);
    server().device.handle_timer(now_);
    transmit();
  }
}

}  // namespace urxe::test
