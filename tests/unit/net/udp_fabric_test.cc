// One process, packets over loopback.
#include <algorithm>

#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <sys/socket.h>

#include "net/udp/socket_address.h"
#include "net/wire/frame.h"
#include "tests/support/skip.h"
#include "tests/unit/net/traffic.h"

using namespace urxe;
using namespace urxe::test;

namespace {

// Two nodes on loopback.
struct Pair {
  Pair(const net::UdpOptions& a_options, const net::UdpOptions& b_options)
      : a(open_fabric(a_options)), b(open_fabric(b_options)) {
    path.source = a_options.addresses.front().address;
    path.destination = b_options.addresses.front().address;
  }
  std::unique_ptr<net::UdpFabric> a;
  std::unique_ptr<net::UdpFabric> b;
  wire::Path path{.source_port = 0xC123};
};

Pair v4_pair(net::Segmentation segmentation = net::Segmentation::always,
             bool coalesced_reception = true) {
  net::UdpOptions a = on_loopback(node_address(0));
  net::UdpOptions b = on_loopback(node_address(1));
  a.segmentation = segmentation;
  b.coalesced_reception = coalesced_reception;
  return {a, b};
}

// A WRITE of three and a half packets, some small ones, and one more of full size.
const std::vector<std::size_t> kSizes{4096, 4096, 4096, 1000, 0, 8, 8, 8, 12, 8, 4096, 256};

void send_sizes(Pair& pair, const std::vector<std::size_t>& sizes) {
  std::uint32_t psn = 0;
  for (const std::size_t size : sizes) {
    REQUIRE(put(*pair.a, pair.path, qpn_of(*pair.b), psn++, size));
  }
  REQUIRE(pair.a->flush(now()));
}

void check_sizes(Pair& pair, const std::vector<std::size_t>& sizes) {
  Arrivals arrivals;
  receive_until(*pair.b, arrivals, sizes.size());
  REQUIRE(arrivals.all.size() == sizes.size());
  CHECK(arrivals.all_right());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    CAPTURE(i);
    CHECK(arrivals.all[i].psn == i);
    CHECK(arrivals.all[i].size == sizes[i] + 16);
    CHECK(arrivals.all[i].path == pair.path);
  }
  CHECK(pair.a->counters().sent_packets == sizes.size());
  CHECK(pair.b->counters().received_packets == sizes.size());
  CHECK(pair.a->counters().send_errors == 0);
}

// A socket that is no fabric's, at a port 4791 of its own.
struct PlainSocket {
  explicit PlainSocket(const std::string& address)
      : socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    net::SocketAddress name;
    const socklen_t size = net::to_socket_address(ip(address), wire::kRoceUdpPort, 0, name);
    const int on = 1;
    setsockopt(socket.number(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    REQUIRE(bind(socket.number(), &name.any, size) == 0);
  }
  void send(const std::string& to, wire::Bytes bytes) {
    net::SocketAddress name;
    const socklen_t size = net::to_socket_address(ip(to), wire::kRoceUdpPort, 0, name);
    REQUIRE(sendto(socket.number(), bytes.data(), bytes.size(), 0, &name.any, size) ==
            static_cast<ssize_t>(bytes.size()));
  }
  net::Descriptor socket;
};

}  // namespace

TEST_CASE("packets of all sizes arrive in order over IPv4, split by the kernel") {
  Pair pair = v4_pair();
  send_sizes(pair, kSizes);
  check_sizes(pair, kSizes);
}

TEST_CASE("a receiver that does not coalesce gets the same packets") {
  Pair pair = v4_pair(net::Segmentation::always, false);
  send_sizes(pair, kSizes);
  check_sizes(pair, kSizes);
}

TEST_CASE("a sender of single packets sends the same packets") {
  Pair pair = v4_pair(net::Segmentation::never);
  send_sizes(pair, kSizes);
  check_sizes(pair, kSizes);
}

TEST_CASE("single packets to a receiver that does not coalesce") {
  Pair pair = v4_pair(net::Segmentation::never, false);
  send_sizes(pair, kSizes);
  check_sizes(pair, kSizes);
}

TEST_CASE("packets of all sizes arrive in order over IPv6") {
  if (!has_ipv6_loopback()) return skip("this machine has no ::1");
  for (const auto segmentation : {net::Segmentation::always, net::Segmentation::never}) {
    net::UdpOptions options = on_loopback("::1");
    options.segmentation = segmentation;
    Pair pair(options, options);
    // Other tests may use this address now.
    Arrivals ignored;
    receive_all(*pair.a, ignored);
    receive_all(*pair.b, ignored);
    pair.path.traffic_class = 0x6A;
    pair.path.hop_limit = 33;
    send_sizes(pair, kSizes);
    // Either may get the packets first.
    receive_all(*pair.a, ignored);
    check_sizes(pair, kSizes);
    CHECK(ignored.all.empty());
  }
}

