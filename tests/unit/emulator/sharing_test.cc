// Queue pairs that share a peer's window, and a device that shares its memory with hostile peers.
#include <algorithm>
#include <utility>

#include <catch2/catch.hpp>

#include "tests/support/outcomes.h"

namespace urxe::test {
namespace {

using namespace emulator;

using Statuses = std::vector<CompletionStatus>;
constexpr auto kOk = CompletionStatus::success;

// A second connection between the nodes of a pair.
struct Second {
  explicit Second(DevicePair& pair) {
    for (int i = 0; i < 2; ++i) {
      Node& node = pair.node(i);
      qps.at(static_cast<std::size_t>(i)) =
          *node.device.create_qp(*node.pd, {.send_cq = node.send_cq,
                                            .receive_cq = node.receive_cq,
                                            .send_source = &sends.at(static_cast<std::size_t>(i)),
                                            .receive_source = &receives,
                                            .signal_all = true});
    }
    for (int i = 0; i < 2; ++i) {
      QpAttributes attributes = pair.attributes(i);
      attributes.destination = qps.at(static_cast<std::size_t>(1 - i))->qpn();
      bring_up(*qps.at(static_cast<std::size_t>(i)), attributes);
    }
  }
  std::array<SendDouble, 2> sends;
  ReceiveDouble receives;
  std::array<QueuePair*, 2> qps{};
};

OwnedSend write_of(const Node::Buffer& local, std::size_t length, const Node::Buffer& remote,
                   std::uint64_t wr_id) {
  OwnedSend send;
  send.request.opcode = WorkOpcode::rdma_write;
  send.request.wr_id = wr_id;
  send.request.length = length;
  send.request.remote_address = remote.address;
  send.request.rkey = wire::RKey{remote.key};
  send.sges = {{local.address, static_cast<std::uint32_t>(length), local.key}};
  return send;
}

PairOptions narrow() {
  PairOptions options;
  options.device.initial_window = options.device.min_window = options.device.max_window = 2500;
  return options;
}

TEST_CASE("a queue pair that waits for its receiver leaves the window to the others") {
  PairOptions options = narrow();
  options.min_rnr_timer = 0;  // 655 ms
  DevicePair pair(options);
  const auto local = pair.client().buffer(10000);
  const auto remote = pair.server().buffer(10000);
  Second second(pair);
  // The first one fills the window, waits for more of it, and has to wait for its receiver.
  REQUIRE(pair.post(0, WorkOpcode::send, local, 10000));
  pair.transmit();
  second.sends[0].post(write_of(local, 3000, remote, 7));
  REQUIRE(second.qps[0]->ring_doorbell());
  pair.run(5ms);
  REQUIRE(pair.client().device.counters().received_rnr_naks == 1);
  REQUIRE(statuses(pair.client().send_completions) == Statuses{kOk});
  CHECK(pair.client().send_completions.completions[0].wr_id == 7);
}

TEST_CASE("a queue pair that fails leaves the window to the others") {
  PairOptions options = narrow();
  options.retry_count = 0;
  options.timeout = 1;
  DevicePair pair(options);
  const auto local = pair.client().buffer(10000);
  const auto remote = pair.server().buffer(10000);
  Second second(pair);
  pair.fate = [](const WirePacket&) { return 0; };
  REQUIRE(pair.post(0, WorkOpcode::rdma_write, local, 10000, remote));
  pair.transmit();
  pair.fate = nullptr;
  second.sends[0].post(write_of(local, 3000, remote, 7));
  REQUIRE(second.qps[0]->ring_doorbell());
  pair.run(1s);
  CHECK(statuses(pair.client().send_completions) ==
        Statuses{CompletionStatus::retry_exceeded, kOk});
}

TEST_CASE("the packet that fills the window asks for what opens it again") {
  PairOptions options;
  options.mtu = Mtu::bytes256;
  options.device.initial_window = options.device.min_window = options.device.max_window = 8192;
  options.device.transmit_quantum = 1;
  DevicePair pair(options);
  const auto local = pair.client().buffer(8192);
  const auto remote = pair.server().buffer(8192);
  Second second(pair);
  Second third(pair);
  // Each stays below the share of the window after which it would ask by itself.
  for (Second* other : {&second, &third}) {
    other->sends[0].post(write_of(local, 8192, remote, 7));
    REQUIRE(other->qps[0]->ring_doorbell());
  }
  REQUIRE(pair.post(0, WorkOpcode::rdma_write, local, 8192, remote));
  pair.run(400us);
  CHECK(pair.client().device.counters().probes == 0);
  CHECK(statuses(pair.client().send_completions) == Statuses{kOk, kOk, kOk});
}

// How many packets with these PSNs, relative to a connection's first, went to a queue pair.
std::size_t requests_to(const DevicePair& pair, const QueuePair& qp, std::uint32_t from,
                        std::uint32_t count) {
  const wire::Psn first = wire::Psn{PairOptions{}.first_psn} + from;
  return static_cast<std::size_t>(
      std::count_if(pair.log.begin(), pair.log.end(), [&](const WirePacket& sent) {
        const wire::Packet packet = sent.parsed();
        return packet.bth.destination == qp.qpn() && packet.bth.psn.in_window(first, count);
      }));
}

TEST_CASE("the answer to a probe is no loss while the rest of the message waits for room") {
  PairOptions options = narrow();  // room for two packets
  options.device.transmit_quantum = 1;
  DevicePair pair(options);
  const auto local = pair.client().buffer(3072);
  const auto remote = pair.server().buffer(3072);
  Second second(pair);
  // Each sends one packet and waits for room for its next. Nothing of the first one arrives, and
  // the second one's acknowledgement is lost.
  const wire::Qpn mute = pair.server().qp->qpn();
  bool ack_was_lost = false;
  pair.fate = [&](const WirePacket& packet) {
    if (packet.parsed().bth.destination == mute) return 0;
    return packet.from == 1 && !std::exchange(ack_was_lost, true) ? 0 : 1;
  };
  REQUIRE(pair.post(0, WorkOpcode::rdma_write, local, 3072, remote));
  second.sends[0].post(write_of(local, 3072, remote, 7));
  REQUIRE(second.qps[0]->ring_doorbell());
  pair.run(30ms);  // the probe leaves after 10 ms, the first retry after 67 ms
  REQUIRE(ack_was_lost);
  CHECK(requests_to(pair, *second.qps[1], 0, 1) == 2);
  // The room went to the first one, which waits for longer; going back would need none.
  CHECK(requests_to(pair, *pair.server().qp, 1, 1) == 1);
  CHECK(requests_to(pair, *second.qps[1], 1, 2) == 0);
  pair.fate = nullptr;
  pair.run(1s);
  CHECK(statuses(pair.client().send_completions) == Statuses{kOk, kOk});
}

TEST_CASE("who waits for room sends the rest of a short message in one go") {
  constexpr std::uint32_t kPacket = 1024;
  constexpr std::uint32_t kFit = 26;  // packets with their overhead, and most of another
  PairOptions options;
  options.device.initial_window = options.device.min_window = options.device.max_window = 32768;
  DevicePair pair(options);
  const auto local = pair.client().buffer(kFit * kPacket);
  const auto remote = pair.server().buffer(kFit * kPacket);
  Second second(pair);
  pair.fate = [](const WirePacket&) { return 0; };
  REQUIRE(pair.post(0, WorkOpcode::rdma_write, local, kFit * kPacket, remote));
  pair.transmit();
  REQUIRE(requests_to(pair, *pair.server().qp, 0, kFit) == kFit);
  const auto acknowledge = [&](std::uint32_t index) {
    wire::Packet ack;
    ack.info = &wire::info(wire::Opcode::rc_acknowledge);
    ack.bth.psn = wire::Psn{options.first_psn} + index;
    ack.aeth = {.syndrome = wire::Syndrome::ack(), .msn = wire::Msn{0}};
    pair.inject(0, ack);
  };
  const auto post = [&](std::uint32_t packets) {
    second.sends[0].post(write_of(local, packets * kPacket, remote, 7));
    REQUIRE(second.qps[0]->ring_doorbell());
    pair.transmit();
    REQUIRE(requests_to(pair, *second.qps[1], 0, packets) == 0);
  };
  SECTION("not before there is room for all of it") {
    post(3);
    acknowledge(1);
    CHECK(requests_to(pair, *second.qps[1], 0, 3) == 0);
    acknowledge(2);
    CHECK(requests_to(pair, *second.qps[1], 0, 3) == 3);
  }
  SECTION("but a long one does not wait for so much") {
    post(12);
    acknowledge(1);
    CHECK(requests_to(pair, *second.qps[1], 0, 12) == 2);
  }
}

TEST_CASE("queue pairs with little to send are not starved by one with much") {
  DevicePair pair(narrow());
  const auto local = pair.client().buffer(1U << 20);
  const auto remote = pair.server().buffer(1U << 20);
  Second second(pair);
  REQUIRE(pair.post(0, WorkOpcode::rdma_write, local, 1U << 20, remote));
  second.sends[0].post(write_of(local, 10000, remote, 7));
  REQUIRE(second.qps[0]->ring_doorbell());
  pair.run(100s);
  REQUIRE(pair.client().send_completions.completions.size() == 2);
  CHECK(pair.client().send_completions.completions[0].wr_id == 7);
}

TEST_CASE("a queue pair whose READ is not answered leaves the budget of READs to the others") {
  PairOptions options;
  options.timeout = 0;  // it asks for ever
  options.device.read_window = 1000;
  DevicePair pair(options);
  const auto local = pair.client().buffer(2000);
  const auto remote = pair.server().buffer(2000);
  Second second(pair);
  const wire::Qpn mute = pair.server().qp->qpn();
  pair.fate = [mute](const WirePacket& packet) {
    return packet.parsed().bth.destination == mute ? 0 : 1;
  };
  REQUIRE(pair.post(0, WorkOpcode::rdma_read, local, 500, remote));
  pair.transmit();
  OwnedSend read = write_of(local, 800, remote, 7);
  read.request.opcode = WorkOpcode::rdma_read;
  second.sends[0].post(std::move(read));
  REQUIRE(second.qps[0]->ring_doorbell());
  pair.run(1s);
  REQUIRE(statuses(pair.client().send_completions) == Statuses{kOk});
  CHECK(pair.client().send_completions.completions[0].wr_id == 7);
}

// A peer that hands the server many packets while that cannot send.
struct Flood {
  Flood() : remote(pair.server().buffer(1U << 20)) {
    pair.fate = [](const WirePacket&) { return 0; };
  }
  wire::Packet packet(wire::Opcode opcode) const {
    wire::Packet made;
    made.info = &wire::info(opcode);
    made.bth = {.opcode = static_cast<std::uint8_t>(opcode),
                .destination = pair_qpn,
                .ack_request = true,
                .psn = wire::Psn{PairOptions{}.first_psn}};
    made.reth = {.address = remote.address, .rkey = wire::RKey{remote.key}, .length = 1U << 20};
    made.atomic = {.address = remote.address, .rkey = wire::RKey{remote.key}};
    return made;
  }
  void hand_over(const wire::Packet& flooded) {
    std::vector<std::uint8_t> bytes(64);
    bytes.resize(wire::write_headers(flooded, bytes) + wire::kIcrcSize);
    pair.server().device.handle_packet(
        pair.now(), {.path = pair.client().qp->path(), .bytes = bytes, .icrc_is_right = true});
  }
  std::size_t answers() {
    const std::size_t before = pair.log.size();
    pair.transmit();
    return pair.log.size() - before;
  }
  DevicePair pair;
  wire::Qpn pair_qpn = pair.server().qp->qpn();
  Node::Buffer remote;
};

constexpr int kMany = 10000;

TEST_CASE("many requests without a receive are answered once") {
  Flood flood;
  for (int i = 0; i < kMany; ++i) flood.hand_over(flood.packet(wire::Opcode::rc_send_only));
  CHECK(flood.answers() == 1);
}

TEST_CASE("many duplicates of atomics and WRITEs are answered about once each") {
  Flood flood;
  flood.hand_over(flood.packet(wire::Opcode::rc_fetch_add));
  REQUIRE(flood.answers() == 1);
  wire::Packet write = flood.packet(wire::Opcode::rc_write_only);
  for (int i = 0; i < kMany; ++i) {
    flood.hand_over(flood.packet(wire::Opcode::rc_fetch_add));
    flood.hand_over(write);
  }
  CHECK(flood.answers() <= 4);
}

TEST_CASE("many requests for parts of a READ are not all remembered") {
  Flood flood;
  const std::uint32_t packets = (1U << 20) / 1024;
  const wire::Packet whole = flood.packet(wire::Opcode::rc_read_request);
  flood.hand_over(whole);
  REQUIRE(flood.answers() == packets);
  // From ever earlier parts of it on, so that none is under way already.
  for (std::uint32_t i = 1; i < kMany; ++i) {
    const std::uint32_t part = packets - 1 - i % packets;
    wire::Packet read = whole;
    read.bth.psn = read.bth.psn + part;
    read.reth.address += std::uint64_t{part} * 1024;
    read.reth.length -= part * 1024;
    flood.hand_over(read);
  }
  CHECK(flood.answers() <= 8 * packets);
}

}  // namespace
}  // namespace urxe::test
