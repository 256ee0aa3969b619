// Every command of rdma_cm with every field wrong in turn, and cut off at every length.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>

#include "tests/support/golden_text.h"
#include "tests/unit/verbs/rdma_cm_world.h"
#include "tests/unit/verbs/sweep.h"

namespace urxe::test {
namespace {

using verbs::abi::CmEventType;
using verbs::rdma_cm::SocketAddress;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint16_t kPort = 7000;

// What the request of a command looks like, in a world that is ready for it.
struct World {
  CmNetwork network;
  Channel server{network.server(), O_NONBLOCK};
  Channel client{network.client(), O_NONBLOCK};
  alignas(8) std::array<std::uint8_t, 4096> response{};

  [[nodiscard]] std::uint64_t answer() const {
    return reinterpret_cast<std::uintptr_t>(response.data());
  }
  [[nodiscard]] std::uint32_t bound() {
    const std::uint32_t id = client.create(1);
    REQUIRE(client.bind(id, "10.0.0.2", kPort) == 0);
    return id;
  }
  [[nodiscard]] std::uint32_t address_resolved() {
    const std::uint32_t id = client.create(1);
    REQUIRE(client.resolve_address(id, "10.0.0.1", kPort) == 0);
    return id;
  }
  // A request that waits at the server.
  [[nodiscard]] std::uint32_t requested() {
    const std::uint32_t listener = server.create(100);
    REQUIRE(server.bind(listener, "10.0.0.1", kPort) == 0);
    REQUIRE(server.listen(listener) == 0);
    connecting = client.resolved(1, kPort);
    REQUIRE(client.connect(connecting, 0x8001) == 0);
    network.run();
    return server.expect(CmEventType::connect_request).id;
  }
  [[nodiscard]] std::uint32_t replied() {
    const std::uint32_t id = requested();
    REQUIRE(server.accept(id, 200, 0x4001) == 0);
    return id;
  }
  [[nodiscard]] std::uint32_t established() {
    const std::uint32_t id = replied();
    network.run();
    client.expect(CmEventType::connect_response);
    REQUIRE(client.confirm(connecting) == 0);
    network.run();
    return id;
  }
  std::uint32_t connecting = 0;
};

struct Case {
  const char* name;
  std::uint32_t number;
  std::function<Bytes(World&)> request;  // that is taken
  std::size_t response_size = 0;
  // Bytes that are an address of memory, or private data.
  std::size_t skip_from = 0;
  std::size_t skip_to = 0;
  bool by_server = false;
};

template <typename Request>
Bytes bytes_of(const Request& request) {
  Bytes bytes(sizeof(request));
  std::memcpy(bytes.data(), &request, sizeof(request));
  return bytes;
}

SocketAddress address_of(const char* ip, std::uint16_t port) {
  return SocketAddress::of(*wire::IpAddress::parse(ip), port, AF_INET);
}

Bytes bind(World& world) {
  rdma_ucm_bind request{};
  request.id = world.client.create(1);
  const SocketAddress address = address_of("10.0.0.2", kPort);
  request.addr_size = static_cast<std::uint16_t>(address.size());
  address.store(&request.addr);
  return bytes_of(request);
}

Bytes bind_ip(World& world) {
  rdma_ucm_bind_ip request{};
  request.response = world.answer();
  request.id = world.client.create(1);
  address_of("10.0.0.2", kPort).store(&request.addr);
  return bytes_of(request);
}

Bytes resolve_ip(World& world) {
  rdma_ucm_resolve_ip request{};
  request.id = world.client.create(1);
  request.timeout_ms = 1000;
  address_of("10.0.0.1", kPort).store(&request.dst_addr);
  return bytes_of(request);
}

Bytes resolve_address(World& world) {
  rdma_ucm_resolve_addr request{};
  request.id = world.client.create(1);
  request.timeout_ms = 1000;
  const SocketAddress address = address_of("10.0.0.1", kPort);
  request.dst_size = static_cast<std::uint16_t>(address.size());
  address.store(&request.dst_addr);
  return bytes_of(request);
}

void fill(rdma_ucm_conn_param& parameters) {
  parameters.qp_num = 0x4001;
  parameters.responder_resources = parameters.initiator_depth = 4;
  parameters.retry_count = parameters.rnr_retry_count = 7;
  parameters.valid = 1;
}

Bytes connect(World& world) {
  rdma_ucm_connect request{};
  fill(request.conn_param);
  request.id = world.client.resolved(1, kPort);
  return bytes_of(request);
}

Bytes accept(World& world) {
  rdma_ucm_accept request{};
  fill(request.conn_param);
  request.uid = 200;
  request.id = world.requested();
  return bytes_of(request);
}

template <typename Request>
Bytes join(World& world) {
  Request request{};
  request.response = world.answer();
  request.uid = 77;
  request.id = world.client.create(1, RDMA_PS_UDP);
  REQUIRE(world.client.bind(request.id, "10.0.0.2", 0) == 0);
  const SocketAddress group = address_of("239.0.0.5", 0);
  if constexpr (std::is_same_v<Request, rdma_ucm_join_mcast>) {
    request.addr_size = static_cast<std::uint16_t>(group.size());
  }
  group.store(&request.addr);
  return bytes_of(request);
}

Bytes leave(World& world) {
  const Bytes joined = join<rdma_ucm_join_mcast>(world);
  rdma_ucm_join_mcast command{};
  std::memcpy(&command, joined.data(), sizeof(command));
  REQUIRE(world.client.write(RDMA_USER_CM_CMD_JOIN_MCAST, command, sizeof(std::uint32_t)) == 0);
  rdma_ucm_destroy_id request{};
  request.response = world.answer();
  std::memcpy(&request.id, world.response.data(), sizeof(request.id));
  return bytes_of(request);
}

Bytes set_option(World& world) {
  rdma_ucm_set_option request{};
  request.optval = world.answer();
  request.id = world.client.create(1);
  request.level = RDMA_OPTION_ID;
  request.optname = RDMA_OPTION_ID_TOS;
  request.optlen = 1;
  return bytes_of(request);
}

std::vector<Case> address_cases() {
  return {
      {"CREATE_ID", RDMA_USER_CM_CMD_CREATE_ID,
       [](World& world) {
         return bytes_of(rdma_ucm_create_id{
             .uid = 1, .response = world.answer(), .ps = RDMA_PS_TCP, .qp_type = 2});
       },
       4, 8, 16},
      {"DESTROY_ID", RDMA_USER_CM_CMD_DESTROY_ID,
       [](World& world) {
         return bytes_of(rdma_ucm_destroy_id{
             .response = world.answer(), .id = world.client.create(1), .reserved = 0});
       },
       4, 0, 8},
      {"BIND_IP", RDMA_USER_CM_CMD_BIND_IP, bind_ip, 0, 0, 8},
      {"BIND", RDMA_USER_CM_CMD_BIND, bind, 0, 40, 136},
      {"RESOLVE_IP", RDMA_USER_CM_CMD_RESOLVE_IP, resolve_ip},
      {"RESOLVE_ADDR", RDMA_USER_CM_CMD_RESOLVE_ADDR, resolve_address},
      {"RESOLVE_ROUTE", RDMA_USER_CM_CMD_RESOLVE_ROUTE,
       [](World& world) {
         return bytes_of(
             rdma_ucm_resolve_route{.id = world.address_resolved(), .timeout_ms = 1000});
       }},
      {"QUERY_ROUTE", RDMA_USER_CM_CMD_QUERY_ROUTE,
       [](World& world) {
         return bytes_of(rdma_ucm_query{
             .response = world.answer(), .id = world.client.resolved(1, kPort), .option = 0});
       },
       sizeof(rdma_ucm_query_route_resp), 0, 8},
      {"QUERY", RDMA_USER_CM_CMD_QUERY,
       [](World& world) {
         return bytes_of(rdma_ucm_query{
             .response = world.answer(), .id = world.client.resolved(1, kPort), .option = 0});
       },
       1024, 0, 8},
      {"SET_OPTION", RDMA_USER_CM_CMD_SET_OPTION, set_option, 0, 0, 8},
      {"JOIN_IP_MCAST", RDMA_USER_CM_CMD_JOIN_IP_MCAST, join<rdma_ucm_join_ip_mcast>, 4, 0, 8},
      {"JOIN_MCAST", RDMA_USER_CM_CMD_JOIN_MCAST, join<rdma_ucm_join_mcast>, 4, 0, 8},
      {"LEAVE_MCAST", RDMA_USER_CM_CMD_LEAVE_MCAST, leave, 4, 0, 8},
  };
}

std::vector<Case> connection_cases() {
  constexpr std::size_t kPrivate = sizeof(rdma_ucm_conn_param::private_data);
  return {
      {"LISTEN", RDMA_USER_CM_CMD_LISTEN,
       [](World& world) { return bytes_of(rdma_ucm_listen{.id = world.bound(), .backlog = 4}); }},
      {"CONNECT", RDMA_USER_CM_CMD_CONNECT, connect, 0, 8, 8 + kPrivate},
      {"ACCEPT", RDMA_USER_CM_CMD_ACCEPT, accept, 0, 16, 16 + kPrivate, true},
      {"REJECT", RDMA_USER_CM_CMD_REJECT,
       [](World& world) {
         rdma_ucm_reject request{};
         request.id = world.requested();
         return bytes_of(request);
       },
       0, 8, 8 + kPrivate, true},
      {"DISCONNECT", RDMA_USER_CM_CMD_DISCONNECT,
       [](World& world) { return bytes_of(rdma_ucm_disconnect{.id = world.established()}); }, 0, 0,
       0, true},
      {"INIT_QP_ATTR", RDMA_USER_CM_CMD_INIT_QP_ATTR,
       [](World& world) {
         return bytes_of(rdma_ucm_init_qp_attr{
             .response = world.answer(), .id = world.established(), .qp_state = 3});
       },
       sizeof(ib_uverbs_qp_attr), 0, 8, true},
      {"NOTIFY", RDMA_USER_CM_CMD_NOTIFY,
       [](World& world) { return bytes_of(rdma_ucm_notify{.id = world.replied(), .event = 4}); }, 0,
       0, 0, true},
      {"MIGRATE_ID", RDMA_USER_CM_CMD_MIGRATE_ID,
       [](World& world) {
         return bytes_of(rdma_ucm_migrate_id{.response = world.answer(),
                                             .id = world.client.create(1),
                                             .fd = static_cast<std::uint32_t>(world.client.fd())});
       },
       4, 0, 8},
      {"GET_EVENT", RDMA_USER_CM_CMD_GET_EVENT,
       [](World& world) {
         static_cast<void>(world.address_resolved());
         return bytes_of(rdma_ucm_get_event{.response = world.answer()});
       },
       sizeof(rdma_ucm_event_resp), 0, 8},
  };
}

// Runs a request in a world of its own, where nothing may be left. 0 or a negative errno.
int attempt(const Case& test, std::size_t response_size, const std::function<void(Bytes&)>& spoil) {
  World world;
  Bytes request = test.request(world);
  spoil(request);
  const rdma_ucm_cmd_hdr header{.cmd = test.number,
                                .in = static_cast<std::uint16_t>(request.size()),
                                .out = static_cast<std::uint16_t>(response_size)};
  Bytes bytes(sizeof(header) + request.size());
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::copy(request.begin(), request.end(), bytes.begin() + sizeof(header));
  const int result = (test.by_server ? world.server : world.client).write_bytes(bytes);
  CHECK(result <= 0);
  CHECK(result > -kErrnos);
  world.client.close();
  world.server.close();
  world.network.run(std::chrono::seconds(200));
  for (CmProcess* process : {&world.network.server(), &world.network.client()}) {
    CHECK(process->agent().identifiers() == 0);
    CHECK(process->host().engine().cm().connections() == 0);
    CHECK(process->host().names.empty());
  }
  return result;
}

// Multiples of a word, as "0..12 20".
std::string ranges(const std::vector<std::size_t>& places) {
  std::string text;
  for (std::size_t i = 0; i < places.size();) {
    std::size_t last = i;
    while (last + 1 < places.size() && places[last + 1] == places[last] + kWord) ++last;
    text += fmt::format(" {}", places[i]);
    if (last > i) text += fmt::format("..{}", places[last]);
    i = last + 1;
  }
  return text;
}

std::string places_by_outcome(const std::map<std::string, std::vector<std::size_t>>& places) {
  std::map<std::string, std::string> names;
  for (const auto& [outcome, all] : places) names[outcome] = ranges(all);
  return by_outcome(names);
}

std::string wrong_words(const Case& test, std::size_t size) {
  std::string text;
  std::vector<std::size_t> indifferent;
  for (std::size_t at = 0; at + kWord <= size; at += kWord) {
    if (at >= test.skip_from && at < test.skip_to) continue;
    std::map<std::string, std::string> outcomes;
    for (const std::uint32_t value : kWrong) {
      const int result = attempt(test, test.response_size, [&](Bytes& request) {
        std::memcpy(request.data() + at, &value, sizeof(value));
      });
      outcomes[error_name(result)] += fmt::format(" {:x}", value);
    }
    if (outcomes.size() == 1 && outcomes.count("ok") == 1) {
      indifferent.push_back(at);
    } else {
      text += fmt::format("  {:3}: {}\n", at, by_outcome(outcomes));
    }
  }
  if (indifferent.empty()) return text;
  return text + "  may have any value:" + ranges(indifferent) + "\n";
}

std::string wrong_lengths(const Case& test, std::size_t size) {
  std::map<std::string, std::vector<std::size_t>> outcomes;
  for (std::size_t length = 0; length < size; length += kWord) {
    // Without its address the response goes nowhere.
    if (test.response_size > 0 && length < test.skip_to) continue;
    const int result =
        attempt(test, test.response_size, [&](Bytes& request) { request.resize(length); });
    outcomes[error_name(result)].push_back(length);
  }
  return outcomes.empty() ? "" : "  cut off at: " + places_by_outcome(outcomes) + "\n";
}

std::string short_responses(const Case& test) {
  std::map<std::string, std::vector<std::size_t>> outcomes;
  for (std::size_t size = 0; size < test.response_size; size += kWord) {
    outcomes[error_name(attempt(test, size, [](Bytes&) {}))].push_back(size);
  }
  return outcomes.empty() ? "" : "  room for a response: " + places_by_outcome(outcomes) + "\n";
}

TEST_CASE("every command of rdma_cm with every field wrong gets the errno of the golden file") {
  std::string text;
  std::vector<Case> cases = address_cases();
  const std::vector<Case> more = connection_cases();
  cases.insert(cases.end(), more.begin(), more.end());
  for (const Case& test : cases) {
    INFO(test.name);
    REQUIRE(attempt(test, test.response_size, [](Bytes&) {}) == 0);
    World world;
    const std::size_t size = test.request(world).size();
    text += fmt::format("{}\n", test.name);
    text += wrong_words(test, size) + wrong_lengths(test, size) + short_responses(test) + "\n";
  }
  check_golden_text("tests/golden/ucma_sweep.txt", text);
}

}  // namespace
}  // namespace urxe::test
