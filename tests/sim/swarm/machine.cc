#include "tests/sim/swarm/machine.h"

#include <cstring>

#include "tests/sim/swarm/endpoint.h"

namespace urxe::swarm {

using namespace emulator;

namespace {

constexpr std::size_t kGuard = 64;  // bytes of no region before and after each
constexpr std::size_t kCounters = 4;
constexpr std::size_t kSharedSlots = 32;
constexpr std::uint32_t kQpns = 64;
constexpr std::size_t kGrh = 40;  // before a datagram

}  // namespace

Machine::Machine(net::Network& network, net::SimNode& node, std::unique_ptr<net::Fabric> fabric,
                 const DevicePlan& plan, std::string name, Shared& shared)
    : shared_(shared),
      name_(std::move(name)),
      memory_checker_(shared.findings, shared.atomics, name_, shared.plan.hostile),
      groups_(shared.findings, name_),
      host_(network.simulation(), node, std::move(fabric),
            {.options = plan.options,
             .qpns = {wire::Qpn{0x4000}, kQpns},
             .time_per_packet = plan.time_per_packet}),
      pd_(*device().create_pd()),
      cq_(*device().create_cq(*this)) {
  host_.memory().observer = &memory_checker_;
  host_.set_observer(this);
  counters_ = make_area(kCounters * sizeof(std::uint64_t), kLocalWrite | kRemoteAtomic,
                        MemoryChecker::Area::counters);
  shared_receives_ = make_receives(kSharedSlots);
  shared_receives_->shared = true;
  srq_ = *device().create_srq(*pd_, shared_receives_->source);
}

Area Machine::make_area(std::size_t size, Access access, MemoryChecker::Area kind, Paging paging) {
  Area area{.start = host_.memory().map(size + 2 * kGuard) + kGuard,
            .size = size,
            .access = access,
            .paging = paging,
            .region = nullptr};
  memory_checker_.add_area(area.start, size, kind);
  register_area(area);
  return area;
}

void Machine::register_area(Area& area) {
  const bool implicit = area.paging == Paging::implicit;
  RegionSpec spec{
      .start = area.start, .length = area.size, .iova = area.start, .access = area.access};
  if (area.paging != Paging::pinned) spec.access |= kOnDemand;
  if (implicit) {
    spec.start = spec.iova = 0;
    spec.length = ~std::uint64_t{0};
    spec.whole_address_space = true;
  }
  area.region = *device().register_region(*pd_, spec);
  area.key = area.region->key();
  memory_checker_.allow(area.start, area.size, area.access.has(kLocalWrite), implicit);
}

void Machine::take_away(Area& area, std::size_t offset, std::size_t size) {
  area.hole = area.start + offset;
  host_.memory().take_away(area.hole, size);
  memory_checker_.take_away(area.hole, size);
}

void Machine::bring_back(Area& area) {
  if (area.hole == 0) return;
  host_.memory().bring_back(area.hole);
  memory_checker_.bring_back(area.hole);
  area.hole = 0;
}

std::vector<Endpoint*> Machine::endpoints() const {
  std::vector<Endpoint*> found;
  for (const auto& [where, endpoint] : shared_.directory) {
    if (where.first == host_.address()) found.push_back(endpoint);
  }
  return found;
}

bool Machine::deregister_area(Area& area) {
  if (!device().destroy(*area.region)) return false;
  area.region = nullptr;
  memory_checker_.forbid(area.start);
  return true;
}

std::unique_ptr<ReceivePool> Machine::make_receives(std::size_t slots, Paging paging) {
  auto pool = std::make_unique<ReceivePool>();
  pool->slot_size = (shared_.max_message + kGrh + 7) & ~std::size_t{7};
  pool->slots.resize(slots);
  Area& area = receive_areas_.emplace_back(
      make_area(slots * pool->slot_size, kLocalWrite, MemoryChecker::Area::receives, paging));
  pool->area = &area;
  pool->start = area.start;
  pool->key = area.key;
  return pool;
}

void Machine::shut_down() {
  for (Area& area : receive_areas_) static_cast<void>(deregister_area(area));
  static_cast<void>(deregister_area(counters_));
  while (device().poll_async_event()) {
  }
  const bool gone = device().destroy(*srq_) && device().destroy(*cq_) && device().destroy(*pd_);
  if (!gone || device().census() != Device::Census{}) {
    const Device::Census c = device().census();
    shared_.findings.add(
        "{}: left: {} PDs, {} regions, {} windows, {} CQs, {} SRQs, {} AHs, {} QPs", name_, c.pds,
        c.regions, c.windows, c.cqs, c.srqs, c.ahs, c.qps);
  }
  if (device().has_output() || device().next_deadline() != kNever) {
    shared_.findings.add("{}: a device without queue pairs has output or timers", name_);
  }
}

bool Machine::push(const Completion& completion) {
  Endpoint* endpoint = shared_.find(host_.address(), completion.qpn);
  if (endpoint != nullptr) {
    endpoint->on_completion(completion);
  } else {
    shared_.findings.add("{}: a completion for QP {:#x}, which does not exist", name_,
                         completion.qpn.value());
  }
  return true;
}

// --- multicast

void Machine::attach(const Endpoint& endpoint, const wire::IpAddress& group) {
  const bool begins = groups_.attach(group, endpoint);
  const auto told = device().attach(endpoint.qp(), group);
  if (!told || *told != begins) {
    shared_.findings.add("{}: {} attaches to {}: {}", name_, endpoint.name(), group.to_string(),
                         told ? "wrong about who is the first" : told.error().sentence);
  }
  if (begins) host_.fabric().join(group);
}

void Machine::detach(const Endpoint& endpoint, const wire::IpAddress& group) {
  const bool was_attached = groups_.is_attached(group, endpoint);
  const bool ends = groups_.detach(group, endpoint);
  const auto told = device().detach(endpoint.qp(), group);
  if (told.has_value() != was_attached || (told && *told != ends)) {
    shared_.findings.add("{}: {} detaches from {}: {}", name_, endpoint.name(), group.to_string(),
                         told ? "wrong about who is the last" : told.error().sentence);
  }
  if (ends) host_.fabric().leave(group);
}

void Machine::note_multicast(const wire::Packet& packet, const wire::IpAddress& group) {
  std::uint64_t id = 0;
  if (packet.payload.size() < sizeof(id)) return;  // of no endpoint
  std::memcpy(&id, packet.payload.data(), sizeof(id));
  // One receive each, of a queue that some may share.
  const GroupChecker::Members& members = groups_.members(group);
  GroupChecker::Members able;
  for (const Endpoint* member : members) {
    if (member->can_take(members.size())) able.insert(member);
  }
  groups_.on_arrival(group, id, std::move(able));
}

// --- the wire

void Machine::watch_datagram(const wire::Packet& packet) {
  const std::uint32_t qpn = packet.deth.source.value();
  const auto [last, is_first] = datagram_psns_.try_emplace(qpn, packet.bth.psn);
  if (!is_first && packet.bth.psn != last->second + 1) {
    shared_.findings.add("{}: datagram with PSN {:#x} after {:#x}", name_, packet.bth.psn.value(),
                         last->second.value());
  }
  last->second = packet.bth.psn;
}

void Machine::on_transmit(Time now, const wire::Path& path, wire::Bytes bytes) {
  if (shared_.plan.hostile) return;
  packet_.assign(bytes.begin(), bytes.end());
  packet_.resize(bytes.size() + wire::kIcrcSize);
  const auto packet = wire::parse_packet(packet_);
  if (!packet) {
    shared_.findings.add("{}: sent a packet that nobody can read: {}", name_,
                         wire::to_string(packet.error()));
    return;
  }
  if (packet->info->service == wire::Service::ud) return watch_datagram(*packet);
  Endpoint* to = shared_.find(path.destination, packet->bth.destination);
  if (to == nullptr || packet->info->service == wire::Service::cnp) return;
  Flow* flow = packet->info->is_response() ? to->flow() : to->peer().flow();
  if (flow == nullptr) return;
  if (packet->info->is_response()) {
    to->on_response_leaves(*packet);
  } else {
    flow->on_request_sent(now, *packet);
  }
}

void Machine::on_receive(Time now, const wire::Inbound& inbound) {
  if (shared_.plan.hostile || !inbound.icrc_is_right) return;
  const auto packet = wire::parse_packet(inbound.bytes);
  if (!packet || packet->info->service == wire::Service::cnp) return;
  if (packet->info->service == wire::Service::ud) {
    const wire::IpAddress& to = inbound.path.destination;
    if (to.is_multicast()) note_multicast(*packet, to);
    return;
  }
  const Endpoint* to = shared_.find(host_.address(), packet->bth.destination);
  if (to == nullptr || inbound.path.source != to->peer().machine().host_.address()) return;
  Flow* flow = packet->info->is_response() ? to->flow() : to->peer().flow();
  if (flow == nullptr) return;
  if (packet->info->is_response()) {
    flow->on_response_received(now, *packet);
  } else {
    flow->on_request_received(*packet);
  }
}

}  // namespace urxe::swarm
