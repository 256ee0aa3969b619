// rdma_cm as librdmacm uses it: the commands, their events, what is left behind.
#include <algorithm>
#include <ctime>
#include <set>
#include <vector>

#include <catch2/catch.hpp>
#include <endian.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>

#include "net/random.h"
#include "tests/support/skip.h"
#include "tests/unit/verbs/rdma_cm_world.h"
#include "verbs/runtime/fault_guard.h"

namespace urxe::verbs {
namespace {

using abi::CmEventType;
using test::Channel;
using test::CmNetwork;
using namespace std::chrono_literals;

struct Pair {
  CmNetwork network;
  Channel server{network.server()};
  Channel client{network.client()};

  std::uint32_t listening(rdma_ucm_port_space space = RDMA_PS_TCP) {
    const std::uint32_t id = server.create(100, space);
    REQUIRE(server.bind(id, "10.0.0.1", 7000) == 0);
    REQUIRE(server.listen(id) == 0);
    return id;
  }
  struct Ends {
    std::uint32_t client;
    std::uint32_t server;
  };
  Ends established() {
    const std::uint32_t id = client.resolved(1, 7000);
    REQUIRE(client.connect(id, 0x8001, "hello") == 0);
    network.run();
    const auto request = server.expect(CmEventType::connect_request);
    REQUIRE(server.accept(request.id, 200, 0x4001, "welcome") == 0);
    network.run();
    client.expect(CmEventType::connect_response);
    REQUIRE(client.confirm(id) == 0);
    network.run();
    server.expect(CmEventType::established);
    return {id, request.id};
  }
};

TEST_CASE("a connection is made, used and ended as librdmacm does it") {
  Pair pair;
  const std::uint32_t listener = pair.listening();
  const std::uint32_t id = pair.client.resolved(1, 7000);
  REQUIRE(pair.client.connect(id, 0x8001, "hello") == 0);
  pair.network.run();
  const auto request = pair.server.expect(CmEventType::connect_request);
  CHECK(request.uid == 100);
  CHECK(request.id != listener);
  const auto& wanted = request.param.conn;
  CHECK(std::string(reinterpret_cast<const char*>(wanted.private_data)) == "hello");
  CHECK(wanted.private_data_len == 56);
  CHECK(wanted.qp_num == 0x8001);
  CHECK(wanted.responder_resources == 3);  // what the client wants to have outstanding
  CHECK(wanted.initiator_depth == 4);
  CHECK(wanted.retry_count == 6);
  CHECK(wanted.rnr_retry_count == 5);

  REQUIRE(pair.server.accept(request.id, 200, 0x4001, "welcome") == 0);
  pair.network.run();
  const auto response = pair.client.expect(CmEventType::connect_response);
  CHECK(response.uid == 1);
  CHECK(std::string(reinterpret_cast<const char*>(response.param.conn.private_data)) == "welcome");
  CHECK(response.param.conn.private_data_len == 196);
  CHECK(response.param.conn.qp_num == 0x4001);
  REQUIRE(pair.client.confirm(id) == 0);
  pair.network.run();
  CHECK(pair.server.expect(CmEventType::established).uid == 200);

  REQUIRE(pair.client.disconnect(id) == 0);
  pair.network.run();
  CHECK(pair.server.expect(CmEventType::disconnected).uid == 200);
  REQUIRE(pair.server.disconnect(request.id) == 0);
  pair.network.run();
  CHECK(pair.client.expect(CmEventType::disconnected).status == 0);
  pair.network.run(5s);
  pair.client.expect(CmEventType::timewait_exit);
  pair.server.expect(CmEventType::timewait_exit);
  CHECK(pair.client.destroy(id) == 5);
  CHECK(pair.server.destroy(request.id) == 3);
  CHECK(pair.server.destroy(listener) == 1);
  CHECK(pair.network.server().agent().identifiers() == 0);
  CHECK(pair.network.server().host().names.empty());
  CHECK(pair.network.server().host().engine().cm().listeners() == 0);
  CHECK(pair.network.server().host().engine().cm().connections() == 0);
  CHECK(pair.network.client().host().engine().cm().connections() == 0);
}

TEST_CASE("both ends' queue pairs get the attributes and masks that the kernel gives") {
  Pair pair;
  pair.listening();
  const std::uint32_t fresh = pair.client.resolved(9, 7000);
  ib_uverbs_qp_attr attributes{};
  REQUIRE(pair.client.init_qp(fresh, 1, attributes) == 0);
  CHECK(attributes.qp_attr_mask == (1U << 0 | 1U << 3 | 1U << 4 | 1U << 5));
  CHECK(attributes.port_num == 1);
  CHECK(pair.client.destroy(fresh) == 2);

  const auto ends = pair.established();
  REQUIRE(pair.client.init_qp(ends.client, 2, attributes) == 0);
  CHECK(attributes.qp_attr_mask ==
        (1U << 0 | 1U << 7 | 1U << 8 | 1U << 12 | 1U << 15 | 1U << 17 | 1U << 20));
  CHECK(attributes.dest_qp_num == 0x4001);
  CHECK(attributes.path_mtu == 5);
  CHECK(attributes.max_dest_rd_atomic == 3);
  CHECK(attributes.ah_attr.is_global == 1);
  CHECK(attributes.ah_attr.grh.dgid[15] == 1);
  CHECK(attributes.rq_psn == 12345);
  REQUIRE(pair.client.init_qp(ends.client, 3, attributes) == 0);
  CHECK(attributes.qp_attr_mask == (1U << 0 | 1U << 9 | 1U << 10 | 1U << 11 | 1U << 13 | 1U << 16));
  CHECK(attributes.timeout == 19);
  CHECK(attributes.sq_psn == 12345);
  CHECK(pair.client.init_qp(ends.client, 5, attributes) == -EINVAL);
  CHECK(pair.client.init_qp(ends.client, 99, attributes) == -EINVAL);
}

TEST_CASE("a route shows addresses, GIDs and the device") {
  Pair pair;
  const std::uint32_t id = pair.client.create(1);
  auto route = pair.client.query_route(id);
  REQUIRE(route);
  CHECK(route->node_guid == 0);
  REQUIRE(pair.client.resolve_address(id, "10.0.0.1", 7000) == 0);
  REQUIRE(pair.client.resolve_route(id) == 0);
  route = pair.client.query_route(id);
  REQUIRE(route);
  CHECK(route->node_guid == htobe64(0x102));
  CHECK(route->port_num == 1);
  CHECK(route->num_paths == 1);
  sockaddr_in source{};
  std::memcpy(&source, &route->src_addr, sizeof(source));
  CHECK(ntohl(source.sin_addr.s_addr) == 0x0A000002);
  CHECK(ntohs(source.sin_port) >= 32768);
  CHECK(route->ib_route[0].dgid[15] == 1);
  CHECK(route->ib_route[0].sgid[15] == 2);
  CHECK(route->ib_route[0].mtu == 5);
  CHECK(route->ib_route[0].packet_life_time == 18);
  CHECK(route->ib_route[0].pkey == 0xFFFF);
}

TEST_CASE("the descriptor is readable exactly while events wait") {
  Pair pair;
  CHECK_FALSE(pair.client.is_readable());
  const std::uint32_t id = pair.client.create(1);
  REQUIRE(pair.client.resolve_address(id, "10.0.0.1", 7000) == 0);
  CHECK(pair.client.is_readable());
  REQUIRE(pair.client.resolve_route(id) == 0);
  pair.client.expect(CmEventType::addr_resolved);
  CHECK(pair.client.is_readable());
  pair.client.expect(CmEventType::route_resolved);
  CHECK_FALSE(pair.client.is_readable());
}

TEST_CASE("a channel without events says EAGAIN, whether non-blocking from the start or since") {
  CmNetwork network;
  rdma_ucm_event_resp response{};
  const rdma_ucm_get_event command{.response = reinterpret_cast<std::uintptr_t>(&response)};
  Channel from_start(network.client(), O_NONBLOCK);
  CHECK(from_start.write(RDMA_USER_CM_CMD_GET_EVENT, command, sizeof(response)) == -EAGAIN);
  Channel since(network.client());
  REQUIRE(fcntl(since.fd(), F_SETFL, O_NONBLOCK) == 0);
  CHECK(since.write(RDMA_USER_CM_CMD_GET_EVENT, command, sizeof(response)) == -EAGAIN);
}

TEST_CASE("a rejection comes with its reason and private data") {
  Pair pair;
  pair.listening();
  const std::uint32_t id = pair.client.resolved(1, 7000);
  REQUIRE(pair.client.connect(id, 1) == 0);
  pair.network.run();
  const auto request = pair.server.expect(CmEventType::connect_request);
  REQUIRE(pair.server.reject(request.id, "no") == 0);
  pair.network.run();
  const auto event = pair.client.expect(CmEventType::rejected);
  CHECK(event.status == 28);
  CHECK(event.param.conn.private_data_len == 148);
  CHECK(event.param.conn.private_data[0] == 'n');
  const std::uint32_t other = pair.client.resolved(2, 7001);
  REQUIRE(pair.client.connect(other, 2) == 0);
  pair.network.run();
  CHECK(pair.client.expect(CmEventType::rejected).status == 8);
}

TEST_CASE("a server that is not there is unreachable, after all retries") {
  Pair pair;
  pair.network.loses_all = true;
  const std::uint32_t id = pair.client.resolved(1, 7000);
  REQUIRE(pair.client.connect(id, 1) == 0);
  pair.network.run(97s);
  CHECK_FALSE(pair.client.is_readable());
  pair.network.run(3s);
  CHECK(pair.client.expect(CmEventType::unreachable).status ==
        static_cast<std::uint32_t>(-ETIMEDOUT));
}

TEST_CASE("an address without a way fails at once, one of another device by an event") {
  Pair pair;
  const std::uint32_t id = pair.client.create(1);
  CHECK(pair.client.resolve_address(id, "192.0.2.1", 1) == -ENETUNREACH);
  CHECK(pair.client.bind(pair.client.create(2), "10.0.0.9", 1) == -EADDRNOTAVAIL);
  CHECK(pair.client.resolve_route(id) == -EINVAL);
  CHECK(pair.client.resolve_address(id, "10.0.0.1", 1) == 0);
  CHECK(pair.client.resolve_address(id, "10.0.0.1", 1) == -EINVAL);  // it is resolved
}

TEST_CASE("a port has one listener, unless addresses differ or all allow reuse") {
  Pair pair;
  pair.listening();
  const std::uint32_t same = pair.server.create(2);
  CHECK(pair.server.bind(same, "10.0.0.1", 7000) == -EADDRINUSE);
  CHECK(pair.server.bind(same, "0.0.0.0", 7000) == -EADDRNOTAVAIL);
  CHECK(pair.server.bind(same, "10.0.0.1", 7001) == 0);
  const std::uint32_t of_udp = pair.server.create(3, RDMA_PS_UDP);
  CHECK(pair.server.bind(of_udp, "10.0.0.1", 7000) == 0);
  const std::vector<std::uint8_t> yes{1, 0, 0, 0};
  const std::uint32_t first = pair.server.create(4);
  const std::uint32_t second = pair.server.create(5);
  REQUIRE(pair.server.set_option(first, RDMA_OPTION_ID_REUSEADDR, yes) == 0);
  REQUIRE(pair.server.set_option(second, RDMA_OPTION_ID_REUSEADDR, yes) == 0);
  CHECK(pair.server.bind(first, "10.0.0.1", 7002) == 0);
  CHECK(pair.server.bind(second, "10.0.0.1", 7002) == 0);
  CHECK(pair.server.listen(first) == -EADDRINUSE);
  pair.server.destroy(second);
  CHECK(pair.server.listen(first) == 0);
}

TEST_CASE("a service that another process has is refused, and nothing of it stays") {
  Pair pair;
  pair.network.server().host().refuse_names = EADDRINUSE;
  const std::uint32_t id = pair.server.create(1);
  REQUIRE(pair.server.bind(id, "0.0.0.0", 7000) == 0);
  CHECK(pair.server.listen(id) == -EADDRINUSE);
  CHECK(pair.network.server().host().engine().cm().listeners() == 0);
  pair.network.server().host().refuse_names = 0;
  CHECK(pair.server.listen(id) == 0);
  CHECK(pair.network.server().host().names.size() == 1);
}

TEST_CASE("whoever is bound to a device that goes away is told, and can only be destroyed") {
  Pair pair;
  const std::uint32_t listener = pair.listening();
  const std::uint32_t everywhere = pair.server.create(101);
  REQUIRE(pair.server.bind(everywhere, "0.0.0.0", 7001) == 0);
  REQUIRE(pair.server.listen(everywhere) == 0);
  const auto ends = pair.established();
  pair.network.server().host().report_removal();
  pair.network.run();
  std::set<std::uint64_t> told{pair.server.expect(CmEventType::device_removal).uid,
                               pair.server.expect(CmEventType::device_removal).uid};
  CHECK(told == std::set<std::uint64_t>{100, 200});
  CHECK_FALSE(pair.server.is_readable());  // who listens on all devices still does
  CHECK(pair.client.expect(CmEventType::disconnected).uid == 1);

  CHECK(pair.server.disconnect(ends.server) == -ENXIO);
  CHECK(pair.server.listen(listener) == -ENXIO);
  // The device has come back, and the service is free although its listener was not destroyed yet.
  const std::uint32_t next = pair.server.create(102);
  REQUIRE(pair.server.bind(next, "10.0.0.1", 7000) == 0);
  REQUIRE(pair.server.listen(next) == 0);
  CHECK(pair.server.destroy(ends.server) == 2);
  CHECK(pair.server.destroy(listener) == 2);
  CHECK(pair.server.destroy(everywhere) == 0);
  CHECK(pair.server.destroy(next) == 0);
  CHECK(pair.network.server().host().names.empty());
  CHECK(pair.network.server().host().engine().cm().listeners() == 0);
  pair.network.run(5s);
  CHECK(pair.network.server().host().engine().cm().connections() == 0);
}

TEST_CASE("a request that waits when its device goes away cannot be accepted") {
  Pair pair;
  pair.listening();
  const std::uint32_t id = pair.client.resolved(1, 7000);
  REQUIRE(pair.client.connect(id, 1) == 0);
  pair.network.run();
  pair.network.server().host().report_removal();
  pair.network.run();
  CHECK(pair.client.expect(CmEventType::rejected).status == 28);
  const auto request = pair.server.expect(CmEventType::connect_request);
  CHECK(pair.server.accept(request.id, 200, 1) == -ENXIO);
  pair.server.expect(CmEventType::device_removal);
  CHECK_FALSE(pair.server.is_readable());
}

TEST_CASE("another link address is told to all that are bound to the device, and changes nothing") {
  Pair pair;
  pair.listening();
  const auto ends = pair.established();
  pair.network.server().host().report_link_address();
  std::set<std::uint64_t> told{pair.server.expect(CmEventType::addr_change).uid,
                               pair.server.expect(CmEventType::addr_change).uid};
  CHECK(told == std::set<std::uint64_t>{100, 200});
  CHECK_FALSE(pair.server.is_readable());
  REQUIRE(pair.client.disconnect(ends.client) == 0);
  pair.network.run();
  pair.server.expect(CmEventType::disconnected);
}

TEST_CASE("connections that wait at a listener go with it") {
  Pair pair;
  const std::uint32_t listener = pair.listening();
  const std::uint32_t id = pair.client.resolved(1, 7000);
  REQUIRE(pair.client.connect(id, 1) == 0);
  pair.network.run();
  CHECK(pair.server.destroy(listener) == 0);
  pair.network.run();
  CHECK(pair.client.expect(CmEventType::rejected).status == 28);
  CHECK(pair.network.server().agent().identifiers() == 0);
  CHECK_FALSE(pair.server.is_readable());
}

TEST_CASE("closing a channel ends its connections") {
  Pair pair;
  pair.listening();
  pair.established();
  pair.client.close();
  pair.network.run();
  pair.server.expect(CmEventType::disconnected);
  CHECK(pair.network.client().agent().identifiers() == 0);
}

// In processor time, which the load of the machine hardly changes. A look at every event for every
// identifier took 16 s, what is done now some 10 ms.
TEST_CASE("a channel with 20000 identifiers and as many unread events is closed quickly") {
  constexpr int kMany = 20'000;
  constexpr double kSeconds = 1;
  CmNetwork network;
  Channel client(network.client());
  std::vector<std::uint32_t> ids;
  for (int i = 0; i < kMany; ++i) {
    ids.push_back(client.create(1));
    REQUIRE(client.resolve_address(ids.back(), "10.0.0.1", 7174) == 0);
  }
  const std::clock_t start = std::clock();
  SECTION("all at once") { client.close(); }
  SECTION("one by one, the latest first") {
    std::for_each(ids.rbegin(), ids.rend(),
                  [&](std::uint32_t id) { CHECK(client.destroy(id) == 0); });
    CHECK_FALSE(client.is_readable());
  }
  CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < kSeconds);
  CHECK(network.client().agent().identifiers() == 0);
}

TEST_CASE("an identifier that is destroyed takes its events along, and others' stay in order") {
  CmNetwork network;
  Channel client(network.client());
  std::vector<std::uint32_t> ids;
  for (std::uint64_t uid = 1; uid <= 3; ++uid) {
    ids.push_back(client.create(uid));
    REQUIRE(client.resolve_address(ids.back(), "10.0.0.1", 7174) == 0);
  }
  for (const std::uint32_t id : ids) REQUIRE(client.resolve_route(id) == 0);
  CHECK(client.expect(CmEventType::addr_resolved).id == ids[0]);
  CHECK(client.destroy(ids[1]) == 0);
  CHECK(client.expect(CmEventType::addr_resolved).id == ids[2]);
  CHECK(client.expect(CmEventType::route_resolved).id == ids[0]);
  CHECK(client.expect(CmEventType::route_resolved).id == ids[2]);
  CHECK_FALSE(client.is_readable());
}

TEST_CASE("the end of a process ends its connections") {
  Pair pair;
  pair.listening();
  pair.established();
  pair.network.client().agent().end();
  pair.network.run();
  pair.server.expect(CmEventType::disconnected);
}

TEST_CASE("an identifier moves to another channel with the events that wait") {
  Pair pair;
  pair.listening();
  const auto ends = pair.established();
  REQUIRE(pair.client.disconnect(ends.client) == 0);
  pair.network.run();
  Channel other(pair.network.server());
  CHECK(other.migrate_from(pair.server, ends.server) == 1);
  CHECK_FALSE(pair.server.is_readable());
  other.expect(CmEventType::disconnected);
  CHECK(pair.server.disconnect(ends.server) == -EINVAL);
  CHECK(other.disconnect(ends.server) == 0);
  CHECK(other.migrate_from(pair.server, ends.server) == -EINVAL);
  CHECK(other.migrate_from(pair.server, 4711) == -ENOENT);
}

TEST_CASE("a UD service is found with its queue pair and Q_Key") {
  Pair pair;
  pair.listening(RDMA_PS_UDP);
  const std::uint32_t id = pair.client.resolved(1, 7000, RDMA_PS_UDP);
  ib_uverbs_qp_attr attributes{};
  REQUIRE(pair.client.init_qp(id, 1, attributes) == 0);
  CHECK(attributes.qkey == 0x01234567);
  CHECK(attributes.qp_attr_mask == (1U << 0 | 1U << 4 | 1U << 5 | 1U << 6));
  REQUIRE(pair.client.connect(id, 0x8001, "who") == 0);
  pair.network.run();
  const auto request = pair.server.expect(CmEventType::connect_request);
  CHECK(request.param.ud.private_data_len == 180);
  CHECK(request.param.ud.private_data[0] == 'w');
  REQUIRE(pair.server.accept(request.id, 200, 0x4001, "me") == 0);
  pair.network.run();
  const auto found = pair.client.expect(CmEventType::established);
  CHECK(found.param.ud.qp_num == 0x4001);
  CHECK(found.param.ud.qkey == 0x01234567);
  CHECK(found.param.ud.private_data_len == 136);
  CHECK(found.param.ud.ah_attr.is_global == 1);
  CHECK(found.param.ud.ah_attr.grh.dgid[15] == 1);
}

TEST_CASE("a multicast group is joined at once, by its address") {
  Pair pair;
  const std::uint32_t id = pair.client.create(1, RDMA_PS_UDP);
  REQUIRE(pair.client.bind(id, "10.0.0.2", 0) == 0);
  rdma_ucm_create_id_resp response{};
  rdma_ucm_join_mcast command{};
  command.response = reinterpret_cast<std::uintptr_t>(&response);
  command.uid = 77;
  command.id = id;
  const auto group = rdma_cm::SocketAddress::of(*wire::IpAddress::parse("239.0.0.5"), 0, AF_INET);
  command.addr_size = static_cast<std::uint16_t>(group.size());
  group.store(&command.addr);
  REQUIRE(pair.client.write(RDMA_USER_CM_CMD_JOIN_MCAST, command, sizeof(response)) == 0);
  const auto event = pair.client.expect(CmEventType::multicast_join);
  CHECK(event.uid == 77);
  CHECK(event.id == response.id);
  CHECK(event.param.ud.qp_num == 0xFFFFFF);
  CHECK(event.param.ud.ah_attr.grh.dgid[12] == 239);
  rdma_ucm_destroy_id_resp left{};
  const rdma_ucm_destroy_id leave{.response = reinterpret_cast<std::uintptr_t>(&left),
                                  .id = response.id};
  CHECK(pair.client.write(RDMA_USER_CM_CMD_LEAVE_MCAST, leave, sizeof(left)) == 0);
  CHECK(left.events_reported == 1);
  CHECK(pair.client.write(RDMA_USER_CM_CMD_LEAVE_MCAST, leave, sizeof(left)) == -ENOENT);
}

TEST_CASE("commands that are cut off, unknown, or of bad addresses get the kernel's errno") {
  CmNetwork network;
  Channel channel(network.client());
  CHECK(channel.write_bytes({1, 2, 3}) == -EINVAL);
  CHECK(channel.write(99, rdma_ucm_listen{}) == -EINVAL);
  CHECK(channel.write(RDMA_USER_CM_CMD_GET_OPTION, rdma_ucm_listen{}) == -ENOSYS);
  CHECK(channel.listen(4711) == -ENOENT);
  CHECK(channel.write(RDMA_USER_CM_CMD_CREATE_ID, rdma_ucm_create_id{.ps = RDMA_PS_TCP}) ==
        -ENOSPC);
  CHECK(channel.write(RDMA_USER_CM_CMD_CREATE_ID, rdma_ucm_create_id{.ps = 1}, 4) == -EINVAL);
  std::vector<std::uint8_t> lying(sizeof(rdma_ucm_cmd_hdr));
  const rdma_ucm_cmd_hdr header{.cmd = RDMA_USER_CM_CMD_LISTEN, .in = 8, .out = 0};
  std::memcpy(lying.data(), &header, sizeof(header));
  CHECK(channel.write_bytes(lying) == -EINVAL);
}

// Every command with every field drawn: no crash, nothing that is not cleaned up.
TEST_CASE("commands of nonsense do no harm") {
#ifdef __SANITIZE_THREAD__
  return test::skip("TSan keeps SIGSEGV for itself");
#endif
  REQUIRE(FaultGuard::arm(&::sigaction));
  net::Random random(7);
  for (int round = 0; round < 20; ++round) {
    CmNetwork network;
    Channel channel(network.client(), O_NONBLOCK);
    Channel peer(network.server(), O_NONBLOCK);
    // As long as an option may be: the program says where it lies, and all of it is read.
    std::vector<std::uint8_t> response(8192);
    for (int i = 0; i < 1000; ++i) {
      std::vector<std::uint8_t> bytes(sizeof(rdma_ucm_cmd_hdr) + 300);
      for (auto& byte : bytes) {
        byte = static_cast<std::uint8_t>(random.chance(0.8) ? 0 : random.below(8));
      }
      const rdma_ucm_cmd_hdr header{.cmd = static_cast<std::uint32_t>(random.below(24)),
                                    .in = static_cast<std::uint16_t>(random.below(301)),
                                    .out = static_cast<std::uint16_t>(random.below(340))};
      std::memcpy(bytes.data(), &header, sizeof(header));
      const auto address = reinterpret_cast<std::uintptr_t>(response.data());
      // Where the command has no response, this is but another number.
      const bool has_two = header.cmd == RDMA_USER_CM_CMD_CREATE_ID;
      std::memcpy(bytes.data() + sizeof(header) + (has_two ? 8 : 0), &address, sizeof(address));
      if (header.cmd == RDMA_USER_CM_CMD_SET_OPTION || header.cmd == RDMA_USER_CM_CMD_BIND ||
          header.cmd == RDMA_USER_CM_CMD_RESOLVE_ADDR) {
        const std::uint16_t family = random.chance(0.5) ? AF_INET : AF_INET6;
        std::memcpy(bytes.data() + sizeof(header) + 8, &family, sizeof(family));
      }
      Channel& to = random.chance(0.7) ? channel : peer;
      static_cast<void>(to.write_bytes(bytes));
      if (random.chance(0.1)) network.run(1ms);
    }
    channel.close();
    peer.close();
    network.run(200s);
    REQUIRE(network.client().agent().identifiers() == 0);
    REQUIRE(network.server().agent().identifiers() == 0);
    REQUIRE(network.client().host().engine().cm().connections() == 0);
    REQUIRE(network.client().host().names.empty());
  }
}

}  // namespace
}  // namespace urxe::verbs
