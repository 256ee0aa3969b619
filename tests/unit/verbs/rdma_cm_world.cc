#include "tests/unit/verbs/rdma_cm_world.h"

#include <array>

#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <poll.h>

namespace urxe::test {
namespace {

using verbs::rdma_cm::SocketAddress;

constexpr std::uint32_t kQpnsPerSlot = 1U << 14;

SocketAddress address_of(const std::string& ip, std::uint16_t port) {
  const auto parsed = wire::IpAddress::parse(ip);
  return SocketAddress::of(*parsed, port, parsed->is_v4() ? AF_INET : AF_INET6);
}

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

// --- a channel

void Channel::close() {
  if (opened_.fd >= 0) ::close(opened_.fd);
  opened_.fd = -1;
  opened_.file.reset();
}

bool Channel::is_readable() const {
  pollfd descriptor{.fd = opened_.fd, .events = POLLIN, .revents = 0};
  return poll(&descriptor, 1, 0) == 1 && (descriptor.revents & POLLIN) != 0;
}

int Channel::write_bytes(const std::vector<std::uint8_t>& bytes) {
  const auto written = opened_.file->write(bytes.data(), bytes.size());
  if (written >= 0) CHECK(static_cast<std::size_t>(written) == bytes.size());
  return written < 0 ? static_cast<int>(written) : 0;
}

std::uint32_t Channel::create(std::uint64_t uid, rdma_ucm_port_space space) {
  rdma_ucm_create_id_resp response{};
  const rdma_ucm_create_id command{.uid = uid,
                                   .response = reinterpret_cast<std::uintptr_t>(&response),
                                   .ps = static_cast<std::uint16_t>(space),
                                   .qp_type = 2};
  REQUIRE(write(RDMA_USER_CM_CMD_CREATE_ID, command, sizeof(response)) == 0);
  return response.id;
}

int Channel::destroy(std::uint32_t id) {
  rdma_ucm_destroy_id_resp response{};
  const rdma_ucm_destroy_id command{.response = reinterpret_cast<std::uintptr_t>(&response),
                                    .id = id};
  const int failed = write(RDMA_USER_CM_CMD_DESTROY_ID, command, sizeof(response));
  return failed != 0 ? failed : static_cast<int>(response.events_reported);
}

int Channel::bind(std::uint32_t id, const std::string& ip, std::uint16_t port) {
  rdma_ucm_bind command{};
  const SocketAddress address = address_of(ip, port);
  command.id = id;
  command.addr_size = static_cast<std::uint16_t>(address.size());
  address.store(&command.addr);
  return write(RDMA_USER_CM_CMD_BIND, command);
}

int Channel::listen(std::uint32_t id, std::uint32_t backlog) {
  return write(RDMA_USER_CM_CMD_LISTEN, rdma_ucm_listen{.id = id, .backlog = backlog});
}

int Channel::resolve_address(std::uint32_t id, const std::string& ip, std::uint16_t port) {
  rdma_ucm_resolve_addr command{};
  const SocketAddress address = address_of(ip, port);
  command.id = id;
  command.timeout_ms = 1000;
  command.dst_size = static_cast<std::uint16_t>(address.size());
  address.store(&command.dst_addr);
  return write(RDMA_USER_CM_CMD_RESOLVE_ADDR, command);
}

int Channel::resolve_route(std::uint32_t id) {
  return write(RDMA_USER_CM_CMD_RESOLVE_ROUTE,
               rdma_ucm_resolve_route{.id = id, .timeout_ms = 1000});
}

namespace {

void fill(rdma_ucm_conn_param& parameters, std::uint32_t qpn, const std::string& data) {
  parameters.qp_num = qpn;
  std::copy(data.begin(), data.end(), parameters.private_data);
  parameters.private_data_len = static_cast<std::uint8_t>(data.size());
  parameters.responder_resources = 4;
  parameters.initiator_depth = 3;
  parameters.retry_count = 6;
  parameters.rnr_retry_count = 5;
  parameters.valid = 1;
}

}  // namespace

int Channel::connect(std::uint32_t id, std::uint32_t qpn, const std::string& data) {
  rdma_ucm_connect command{};
  fill(command.conn_param, qpn, data);
  command.id = id;
  return write(RDMA_USER_CM_CMD_CONNECT, command);
}

int Channel::accept(std::uint32_t id, std::uint64_t uid, std::uint32_t qpn,
                    const std::string& data) {
  rdma_ucm_accept command{};
  fill(command.conn_param, qpn, data);
  command.uid = uid;
  command.id = id;
  return write(RDMA_USER_CM_CMD_ACCEPT, command);
}

int Channel::confirm(std::uint32_t id) {
  rdma_ucm_accept command{};
  command.id = id;
  return write(RDMA_USER_CM_CMD_ACCEPT, command);
}

int Channel::reject(std::uint32_t id, const std::string& data) {
  rdma_ucm_reject command{};
  command.id = id;
  std::copy(data.begin(), data.end(), command.private_data);
  command.private_data_len = static_cast<std::uint8_t>(data.size());
  return write(RDMA_USER_CM_CMD_REJECT, command);
}

int Channel::disconnect(std::uint32_t id) {
  return write(RDMA_USER_CM_CMD_DISCONNECT, rdma_ucm_disconnect{.id = id});
}

int Channel::migrate_from(const Channel& other, std::uint32_t id) {
  rdma_ucm_migrate_resp response{};
  const rdma_ucm_migrate_id command{.response = reinterpret_cast<std::uintptr_t>(&response),
                                    .id = id,
                                    .fd = static_cast<std::uint32_t>(other.fd())};
  const int failed = write(RDMA_USER_CM_CMD_MIGRATE_ID, command, sizeof(response));
  return failed != 0 ? failed : static_cast<int>(response.events_reported);
}

int Channel::init_qp(std::uint32_t id, std::uint32_t state, ib_uverbs_qp_attr& attributes) {
  const rdma_ucm_init_qp_attr command{
      .response = reinterpret_cast<std::uintptr_t>(&attributes), .id = id, .qp_state = state};
  return write(RDMA_USER_CM_CMD_INIT_QP_ATTR, command, sizeof(attributes));
}

int Channel::set_option(std::uint32_t id, std::uint32_t name,
                        const std::vector<std::uint8_t>& value) {
  const rdma_ucm_set_option command{.optval = reinterpret_cast<std::uintptr_t>(value.data()),
                                    .id = id,
                                    .level = RDMA_OPTION_ID,
                                    .optname = name,
                                    .optlen = static_cast<std::uint32_t>(value.size())};
  return write(RDMA_USER_CM_CMD_SET_OPTION, command);
}

std::optional<rdma_ucm_query_route_resp> Channel::query_route(std::uint32_t id) {
  rdma_ucm_query_route_resp response{};
  const rdma_ucm_query command{.response = reinterpret_cast<std::uintptr_t>(&response), .id = id};
  if (write(RDMA_USER_CM_CMD_QUERY_ROUTE, command, sizeof(response)) != 0) return std::nullopt;
  return response;
}

std::uint32_t Channel::resolved(std::uint64_t uid, std::uint16_t port, rdma_ucm_port_space space) {
  const std::uint32_t id = create(uid, space);
  REQUIRE(resolve_address(id, "10.0.0.1", port) == 0);
  expect(verbs::abi::CmEventType::addr_resolved);
  REQUIRE(resolve_route(id) == 0);
  expect(verbs::abi::CmEventType::route_resolved);
  return id;
}

tl::expected<rdma_ucm_event_resp, int> Channel::event() {
  if (!is_readable()) return tl::unexpected(-EAGAIN);
  rdma_ucm_event_resp response{};
  const rdma_ucm_get_event command{.response = reinterpret_cast<std::uintptr_t>(&response)};
  const int failed = write(RDMA_USER_CM_CMD_GET_EVENT, command, sizeof(response));
  if (failed != 0) return tl::unexpected(failed);
  return response;
}

rdma_ucm_event_resp Channel::expect(verbs::abi::CmEventType type) {
  const auto got = event();
  REQUIRE(got);
  REQUIRE(got->event == static_cast<std::uint32_t>(type));
  return *got;
}

}  // namespace urxe::test
