#include "net/sim/sim_fabric.h"

#include <catch2/catch.hpp>

#include "tests/unit/sim/traffic.h"

namespace urxe::test {
namespace {

using namespace net;

struct Listener final : Wakeable {
  void wake(Time now) override { woken.push_back(now); }
  std::vector<Time> woken;
};

struct Cabled {
  explicit Cabled(const LinkSpec& spec = {}, std::size_t receive_buffer = 1024 * 1024)
      : a(network.add_node({.address = address_of(1), .receive_buffer = receive_buffer})),
        b(network.add_node({.address = address_of(2), .receive_buffer = receive_buffer})) {
    network.connect(a, b, spec);
  }
  Time now() { return network.simulation().now(); }
  void run(Duration time) { network.simulation().run_until(now() + time); }
  ReceiveResult receive(std::size_t budget = SIZE_MAX) {
    return to_b.receive(now(), arrivals, budget);
  }

  Network network{1};
  SimNode& a;
  SimNode& b;
  SimFabric to_a{a};
  SimFabric to_b{b};
  Arrivals arrivals;
};

TEST_CASE("a packet arrives as it was written, with a right ICRC") {
  Cabled cable;
  REQUIRE(send(cable.to_a, cable.now(), path_between(1, 2), 77, 123));
  CHECK(cable.to_a.flush(cable.now()));
  cable.run(1ms);
  CHECK(cable.receive().packets == 1);
  REQUIRE(cable.arrivals.all.size() == 1);
  const Arrival& arrival = cable.arrivals.all[0];
  CHECK(arrival.icrc_is_right);
  CHECK(arrival.path == path_between(1, 2));
  const auto packet = wire::parse_packet(arrival.bytes);
  REQUIRE(packet);
  CHECK(packet->payload.size() == 123);
  CHECK(packet->bth.psn == wire::Psn{77});
}

TEST_CASE("a spoiled ICRC is found out on reception") {
  Cabled cable;
  REQUIRE(send(cable.to_a, cable.now(), path_between(1, 2), 1, 100, 0x40));
  cable.run(1ms);
  cable.receive();
  REQUIRE(cable.arrivals.all.size() == 1);
  CHECK_FALSE(cable.arrivals.all[0].icrc_is_right);
  CHECK(cable.b.counters().icrc_errors == 1);
}

TEST_CASE("the ICRC holds over IPv6 and after a congestion mark") {
  Network network(1);
  const auto v6 = [](const char* text) { return *wire::IpAddress::parse(text); };
  SimNode& a = network.add_node({.address = v6("fd00::1")});
  SimNode& b = network.add_node({.address = v6("fd00::2")});
  network.connect(a, b, {.marking = {.min = 0, .max = 0}});
  SimFabric to_a(a);
  SimFabric to_b(b);
  const wire::Path path{.source = a.address(), .destination = b.address(), .traffic_class = 2};
  REQUIRE(send(to_a, Time{}, path, 1, 100));
  network.simulation().run_until(Time{1ms});
  Arrivals arrivals;
  to_b.receive(Time{1ms}, arrivals, 10);
  REQUIRE(arrivals.all.size() == 1);
  CHECK(arrivals.all[0].icrc_is_right);
  CHECK(arrivals.all[0].path.ecn() == wire::Ecn::ce);
}

TEST_CASE("receiving stops at the budget and says that there is more") {
  Cabled cable;
  for (std::uint32_t i = 0; i < 5; ++i) {
    REQUIRE(send(cable.to_a, cable.now(), path_between(1, 2), i, 10));
  }
  cable.run(1ms);
  ReceiveResult result = cable.receive(3);
  CHECK(result.packets == 3);
  CHECK(result.more);
  result = cable.receive(3);
  CHECK(result.packets == 2);
  CHECK_FALSE(result.more);
  CHECK(cable.arrivals.numbers() == std::vector<std::uint32_t>{0, 1, 2, 3, 4});
}

TEST_CASE("the listener is woken when a packet arrives") {
  Cabled cable({.latency = 50us});
  Listener listener;
  cable.b.set_listener(&listener);
  REQUIRE(send(cable.to_a, cable.now(), path_between(1, 2), 0, 10));
  cable.run(49us);
  CHECK(listener.woken.empty());
  cable.run(1ms);
  REQUIRE(listener.woken.size() == 1);
  CHECK(listener.woken[0] >= Time{50us});
}

TEST_CASE("a full receive buffer drops, as a socket's does") {
  const std::size_t size = ip_packet(path_between(1, 2), 0, 1000).size();
  Cabled cable({}, 4 * size);
  for (std::uint32_t i = 0; i < 10; ++i) {
    REQUIRE(send(cable.to_a, cable.now(), path_between(1, 2), i, 1000));
  }
  cable.run(1ms);
  CHECK(cable.b.counters().overruns == 6);
  cable.receive();
  CHECK(cable.arrivals.numbers() == std::vector<std::uint32_t>{0, 1, 2, 3});
  REQUIRE(send(cable.to_a, cable.now(), path_between(1, 2), 10, 1000));
  cable.run(1ms);
  cable.receive();
  CHECK(cable.arrivals.all.back().number == 10);
}

TEST_CASE("a full output queue gives out no slot until its deadline, and loses nothing") {
  Cabled cable({.bits_per_second = 1'000'000'000, .queue_limit = 20'000});
  std::uint32_t sent = 0;
  while (send(cable.to_a, cable.now(), path_between(1, 2), sent, 4096)) ++sent;
  CHECK(sent == 4);
  CHECK_FALSE(cable.to_a.flush(cable.now()));
  const Time deadline = cable.to_a.next_deadline();
  REQUIRE(deadline != kNever);
  cable.run(deadline - cable.now());
  CHECK(cable.to_a.flush(cable.now()));
  CHECK(cable.to_a.next_deadline() == kNever);
  CHECK(send(cable.to_a, cable.now(), path_between(1, 2), sent++, 4096));
  cable.run(1ms);
  cable.receive();
  CHECK(cable.arrivals.all.size() == sent);
  CHECK(cable.a.uplink().counters().dropped_packets == 0);
}

TEST_CASE("a packet for another address is a stray") {
  Cabled cable;
  REQUIRE(send(cable.to_a, cable.now(), path_between(1, 3), 0, 10));
  cable.run(1ms);
  CHECK(cable.receive().packets == 0);
  CHECK(cable.b.counters().strays == 1);
}

}  // namespace
}  // namespace urxe::test
