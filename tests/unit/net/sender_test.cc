// What the sender does where the kernel refuses.
#include "net/udp/sender.h"

#include <catch2/catch.hpp>
#include <net/if.h>
#include <sys/socket.h>

#include "net/udp/sockets.h"
#include "tests/support/skip.h"
#include "tests/unit/net/traffic.h"

using namespace urxe;
using namespace urxe::test;

TEST_CASE("packets go one by one, with ICRCs for that, where the kernel will not split") {
  const net::UdpOptions options = on_loopback(node_address(0));
  const auto socket = net::open_receiver(options.addresses.front(), options);
  REQUIRE(socket);
  // Without a checksum to compute the kernel refuses to split (EINVAL).
  const int on = 1;
  REQUIRE(setsockopt(socket->number(), SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)) == 0);
  net::Sender sender(options, true);
  sender.add(options.addresses.front(), *socket);

  auto receiver = open_fabric(on_loopback(node_address(1)));
  const wire::Path path{.source = ip(node_address(0)),
                        .destination = ip(node_address(1)),
                        .source_port = wire::kRoceUdpPort};
  constexpr std::uint32_t kCount = 150;
  for (std::uint32_t psn = 0; psn < kCount; ++psn) {
    const wire::MutableBytes slot = sender.reserve(now());
    REQUIRE(!slot.empty());
    const std::size_t size = write_send(slot, qpn_of(*receiver), psn, psn % 10 == 9 ? 100 : 600);
    // What a fault injector did to a packet stays done.
    sender.commit(now(), {.path = &path, .size = size, .icrc_error = psn == 75 ? 0xDEADU : 0});
  }
  REQUIRE(sender.flush(now()));
  Arrivals arrivals;
  receive_until(*receiver, arrivals, kCount);
  REQUIRE(arrivals.all.size() == kCount);
  for (std::uint32_t psn = 0; psn < kCount; ++psn) {
    CAPTURE(psn);
    CHECK(arrivals.all[psn].psn == psn);
    CHECK(arrivals.all[psn].icrc_is_right == (psn != 75));
  }
  CHECK(sender.counters().packets == kCount);
  CHECK(sender.counters().errors == 0);
}

TEST_CASE("packets that are longer than the MTU are refused, and shorter ones go") {
  if (!enter_own_network()) return skip(kNeedsRoot);
  run_ip("link set lo mtu 1500");
  net::UdpOptions options = on_loopback(node_address(0));
  static std::vector<std::string> sentences;
  sentences.clear();
  options.explain = [](const std::string& sentence) { sentences.push_back(sentence); };
  auto sender = open_fabric(options);
  auto receiver = open_fabric(on_loopback(node_address(1)));
  const wire::Path path{.source = ip(node_address(0)), .destination = ip(node_address(1))};
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t psn = 0; psn < 5; ++psn) {
      REQUIRE(put(*sender, path, qpn_of(*receiver), psn, 4096));
    }
    for (std::uint32_t psn = 5; psn < 10; ++psn) {
      REQUIRE(put(*sender, path, qpn_of(*receiver), psn, 1024));
    }
    REQUIRE(sender->flush(now()));
    Arrivals arrivals;
    receive_until(*receiver, arrivals, 5);
    CHECK(arrivals.psns() == std::vector<std::uint32_t>{5, 6, 7, 8, 9});
    CHECK(arrivals.all_right());
  }
  CHECK(sender->counters().send_errors == 10);
  REQUIRE(sentences.size() == 1);
  CHECK(sentences[0].find("the interface's MTU is too small") != std::string::npos);
}

TEST_CASE("a full socket makes the sender wait, and nothing is lost or out of order") {
  if (!enter_own_network()) return skip(kNeedsRoot);
  // A slow network card between two namespaces would do; a slow loopback does as well.
  run_ip("link set lo mtu 5000");
  const int failed = std::system("tc qdisc add dev lo root tbf rate 80mbit burst 64kb limit 40mb");
  if (failed != 0) return skip("the kernel has no token bucket filter (sch_tbf)");
  net::UdpOptions options = on_loopback(node_address(0));
  options.send_buffer = 32 * 1024;
  auto sender = open_fabric(options);
  auto receiver = open_fabric(on_loopback(node_address(1)));
  const wire::Path path{.source = ip(node_address(0)), .destination = ip(node_address(1))};
  constexpr std::uint32_t kCount = 400;
  Arrivals arrivals;
  std::uint32_t sent = 0;
  bool was_full = false;
  const Time deadline = now() + kPatience;
  while (arrivals.all.size() < kCount && now() < deadline) {
    while (sent < kCount && put(*sender, path, qpn_of(*receiver), sent, 4096)) ++sent;
    if (!sender->flush(now())) {
      was_full = true;
      std::vector<pollfd> descriptors;
      sender->wait_for(descriptors);
      CHECK(descriptors.back().events == POLLOUT);
      poll(&descriptors.back(), 1, 100);
    }
    receive_all(*receiver, arrivals);
  }
  CHECK(was_full);
  REQUIRE(arrivals.all.size() == kCount);
  for (std::uint32_t psn = 0; psn < kCount; ++psn) CHECK(arrivals.all[psn].psn == psn);
  CHECK(arrivals.all_right());
}