TEST_CASE("a batch larger than the buffer goes out as it fills") {
  Pair pair = v4_pair();
  const std::vector<std::size_t> sizes(200, 4096);
  send_sizes(pair, sizes);
  check_sizes(pair, sizes);
}

TEST_CASE("more small packets than one message holds") {
  Pair pair = v4_pair();
  const std::vector<std::size_t> sizes(1000, 4);
  send_sizes(pair, sizes);
  check_sizes(pair, sizes);
}

TEST_CASE("traffic class, ECN and hop limit travel with each packet") {
  Pair pair = v4_pair();
  const std::vector<std::pair<std::uint8_t, std::uint8_t>> marks{{0, 64},   {0x02, 64},  {0xB9, 1},
                                                                 {0xB9, 1}, {0x03, 255}, {0, 64}};
  std::uint32_t psn = 0;
  for (const auto& [traffic_class, hop_limit] : marks) {
    pair.path.traffic_class = traffic_class;
    pair.path.hop_limit = hop_limit;
    REQUIRE(put(*pair.a, pair.path, qpn_of(*pair.b), psn++, 64));
  }
  REQUIRE(pair.a->flush(now()));
  Arrivals arrivals;
  receive_until(*pair.b, arrivals, marks.size());
  REQUIRE(arrivals.all.size() == marks.size());
  CHECK(arrivals.all_right());
  for (std::size_t i = 0; i < marks.size(); ++i) {
    CAPTURE(i);
    CHECK(arrivals.all[i].path.traffic_class == marks[i].first);
    CHECK(arrivals.all[i].path.hop_limit == marks[i].second);
  }
  CHECK(arrivals.all[1].path.ecn() == wire::Ecn::ect0);
}

TEST_CASE("a flow leaves by the source port of its path, and always by the same") {
  Pair pair = v4_pair();
  // 0xC010 and 0xC020 share a socket.
  for (const std::uint16_t port : {0xC010, 0xC011, 0xC020, 0xC010, 0xC011, 0xC020}) {
    pair.path.source_port = port;
    REQUIRE(put(*pair.a, pair.path, qpn_of(*pair.b), port, 64));
  }
  REQUIRE(pair.a->flush(now()));
  Arrivals arrivals;
  receive_until(*pair.b, arrivals, 6);
  REQUIRE(arrivals.all.size() == 6);
  CHECK(arrivals.all_right());
  for (const Arrival& arrival : arrivals.all) {
    CHECK(arrival.path.source_port == (arrival.psn == 0xC011 ? 0xC011 : 0xC010));
  }
}

