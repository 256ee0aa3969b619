#include "tests/unit/verbs/rdma_cm_world.h"

#include <algorithm>

#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

namespace urxe::test {
namespace {

using verbs::rdma_cm::SocketAddress;

SocketAddress address_of(const std::string& ip, std::uint16_t port) {
  const auto parsed = wire::IpAddress::parse(ip);
  return SocketAddress::of(*parsed, port, parsed->is_v4() ? AF_INET : AF_INET6);
}

}  // namespace

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
