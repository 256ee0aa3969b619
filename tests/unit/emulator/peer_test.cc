#include "emulator/peer.h"

#include <catch2/catch.hpp>

namespace urxe::emulator {
namespace {

using namespace std::chrono_literals;

struct Waiter final : WindowWaiter {
  void window_opened() override { ++opened; }
  int opened = 0;
};

DeviceOptions options() {
  DeviceOptions chosen;
  chosen.initial_window = 40'000;
  chosen.min_window = 10'000;
  chosen.max_window = 100'000;
  return chosen;
}

TEST_CASE("a peer takes what its window holds, and anything if nothing is in flight") {
  const DeviceOptions chosen = options();
  Peer peer(chosen);
  CHECK(peer.has_room(1'000'000));
  peer.sent(30'000);
  CHECK(peer.has_room(10'000));
  CHECK_FALSE(peer.has_room(10'001));
  peer.delivered(30'000);
  CHECK(peer.in_flight() == 0);
}

TEST_CASE("the window grows while it is used and nothing is lost, up to its limit") {
  const DeviceOptions chosen = options();
  Peer peer(chosen);
  for (int i = 0; i < 1000; ++i) {
    while (peer.has_room(4'000)) peer.sent(4'000);
    peer.delivered(4'000);
  }
  CHECK(peer.window() == chosen.max_window);
}

TEST_CASE("a window shrinks a little by a loss, and much if hardly anything arrives") {
  const DeviceOptions chosen = options();
  Peer peer(chosen);
  peer.sent(40'000);
  peer.delivered(20'000);
  const std::uint32_t before = peer.window();
  peer.lost(Time{1s}, 1ms);
  const std::uint32_t after = before - before / 8;
  CHECK(peer.window() == after);
  peer.lost(Time{1s + 999us}, 1ms);  // of the same round trip
  CHECK(peer.window() == after);
  peer.lost(Time{2s}, 1ms);
  CHECK(peer.window() == after - after / 2);
  for (int i = 3; i < 20; ++i) peer.lost(Time{std::chrono::seconds(i)}, 1ms);
  CHECK(peer.window() == chosen.min_window);
  peer.delivered(20'000);
}

TEST_CASE("a window that is not used does not grow") {
  const DeviceOptions chosen = options();
  Peer peer(chosen);
  for (int i = 0; i < 1000; ++i) {
    peer.sent(1'000);
    peer.delivered(1'000);
  }
  CHECK(peer.window() == chosen.initial_window);
}

TEST_CASE("a waiter is told once when there is room, and the next when that one did nothing") {
  const DeviceOptions chosen = options();
  Peer peer(chosen);
  Waiter first;
  Waiter second;
  peer.sent(40'000);
  peer.wait_for_room(first, 4'000);
  peer.wait_for_room(second, 4'000);
  peer.withdrawn(1'000);
  CHECK(first.opened == 0);
  peer.delivered(20'000);
  CHECK(first.opened == 1);
  CHECK(second.opened == 0);
  peer.offer_room();
  CHECK(second.opened == 1);
  peer.offer_room();
  CHECK(first.opened == 1);
}

TEST_CASE("a waiter that dies is forgotten") {
  const DeviceOptions chosen = options();
  Peer peer(chosen);
  peer.sent(40'000);
  {
    Waiter gone;
    peer.wait_for_room(gone, 4'000);
  }
  peer.delivered(40'000);
  CHECK(peer.in_flight() == 0);
}

TEST_CASE("queue pairs of one process share a peer, others have their own") {
  const DeviceOptions chosen = options();
  PeerTable peers(chosen);
  const auto here = wire::IpAddress::from_v4(1);
  const auto there = wire::IpAddress::from_v4(2);
  {
    const auto a = peers.find(here, wire::Qpn{0x4001});
    const auto b = peers.find(here, wire::Qpn{0x4002});
    const auto c = peers.find(here, wire::Qpn{0x8001});
    const auto d = peers.find(there, wire::Qpn{0x4001});
    CHECK(a.get() == b.get());
    CHECK(a.get() != c.get());
    CHECK(a.get() != d.get());
    CHECK(a->users() == 2);
    peers.sweep();
    CHECK(peers.size() == 3);
  }
  peers.sweep();
  CHECK(peers.size() == 0);
}

}  // namespace
}  // namespace urxe::emulator