TEST_CASE("a source port that another program has is replaced by 4791") {
  const net::Descriptor other(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  net::SocketAddress name;
  const socklen_t size = net::to_socket_address(ip(node_address(0)), 0, 0, name);
  REQUIRE(bind(other.number(), &name.any, size) == 0);
  socklen_t length = sizeof(name);
  REQUIRE(getsockname(other.number(), &name.any, &length) == 0);

  Pair pair = v4_pair();
  pair.path.source_port = net::port_of(name);
  REQUIRE(put(*pair.a, pair.path, qpn_of(*pair.b), 1, 64));
  REQUIRE(pair.a->flush(now()));
  Arrivals arrivals;
  receive_until(*pair.b, arrivals, 1);
  REQUIRE(arrivals.all.size() == 1);
  CHECK(arrivals.all[0].icrc_is_right);
  CHECK(arrivals.all[0].path.source_port == wire::kRoceUdpPort);
}

TEST_CASE("an ICRC that is to be wrong is wrong, for each packet by itself") {
  for (const auto segmentation : {net::Segmentation::always, net::Segmentation::never}) {
    Pair pair = v4_pair(segmentation);
    for (std::uint32_t psn = 0; psn < 6; ++psn) {
      REQUIRE(put(*pair.a, pair.path, qpn_of(*pair.b), psn, 256, psn % 2 == 0 ? 0 : 0x12345678));
    }
    REQUIRE(pair.a->flush(now()));
    Arrivals arrivals;
    receive_until(*pair.b, arrivals, 6);
    REQUIRE(arrivals.all.size() == 6);
    for (const Arrival& arrival : arrivals.all) {
      CHECK(arrival.icrc_is_right == (arrival.psn % 2 == 0));
    }
  }
}

TEST_CASE("what is no RoCEv2 packet is counted and dropped") {
  Pair pair = v4_pair();
  PlainSocket stranger(node_address(2));
  const std::vector<std::uint8_t> bytes(100, 0);
  for (const std::size_t size : {0, 1, 11, 15}) {
    stranger.send(node_address(1), wire::Bytes(bytes).first(size));
  }
  Arrivals arrivals;
  const Time deadline = now() + kPatience;
  while (pair.b->counters().malformed < 4 && now() < deadline) receive_all(*pair.b, arrivals);
  CHECK(pair.b->counters().malformed == 4);
  CHECK(arrivals.all.empty());
}

TEST_CASE("a packet that the kernel refuses is counted, and the others go") {
  Pair pair = v4_pair();
  wire::Path nowhere = pair.path;
  nowhere.source = ip("127.255.0.99");  // no address of this fabric
  REQUIRE(put(*pair.a, nowhere, qpn_of(*pair.b), 7, 64));
  wire::Path broadcast = pair.path;
  broadcast.destination = ip("255.255.255.255");  // EACCES, or EINVAL
  REQUIRE(put(*pair.a, broadcast, qpn_of(*pair.b), 8, 64));
  REQUIRE(put(*pair.a, pair.path, qpn_of(*pair.b), 9, 64));
  REQUIRE(pair.a->flush(now()));
  Arrivals arrivals;
  receive_until(*pair.b, arrivals, 1);
  CHECK(arrivals.psns() == std::vector<std::uint32_t>{9});
  CHECK(pair.a->counters().send_errors == 2);
}

TEST_CASE("a budget ends the reception, and says that there is more") {
  Pair pair = v4_pair(net::Segmentation::never, false);
  send_sizes(pair, std::vector<std::size_t>(100, 64));
  Arrivals arrivals;
  bool more = false;
  const Time deadline = now() + kPatience;
  while (arrivals.all.empty() && now() < deadline) {
    more = pair.b->receive(now(), arrivals, 10).more;
  }
  CHECK(more);
  CHECK(arrivals.all.size() < 100);
  receive_until(*pair.b, arrivals, 100);
  CHECK(arrivals.all.size() == 100);
}

TEST_CASE("a full receive buffer drops packets, which shows") {
  net::UdpOptions a = on_loopback(node_address(0));
  net::UdpOptions b = on_loopback(node_address(1));
  b.receive_buffer = 16384;
  Pair pair(a, b);
  constexpr std::uint32_t kCount = 500;
  for (std::uint32_t psn = 0; psn < kCount; ++psn) {
    put(*pair.a, pair.path, qpn_of(*pair.b), psn, 4096);
  }
  REQUIRE(pair.a->flush(now()));
  Arrivals arrivals;
  receive_all(*pair.b, arrivals);
  // The count comes with the next datagram that finds room.
  put(*pair.a, pair.path, qpn_of(*pair.b), kCount, 64);
  REQUIRE(pair.a->flush(now()));
  receive_until(*pair.b, arrivals, arrivals.all.size() + 1);
  CHECK(arrivals.all.size() < kCount);
  CHECK(pair.b->counters().receive_drops > 0);
}

TEST_CASE("the receive buffer is as large as was asked for, or as is allowed") {
  net::UdpOptions options = on_loopback(node_address(0));
  options.receive_buffer = 64 * 1024;
  CHECK(open_fabric(options)->receive_buffer() == 2 * 64 * 1024);
}

TEST_CASE("an address that this machine lacks is refused with a sentence") {
  net::UdpOptions options;
  options.addresses.push_back({.address = ip("192.0.2.1"), .interface = loopback_interface()});
  const auto fabric = net::UdpFabric::open(options);
  REQUIRE(!fabric);
  CHECK(fabric.error().code == EADDRNOTAVAIL);
  CHECK(fabric.error().sentence ==
        "UDP port 4791 at 192.0.2.1 cannot be opened: no interface of this network namespace has "
        "that address");
}

TEST_CASE("a port that a program holds for itself is refused with a sentence") {
  const net::Descriptor other(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  net::SocketAddress name;
  const socklen_t size = net::to_socket_address(ip(node_address(3)), wire::kRoceUdpPort, 0, name);
  REQUIRE(bind(other.number(), &name.any, size) == 0);
  const auto fabric = net::UdpFabric::open(on_loopback(node_address(3)));
  REQUIRE(!fabric);
  CHECK(fabric.error().code == EADDRINUSE);
  CHECK_THAT(fabric.error().sentence, Catch::Contains("does not share it (not urxe)"));
}

TEST_CASE("a device without an address is refused") {
  const auto fabric = net::UdpFabric::open({});
  REQUIRE(!fabric);
  CHECK(fabric.error().code == EADDRNOTAVAIL);
}
