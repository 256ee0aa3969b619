#include "tests/sim/swarm/machine.h"

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

Area Machine::make_area(std::size_t size, Access access, MemoryChecker::Area kind) {
  Area area{.start = host_.memory().map(size + 2 * kGuard) + kGuard,
            .size = size,
            .access = access,
            .region = nullptr};
  memory_checker_.add_area(area.start, size, kind);
  register_area(area);
  return area;
}

void Machine::register_area(Area& area) {
  area.region = *device().register_region(
      *pd_, {.start = area.start, .length = area.size, .iova = area.start, .access = area.access});
  area.key = area.region->key();
  memory_checker_.allow(area.start, area.size, area.access.has(kLocalWrite));
}

bool Machine::deregister_area(Area& area) {
  if (!device().destroy(*area.region)) return false;
  area.region = nullptr;
  memory_checker_.forbid(area.start);
  return true;
}

std::unique_ptr<ReceivePool> Machine::make_receives(std::size_t slots) {
  auto pool = std::make_unique<ReceivePool>();
  pool->slot_size = (shared_.max_message + kGrh + 7) & ~std::size_t{7};
  pool->slots.resize(slots);
  const Area& area = receive_areas_.emplace_back(
      make_area(slots * pool->slot_size, kLocalWrite, MemoryChecker::Area::receives));
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
  if (host_.memory().faults != 0) {
    shared_.findings.add("{}: {} accesses to memory that does not exist", name_,
                         host_.memory().faults);
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
  const Endpoint* to = shared_.find(path.destination, packet->bth.destination);
  if (to == nullptr || packet->info->service == wire::Service::cnp) return;
  Flow* flow = packet->info->is_response() ? to->flow() : to->peer().flow();
  if (flow == nullptr) return;
  if (packet->info->is_response()) {
    flow->on_response_sent(*packet);
  } else {
    flow->on_request_sent(now, *packet);
  }
}

void Machine::on_receive(Time now, const wire::Inbound& inbound) {
  if (shared_.plan.hostile || !inbound.icrc_is_right) return;
  const auto packet = wire::parse_packet(inbound.bytes);
  if (!packet || packet->info->service == wire::Service::ud) return;
  if (packet->info->service == wire::Service::cnp) return;
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
