// UD multicast: every process of a host that joined gets its copy.
#include <memory>

#include <catch2/catch.hpp>
#include <net/if.h>

#include "tests/support/skip.h"
#include "tests/unit/net/child.h"
#include "tests/unit/net/traffic.h"

using namespace urxe;
using namespace urxe::test;

namespace {

// A group of this process's own.
std::string group_address() {
  const std::uint32_t node = ip(node_address(0)).v4();
  return wire::IpAddress::from_v4(0xEF000000 | (node & 0xFFFFFF)).to_string();
}

std::unique_ptr<Child> member(const net::UdpOptions& options, const std::string& group) {
  auto child = std::make_unique<Child>(
      options, [] {},
      [&](net::UdpFabric& fabric) {
        if (fabric.join(ip(group)) != 0) _exit(1);
      });
  REQUIRE(child->error().empty());
  return child;
}

void send_to_group(net::UdpFabric& fabric, const std::string& from, const std::string& group,
                   std::uint32_t packets) {
  const wire::Path path{.source = ip(from), .destination = ip(group), .source_port = 0xC077};
  for (std::uint32_t psn = 0; psn < packets; ++psn) {
    REQUIRE(put(fabric, path, wire::kMulticastQpn, psn, 128));
  }
  REQUIRE(fabric.flush(now()));
}

}  // namespace

TEST_CASE("every member of a group gets each packet once, the sender too") {
  const std::string group = group_address();
  const auto first = member(on_loopback(node_address(1)), group);
  const auto second = member(on_loopback(node_address(1)), group);  // another process, same address
  const auto third = member(on_loopback(node_address(2)), group);
  const Child stranger(on_loopback(node_address(1)));
  auto sender = open_fabric(on_loopback(node_address(0)));
  REQUIRE(sender->join(ip(group)) == 0);
  send_to_group(*sender, node_address(0), group, 10);
  for (Child* child : {first.get(), second.get(), third.get()}) {
    const ChildReport report = child->report_after(10);
    CHECK(report.packets == 10);
    CHECK(report.right_packets == 10);
  }
  Arrivals own;
  receive_until(*sender, own, 10);
  CHECK(own.all.size() == 10);
  CHECK(own.all_right());
  CHECK(own.all.front().path.destination == ip(group));
}

TEST_CASE("packets of another user's process reach the group, too") {
  if (geteuid() != 0) return skip("needs root, to become another user");
  const std::string group = group_address();
  const Child other(
      on_loopback(node_address(1)), [] { REQUIRE(setuid(65534) == 0); },
      [&](net::UdpFabric& fabric) {
        if (fabric.join(ip(group)) != 0) _exit(1);
      });
  REQUIRE(other.error().empty());
  auto sender = open_fabric(on_loopback(node_address(0)));
  REQUIRE(sender->join(ip(group)) == 0);
  send_to_group(*sender, node_address(0), group, 3);
  Arrivals own;
  receive_until(*sender, own, 3);
  CHECK(own.all.size() == 3);
}

TEST_CASE("who left a group gets nothing more") {
  const std::string group = group_address();
  auto fabric = open_fabric(on_loopback(node_address(0)));
  CHECK(fabric->leave(ip(group)) == EADDRNOTAVAIL);
  REQUIRE(fabric->join(ip(group)) == 0);
  CHECK(fabric->join(ip(group)) == 0);
  REQUIRE(fabric->leave(ip(group)) == 0);
  send_to_group(*fabric, node_address(0), group, 3);
  // What comes back by another way, after it.
  const wire::Path path{.source = ip(node_address(0)), .destination = ip(node_address(0))};
  REQUIRE(put(*fabric, path, qpn_of(*fabric), 99, 8));
  REQUIRE(fabric->flush(now()));
  Arrivals arrivals;
  receive_until(*fabric, arrivals, 1);
  CHECK(arrivals.psns() == std::vector<std::uint32_t>{99});
}

TEST_CASE("groups of IPv6") {
  if (!enter_own_network()) return skip(kNeedsRoot);
  // Loopback has no route for them.
  run_ip("link add urxe0 type veth peer name urxe1");
  run_ip("link set urxe1 up");
  run_ip("link set urxe0 up");
  run_ip("addr add fd00:7357::1/64 dev urxe0 nodad");
  net::UdpOptions options;
  options.addresses.push_back(
      {.address = ip("fd00:7357::1"), .interface = if_nametoindex("urxe0")});
  options.segmentation = net::Segmentation::always;
  auto fabric = open_fabric(options);
  for (const std::string group : {"ff12::77", "ff15::77"}) {
    REQUIRE(fabric->join(ip(group)) == 0);
    send_to_group(*fabric, "fd00:7357::1", group, 5);
    Arrivals arrivals;
    receive_until(*fabric, arrivals, 5);
    CHECK(arrivals.all.size() == 5);
    CHECK(arrivals.all_right());
  }
}

TEST_CASE("only groups can be joined, and only of a family that the device has") {
  auto fabric = open_fabric(on_loopback(node_address(0)));
  CHECK(fabric->join(ip("192.0.2.1")) == EINVAL);
  CHECK(fabric->join(ip("ff11::1")) == EAFNOSUPPORT);
}
