#include "tests/sim/pair_world.h"

#include <array>

namespace urxe::test {

using namespace emulator;

namespace {

constexpr Access kEverything =
    kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kWindowBind | kFlushGlobal;
constexpr std::uint32_t kQpns = 64;

}  // namespace

End::End(net::Network& network, net::SimNode& node, std::unique_ptr<net::Fabric> fabric,
         const HostSpec& spec)
    : host(network.simulation(), node, std::move(fabric), spec) {
  pd = *host.device().create_pd();
  send_cq = *host.device().create_cq(sent);
  receive_cq = *host.device().create_cq(received);
}

Buffer End::buffer(std::size_t size) { return buffer(size, kEverything); }

Buffer End::buffer(std::size_t size, Access access) {
  const std::uint64_t start = host.memory().map(size);
  const MemoryRegion* region = *host.device().register_region(
      *pd, {.start = start, .length = size, .iova = start, .access = access});
  return {start, size, region->key()};
}

void End::post_receive(const Buffer& buffer, std::uint64_t wr_id) {
  receives.post(wr_id, {{buffer.address, static_cast<std::uint32_t>(buffer.size), buffer.key}});
  qp->flush_posted_receives();
  host.settle();
}

Result<void> End::post(OwnedSend send) {
  sends.post(std::move(send));
  auto done = qp->ring_doorbell();
  host.settle();
  return done;
}

PairWorld::PairWorld(const WorldOptions& options) : options_(options), network_(options.seed) {
  options_.device.port_mtu = Mtu::bytes4096;
  std::array<net::SimNode*, 2> nodes{};
  for (std::uint32_t i = 0; i < 2; ++i) {
    nodes.at(i) = &network_.add_node({.address = wire::IpAddress::from_v4(0x0A000001 + i)});
  }
  network_.connect(*nodes[0], *nodes[1], options.link);
  for (std::uint32_t i = 0; i < 2; ++i) {
    std::unique_ptr<net::Fabric> fabric = std::make_unique<net::SimFabric>(*nodes.at(i));
    if (i == 0) {
      auto faults =
          std::make_unique<net::FaultFabric>(std::move(fabric), options.rules, options.seed);
      faults_ = faults.get();
      fabric = std::move(faults);
    }
    options_.device.seed = i;
    ends_.push_back(std::make_unique<End>(
        network_, *nodes.at(i), std::move(fabric),
        HostSpec{.options = options_.device, .qpns = {wire::Qpn{0x4000 * (i + 1)}, kQpns}}));
    End& created = *ends_.back();
    created.qp = *created.host.device().create_qp(*created.pd, {.type = options_.type,
                                                                .send_cq = created.send_cq,
                                                                .receive_cq = created.receive_cq,
                                                                .send_source = &created.sends,
                                                                .receive_source = &created.receives,
                                                                .capabilities = {.max_send_wr = 64},
                                                                .signal_all = options_.signal_all});
  }
  for (std::size_t i = 0; i < 2; ++i) bring_up(*end(i).qp, attributes(i));
}

QpAttributes PairWorld::attributes(std::size_t index) const {
  const std::array psns{wire::Psn{options_.first_psn}, wire::Psn{options_.first_psn + 0x1000}};
  const End& peer = *ends_.at(1 - index);
  QpAttributes attributes;
  attributes.path_mtu = options_.mtu;
  attributes.qkey = wire::QKey{0x11111111};
  attributes.send_psn = psns.at(index);
  attributes.receive_psn = psns.at(1 - index);
  attributes.destination = peer.qp->qpn();
  attributes.access = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kFlushGlobal;
  attributes.vector.destination = peer.host.address();
  attributes.vector.global = true;
  attributes.max_read_atomic = attributes.max_dest_read_atomic = options_.read_atomic;
  attributes.min_rnr_timer = options_.min_rnr_timer;
  attributes.timeout = options_.timeout;
  attributes.retry_count = options_.retry_count;
  attributes.rnr_retry = options_.rnr_retry;
  return attributes;
}

OwnedSend PairWorld::request(WorkOpcode opcode, const Buffer& local, std::size_t length,
                             const Buffer& remote) {
  OwnedSend send;
  send.request.opcode = opcode;
  send.request.length = length;
  send.request.remote_address = remote.address;
  send.request.rkey = wire::RKey{remote.key};
  send.sges = {{local.address, static_cast<std::uint32_t>(length), local.key}};
  return send;
}

bool PairWorld::run(Duration limit, std::uint64_t max_steps) {
  net::Simulation& simulation = network_.simulation();
  const Time end = simulation.now() + limit;
  const std::uint64_t last_step = simulation.steps() + max_steps;
  while (simulation.next() <= end && simulation.steps() < last_step && simulation.step()) {
  }
  return simulation.next() == kNever;
}

}  // namespace urxe::test
