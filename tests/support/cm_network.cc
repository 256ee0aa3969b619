#include "tests/support/cm_network.h"

#include <algorithm>
#include <array>
#include <cerrno>

namespace urxe::test {
namespace {

using verbs::rdma_cm::SocketAddress;

constexpr std::uint32_t kQpnsPerSlot = 1U << 14;

class Lease final : public verbs::DeviceLease {
 public:
  explicit Lease(std::shared_ptr<CmHost> host) : host_(std::move(host)) {}
  [[nodiscard]] verbs::HostedDevice& device() override { return *host_; }
  [[nodiscard]] std::uint64_t fabric_counter(std::string_view) override { return 0; }
  [[nodiscard]] int claim_name(const std::string& name) override {
    if (host_->refuse_names != 0) return host_->refuse_names;
    host_->names.push_back(name);
    return 0;
  }
  void release_name(const std::string& name) override { std::erase(host_->names, name); }

 private:
  std::shared_ptr<CmHost> host_;
};

// Every destination is on this network.
tl::expected<SocketAddress, int> source_on_network(const wire::IpAddress& own,
                                                   const SocketAddress& source,
                                                   const SocketAddress& destination) {
  if (destination.ip.v4() >> 8 != 0x0A0000) return tl::unexpected(ENETUNREACH);
  SocketAddress found = source;
  if (source.is_unspecified()) found.ip = own;
  return found;
}

}  // namespace

// --- hosts and their network

CmHost::CmHost(CmNetwork& network, const std::vector<wire::IpAddress>& addresses,
               std::uint32_t slot)
    : network_(network),
      device_({.node_guid = 0x100 + slot}, memory_,
              {wire::Qpn{slot * kQpnsPerSlot}, kQpnsPerSlot}) {
  device_.assign_gids(addresses);
}

void CmHost::settle(Haste) {
  publish_cm_events();
  std::array<std::uint8_t, 4160> slot;
  while (const auto outbound = device_.poll_transmit(network_.now(), slot)) {
    CmNetwork::Packet packet{.path = *outbound->path, .bytes = {}};
    packet.bytes.assign(slot.begin(), slot.begin() + static_cast<std::ptrdiff_t>(outbound->size));
    packet.bytes.resize(packet.bytes.size() + wire::kIcrcSize);
    if (network_.watch) network_.watch(packet);
    network_.in_flight_.push_back(std::move(packet));
  }
}

CmProcess::CmProcess(CmNetwork& network, const std::string& address, std::uint32_t slot)
    : devices_{{.name = "rxe0",
                .netdev = "no-such-netdev",
                .active_mtu = 4096,
                .addresses = {*wire::IpAddress::parse(address)},
                .guid = 0x100 + slot,
                .uverbs_number = 3}},
      host_(std::make_shared<CmHost>(network, devices_[0].addresses, slot)),
      agent_(std::make_shared<verbs::rdma_cm::CmAgent>(
          devices_,
          verbs::rdma_cm::AgentOptions{
              .open_device = [this](std::size_t) { return std::make_shared<Lease>(host_); },
              .find_source =
                  [this](const SocketAddress& source, const SocketAddress& destination) {
                    return source_on_network(devices_[0].addresses[0], source, destination);
                  },
              .random = [] { return 12345U; },
              .now = [&network] { return network.now(); }})),
      node_(agent_) {}

CmNetwork::CmNetwork() {
  processes_.push_back(std::make_unique<CmProcess>(*this, "10.0.0.1", 1));
  processes_.push_back(std::make_unique<CmProcess>(*this, "10.0.0.2", 2));
  hosts_[*wire::IpAddress::parse("10.0.0.1")] = &server().host();
  hosts_[*wire::IpAddress::parse("10.0.0.2")] = &client().host();
}

void CmNetwork::deliver() {
  while (!in_flight_.empty()) {
    const Packet packet = std::move(in_flight_.front());
    in_flight_.pop_front();
    const auto host = hosts_.find(packet.path.destination);
    if (loses_all || host == hosts_.end()) continue;
    host->second->access()->handle_packet(
        now_, {.path = packet.path, .bytes = packet.bytes, .icrc_is_right = true});
  }
}

void CmNetwork::run(Duration time) {
  const Time end = now_ + time;
  deliver();
  while (true) {
    Time next = kNever;
    for (const auto& [address, host] : hosts_)
      next = std::min(next, host->engine().next_deadline());
    if (next > end) break;
    now_ = std::max(now_, next);
    for (const auto& [address, host] : hosts_) host->access()->handle_timer(now_);
    deliver();
  }
  now_ = end;
}

}  // namespace urxe::test
