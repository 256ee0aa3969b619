// What the network says of management packets that do not arrive.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <poll.h>

#include "tests/support/skip.h"
#include "tests/unit/net/traffic.h"

using namespace urxe;
using namespace urxe::test;
using namespace std::chrono_literals;

namespace {

// What comes to queue pair 1 stays where it came.
class NoRouter final : public net::MadRouter {
 public:
  std::optional<std::string> owner_of(const wire::Inbound&) override { return std::nullopt; }
};

std::unique_ptr<net::UdpFabric> open_alone(const net::UdpOptions& options) {
  static NoRouter router;
  auto fabric = open_fabric(options);
  fabric->set_mad_router(&router);
  return fabric;
}

// Receives until something is said to be unreachable, or for so long.
void wait_for_report(net::Fabric& fabric, Arrivals& arrivals, Duration patience) {
  const Time end = now() + patience;
  while (arrivals.unreachable.empty() && now() < end) {
    std::vector<pollfd> descriptors;
    fabric.wait_for(descriptors);
    poll(descriptors.data(), descriptors.size(), 100);
    fabric.receive(now(), arrivals, 100);
  }
}

void check_empty_address(const std::string& source, const std::string& destination) {
  const auto fabric = open_alone(on_loopback(source));
  wire::Path path{.source = ip(source), .destination = ip(destination), .source_port = 0xC123};
  Arrivals arrivals;
  REQUIRE(put(*fabric, path, wire::kGsiQpn, 0, 256));
  REQUIRE(fabric->flush(now()));
  wait_for_report(*fabric, arrivals, 5s);
  REQUIRE_FALSE(arrivals.unreachable.empty());
  CHECK(arrivals.unreachable.front() == ip(destination));
  // No other packet is lost for that, neither data nor the next request.
  path.destination = path.source;
  for (std::uint32_t psn = 1; psn <= 4; ++psn) {
    const auto to = psn % 2 == 0 ? wire::kGsiQpn : qpn_of(*fabric);
    REQUIRE(put(*fabric, path, to, psn, 256));
  }
  REQUIRE(fabric->flush(now()));
  receive_until(*fabric, arrivals, 4);
  CHECK(arrivals.all.size() == 4);
  CHECK(arrivals.all_right());
  CHECK(fabric->counters().send_errors == 0);
}

}  // namespace

TEST_CASE("an address where nobody has the port is reported, and costs no other packet") {
  check_empty_address(node_address(0), node_address(2));
}

TEST_CASE("the same over IPv6") {
  if (!enter_own_network()) return skip(kNeedsRoot);
  run_ip("address add fd83::1/128 dev lo nodad");
  run_ip("address add fd83::2/128 dev lo nodad");
  wait_for_route("fd83::1", "fd83::2");
  wait_for_route("fd83::2", "fd83::1");
  check_empty_address("fd83::1", "fd83::2");
}

TEST_CASE("a request that meets what an earlier one left is sent all the same") {
  const auto fabric = open_alone(on_loopback(node_address(0)));
  const auto peer = open_alone(on_loopback(node_address(1)));
  wire::Path path{.source = ip(node_address(0)), .source_port = 0xC123};
  for (int round = 0; round < 3; ++round) {
    path.destination = ip(node_address(2));
    REQUIRE(put(*fabric, path, wire::kGsiQpn, 0, 256));
    REQUIRE(fabric->flush(now()));
    path.destination = ip(node_address(1));
    REQUIRE(put(*fabric, path, wire::kGsiQpn, 1, 256));
    REQUIRE(fabric->flush(now()));
  }
  Arrivals arrivals;
  receive_until(*peer, arrivals, 3);
  CHECK(arrivals.all.size() == 3);
  CHECK(fabric->counters().send_errors == 0);
}

TEST_CASE("datagrams and connections to an empty address are nobody's concern") {
  const auto fabric = open_alone(on_loopback(node_address(0)));
  const wire::Path path{
      .source = ip(node_address(0)), .destination = ip(node_address(2)), .source_port = 0xC123};
  REQUIRE(put(*fabric, path, wire::Qpn{0x4001}, 0, 256));
  REQUIRE(fabric->flush(now()));
  Arrivals arrivals;
  wait_for_report(*fabric, arrivals, 300ms);
  CHECK(arrivals.unreachable.empty());
}

TEST_CASE("an address on the link that no host has is reported after some seconds") {
  if (!enter_own_network()) return skip(kNeedsRoot);
  run_ip("link add veth0 type veth peer name veth1");
  run_ip("link set veth0 up");
  run_ip("link set veth1 up");
  run_ip("address add 10.83.0.1/24 dev veth0");
  net::UdpOptions options;
  options.addresses.push_back({.address = ip("10.83.0.1"), .interface = 0});
  const auto fabric = open_alone(options);
  const wire::Path path{
      .source = ip("10.83.0.1"), .destination = ip("10.83.0.9"), .source_port = 0xC123};
  REQUIRE(put(*fabric, path, wire::kGsiQpn, 0, 256));
  REQUIRE(fabric->flush(now()));
  Arrivals arrivals;
  wait_for_report(*fabric, arrivals, 15s);
  REQUIRE_FALSE(arrivals.unreachable.empty());
  CHECK(arrivals.unreachable.front() == ip("10.83.0.9"));
}
