// What implementations are known to get wrong about UD. The names of the tests say what is right.
#include <catch2/catch.hpp>

#include "tests/support/outcomes.h"

namespace urxe::test {
namespace {

using namespace emulator;

struct Datagrams {
  explicit Datagrams(bool v6 = false) {
    PairOptions options;
    options.type = QpType::ud;
    pair = std::make_unique<DevicePair>(options);
    if (v6) {
      for (int i = 0; i < 2; ++i) {
        pair->node(i).device.assign_gids(
            {pair->node(i).address, *wire::IpAddress::parse(i == 0 ? "fd00::a" : "fd00::b")});
      }
    }
  }
  void send(std::size_t size, const std::function<void(OwnedSend&)>& adjust = nullptr) {
    const auto local = pair->client().buffer(size + 1);
    std::memset(pair->client().bytes(local), 0x5A, size);
    REQUIRE(pair->post(0, WorkOpcode::send, local, size, {}, [&](OwnedSend& send) {
      send.request.datagram = {
          .vector = pair->attributes(0).vector, .qpn = pair->server().qp->qpn(), .qkey = kTestQKey};
      if (adjust) adjust(send);
    }));
    pair->run();
  }
  std::unique_ptr<DevicePair> pair;
};

TEST_CASE("a datagram's data start after 40 bytes, the last 20 of which are the IPv4 header") {
  Datagrams t;
  const auto sink = t.pair->server().buffer(200);
  t.pair->post_receive(1, sink);
  t.send(100);
  const auto& received = t.pair->server().receive_completions.completions;
  REQUIRE(received.size() == 1);
  CHECK(received[0].byte_count == 140);
  CHECK(received[0].flags == kWithGrh);
  CHECK(received[0].source_qpn == t.pair->client().qp->qpn());
  CHECK(received[0].service_level == 0xA);  // IPv4 over UDP, as NICs say it
  const std::uint8_t* bytes = t.pair->server().bytes(sink);
  CHECK(bytes[20] == 0x45);
  CHECK(bytes[29] == 17);
  CHECK(wire::load_be<std::uint32_t>({bytes, 200}, 32) == t.pair->client().address.v4());
  CHECK(wire::load_be<std::uint32_t>({bytes, 200}, 36) == t.pair->server().address.v4());
  CHECK(bytes[40] == 0x5A);
  CHECK(bytes[139] == 0x5A);
  CHECK(bytes[140] == 0);
}

TEST_CASE("a datagram over IPv6 brings its IPv6 header") {
  Datagrams t(true);
  const auto sink = t.pair->server().buffer(200);
  t.pair->post_receive(1, sink);
  t.send(10, [](OwnedSend& send) {
    send.request.datagram.vector.source_gid_index = 1;
    send.request.datagram.vector.destination = *wire::IpAddress::parse("fd00::b");
  });
  const auto& received = t.pair->server().receive_completions.completions;
  REQUIRE(received.size() == 1);
  CHECK(received[0].service_level == 0x9);  // IPv6 over UDP
  const std::uint8_t* bytes = t.pair->server().bytes(sink);
  CHECK(bytes[0] >> 4 == 6);
  CHECK(bytes[6] == 17);
  CHECK(bytes[8 + 15] == 0x0A);
  CHECK(bytes[24 + 15] == 0x0B);
}

TEST_CASE("a datagram with a wrong Q_Key, or for which no receive is posted, is dropped") {
  Datagrams t;
  t.send(10);
  CHECK(t.pair->server().device.counters().dropped_requests == 1);
  t.pair->post_receive(1, t.pair->server().buffer(100));
  t.send(10, [](OwnedSend& send) { send.request.datagram.qkey = wire::QKey{0x22}; });
  CHECK(t.pair->server().device.counters().qkey_violations == 1);
  CHECK(t.pair->server().receive_completions.completions.empty());
  t.send(10);
  CHECK(t.pair->server().receive_completions.completions.size() == 1);
}

TEST_CASE("a Q_Key with its top bit set stands for the sender's own") {
  Datagrams t;
  t.pair->post_receive(1, t.pair->server().buffer(100));
  t.send(10, [](OwnedSend& send) { send.request.datagram.qkey = wire::QKey{0x80000000}; });
  CHECK(t.pair->server().receive_completions.completions.size() == 1);
}

TEST_CASE("a receive that is too short for a datagram waits for one that fits") {
  Datagrams t;
  const auto sink = t.pair->server().buffer(60);
  t.pair->post_receive(1, sink, 1);
  t.send(21);
  CHECK(t.pair->server().receive_completions.completions.empty());
  t.send(20);
  REQUIRE(t.pair->server().receive_completions.completions.size() == 1);
  CHECK(t.pair->server().receive_completions.completions[0].wr_id == 1);
}

}  // namespace
}  // namespace urxe::test
