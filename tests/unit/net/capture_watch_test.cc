// Whether somebody else captures.
#include "net/udp/capture_watch.h"

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <linux/if_ether.h>
#include <sys/socket.h>

#include "tests/support/skip.h"
#include "tests/unit/net/traffic.h"

using namespace urxe;
using namespace urxe::test;
using namespace std::chrono_literals;

TEST_CASE("a capture is noticed within a second, and its end, too") {
  if (!enter_own_network()) return skip(kNeedsRoot);
  net::CaptureWatch watch(nullptr);
  const Time start = now();
  CHECK(!watch.somebody_captures(start));
  net::Descriptor capture(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL)));
  REQUIRE(capture.is_open());
  CHECK(!watch.somebody_captures(start + 999ms));  // it has not looked
  CHECK(watch.somebody_captures(start + 1s));
  capture = net::Descriptor();
  CHECK(!watch.somebody_captures(start + 2s));
}

TEST_CASE("programs that only want one protocol do not capture") {
  if (!enter_own_network()) return skip(kNeedsRoot);
  const net::Descriptor other(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ARP)));
  REQUIRE(other.is_open());
  CHECK(!net::CaptureWatch(nullptr).somebody_captures(now()));
}

TEST_CASE("packets go out one by one while somebody captures") {
  if (!enter_own_network()) return skip(kNeedsRoot);
  const net::Descriptor capture(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL)));
  REQUIRE(capture.is_open());
  net::UdpOptions options = on_loopback(node_address(0));
  options.segmentation = net::Segmentation::automatic;
  auto fabric = open_fabric(options);
  const wire::Path path{.source = ip(node_address(0)), .destination = ip(node_address(0))};
  for (std::uint32_t psn = 0; psn < 10; ++psn) {
    REQUIRE(put(*fabric, path, qpn_of(*fabric), psn, 1000));
  }
  REQUIRE(fabric->flush(now()));
  std::size_t longest = 0;
  std::array<char, 65536> frame{};
  ssize_t size = 0;
  while ((size = recv(capture.number(), frame.data(), frame.size(), MSG_DONTWAIT)) > 0) {
    longest = std::max(longest, static_cast<std::size_t>(size));
  }
  CHECK(longest == 14 + 20 + 8 + 12 + 1000 + 4);
}
