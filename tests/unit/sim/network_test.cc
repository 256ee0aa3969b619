#include "net/sim/network.h"

#include <catch2/catch.hpp>

#include "tests/unit/sim/traffic.h"

namespace urxe::test {
namespace {

using namespace net;

// Nodes 1 ... n around one switch.
struct Star {
  explicit Star(std::uint32_t nodes, const LinkSpec& up = {}, const LinkSpec& down = {},
                std::uint64_t seed = 1)
      : network(seed), hub(network.add_switch()) {
    for (std::uint32_t i = 1; i <= nodes; ++i) {
      SimNode& node = network.add_node({.address = address_of(i)});
      network.connect(node, hub, up, down);
      fabrics.push_back(std::make_unique<SimFabric>(node));
    }
    arrivals.resize(nodes);
  }
  Time now() { return network.simulation().now(); }
  void run(Duration time) {
    network.simulation().run_until(now() + time);
    for (std::size_t i = 0; i < fabrics.size(); ++i) {
      fabrics[i]->receive(now(), arrivals[i], SIZE_MAX);
    }
  }
  SimFabric& fabric(std::uint32_t node) { return *fabrics.at(node - 1); }
  Arrivals& at(std::uint32_t node) { return arrivals.at(node - 1); }

  Network network;
  Switch& hub;
  std::vector<std::unique_ptr<SimFabric>> fabrics;
  std::vector<Arrivals> arrivals;
};

TEST_CASE("a switch delivers to the destination and to nobody else") {
  Star star(3);
  REQUIRE(send(star.fabric(1), star.now(), path_between(1, 3), 42, 100));
  star.run(1ms);
  CHECK(star.at(3).numbers() == std::vector<std::uint32_t>{42});
  CHECK(star.at(1).all.empty());
  CHECK(star.at(2).all.empty());
}

TEST_CASE("a packet to nobody is counted and gone") {
  Star star(2);
  REQUIRE(send(star.fabric(1), star.now(), path_between(1, 99), 1, 100));
  star.run(1ms);
  CHECK(star.hub.unroutable() == 1);
  CHECK(star.network.on_the_way() == 0);
}

TEST_CASE("two senders into one port share it, and what does not fit is dropped there") {
  const LinkSpec narrow{.bits_per_second = 1'000'000'000, .queue_limit = 20'000};
  Star star(3, LinkSpec{}, narrow);
  for (std::uint32_t i = 0; i < 100; ++i) {
    REQUIRE(send(star.fabric(1), star.now(), path_between(1, 3), i, 1000));
    REQUIRE(send(star.fabric(2), star.now(), path_between(2, 3), 1000 + i, 1000));
  }
  star.run(100ms);
  const LinkCounters& port = star.hub.port(address_of(3)).counters();
  CHECK(port.offered_packets == 200);
  CHECK(port.dropped_packets > 100);
  CHECK(port.delivered_packets + port.dropped_packets == 200);
  CHECK(star.at(3).all.size() == port.delivered_packets);
  const auto first = static_cast<std::size_t>(
      std::count_if(star.at(3).all.begin(), star.at(3).all.end(),
                    [](const Arrival& arrival) { return arrival.number < 1000; }));
  CHECK(first > 0);
  CHECK(first < star.at(3).all.size());
}

TEST_CASE("a multicast reaches the members of the group, but for its sender") {
  Star star(4);
  const auto group = wire::IpAddress::from_v4(0xE0000101);
  for (const std::uint32_t member : {1U, 2U, 4U}) REQUIRE(star.fabric(member).join(group) == 0);
  wire::Path path = path_between(1, 2);
  path.destination = group;
  REQUIRE(send(star.fabric(1), star.now(), path, 5, 64));
  star.run(1ms);
  CHECK(star.at(1).all.empty());
  CHECK(star.at(2).numbers() == std::vector<std::uint32_t>{5});
  CHECK(star.at(3).all.empty());
  CHECK(star.at(4).numbers() == std::vector<std::uint32_t>{5});
  REQUIRE(star.fabric(4).leave(group) == 0);
  CHECK(star.fabric(4).leave(group) != 0);
  REQUIRE(send(star.fabric(1), star.now(), path, 6, 64));
  star.run(1ms);
  CHECK(star.at(2).all.size() == 2);
  CHECK(star.at(4).all.size() == 1);
}

TEST_CASE("joining what is no multicast address is refused") {
  Star star(1);
  CHECK(star.fabric(1).join(address_of(2)) != 0);
}

// Counts what it sees and keeps the last bytes.
struct Watcher final : Observer {
  void on_sent(Time, const wire::IpAddress& node, wire::Bytes ip_packet) override {
    ++packets;
    last_node = node;
    last_size = ip_packet.size();
  }
  std::size_t packets = 0;
  wire::IpAddress last_node;
  std::size_t last_size = 0;
};

TEST_CASE("an observer sees every packet that is sent, also of nodes that join later") {
  Star star(2);
  Watcher watcher;
  star.network.set_observer(&watcher);
  SimNode& late = star.network.add_node({.address = address_of(9)});
  star.network.connect(late, star.hub, LinkSpec{}, LinkSpec{});
  SimFabric fabric(late);
  REQUIRE(send(star.fabric(1), star.now(), path_between(1, 2), 1, 100));
  REQUIRE(send(fabric, star.now(), path_between(9, 2), 2, 60));
  CHECK(watcher.packets == 2);
  CHECK(watcher.last_node == address_of(9));
  CHECK(watcher.last_size == wire::kIpv4Size + wire::kUdpSize + wire::kBthSize + 60 + 4);
  star.network.set_observer(nullptr);
  REQUIRE(send(fabric, star.now(), path_between(9, 2), 3, 60));
  CHECK(watcher.packets == 2);
}

}  // namespace
}  // namespace urxe::test
