// What the requester does about lost packets: one ladder of packets after another.
#include <algorithm>
#include <cstring>

#include <catch2/catch.hpp>

#include "tests/support/device_pair.h"

namespace urxe::test {
namespace {

using namespace emulator;

// The n-th packet of a node is lost, from 0 on.
std::function<int(const WirePacket&)> losing(int node, std::vector<int> lost) {
  return [node, lost = std::move(lost), count = 0](const WirePacket& packet) mutable {
    if (packet.from != node) return 1;
    const int number = count++;
    return std::find(lost.begin(), lost.end(), number) == lost.end() ? 1 : 0;
  };
}

CompletionStatus only_status(const CompletionDouble& sink) {
  REQUIRE(sink.completions.size() == 1);
  return sink.completions[0].status;
}

TEST_CASE("a request of one packet that is lost is sent again") {
  DevicePair pair;
  const auto source = pair.client().buffer(8);
  pair.post_receive(1, pair.server().buffer(8));
  pair.fate = losing(0, {0});
  REQUIRE(pair.post(0, WorkOpcode::send, source, 8));
  pair.run();
  CHECK(only_status(pair.client().send_completions) == CompletionStatus::success);
  CHECK(pair.server().receive_completions.completions.size() == 1);
}

TEST_CASE("a READ in pieces asks again for a part of one piece at a time") {
  PairOptions options;
  options.device.read_window = 4 * 3 * 1024;  // pieces of three packets
  DevicePair pair(options);
  const auto local = pair.client().buffer(9 * 1024);
  const auto remote = pair.server().buffer(9 * 1024);
  std::memset(pair.server().bytes(remote), 0x77, remote.size);
  pair.fate = losing(1, {1});
  REQUIRE(pair.post(0, WorkOpcode::rdma_read, local, local.size, remote));
  pair.run();
  CHECK(only_status(pair.client().send_completions) == CompletionStatus::success);
  CHECK(pair.client().bytes(local)[local.size - 1] == 0x77);
  for (const WirePacket& packet : pair.log) {
    if (packet.from != 0) continue;
    const wire::Reth reth = packet.parsed().reth;
    const std::uint64_t first = reth.address - remote.address;
    CHECK(first / 3072 == (first + reth.length - 1) / 3072);
  }
}

// Four READs, of two packets each if nothing else is said.
struct FourReads {
  explicit FourReads(const PairOptions& options = {}, std::size_t size = 2048)
      : pair(options), local(pair.client().buffer(size)), remote(pair.server().buffer(size)) {}
  void post() {
    for (int i = 0; i < 4; ++i) {
      REQUIRE(pair.post(0, WorkOpcode::rdma_read, local, local.size, remote));
    }
  }
  [[nodiscard]] std::ptrdiff_t requests() const {
    return std::count_if(pair.log.begin(), pair.log.end(),
                         [](const WirePacket& packet) { return packet.from == 0; });
  }
  [[nodiscard]] bool all_succeeded() {
    const auto& found = pair.client().send_completions.completions;
    return found.size() == 4 && std::all_of(found.begin(), found.end(), [](const auto& one) {
             return one.status == CompletionStatus::success;
           });
  }

  DevicePair pair;
  Node::Buffer local;
  Node::Buffer remote;
};

TEST_CASE("a peer that answers READs late is asked again for the oldest, not for all") {
  PairOptions options;
  options.latency = 8ms;  // there and back: more than the first probe waits
  FourReads reads(options);
  reads.post();
  reads.pair.run(60ms);
  CHECK(reads.all_succeeded());
  CHECK(reads.pair.client().device.counters().probes == 1);
  CHECK(reads.requests() == 5);
  CHECK(reads.pair.client().device.counters().timeouts == 0);
}

TEST_CASE("READs that were all lost are found by two probes, before the ACK timer") {
  FourReads reads;
  reads.pair.fate = losing(0, {0, 1, 2, 3});
  reads.post();
  reads.pair.run(60ms);
  CHECK(reads.all_succeeded());
  CHECK(reads.requests() == 4 + 1 + 3);
  CHECK(reads.pair.client().device.counters().timeouts == 0);
}

TEST_CASE("after a loss half as many READ responses are asked for at a time") {
  FourReads reads({}, 32768);
  reads.pair.fate = losing(1, {0});
  reads.post();
  reads.pair.run();
  CHECK(reads.all_succeeded());
  std::vector<Time> sent;
  for (const WirePacket& packet : reads.pair.log) {
    if (packet.from == 0) sent.push_back(packet.sent);
  }
  REQUIRE(sent.size() == 8);
  CHECK(sent[0] == sent[3]);
  CHECK(sent[4] == sent[5]);
  CHECK(sent[5] < sent[6]);
}

TEST_CASE("of a long READ that lost an answer less is asked for at a time") {
  PairOptions options;
  options.device.read_window = 1 << 20;  // one piece
  DevicePair pair(options);
  constexpr std::size_t kPackets = 128;
  const auto local = pair.client().buffer(kPackets * 1024);
  const auto remote = pair.server().buffer(local.size);
  for (std::size_t i = 0; i < remote.size; ++i) {
    pair.server().bytes(remote)[i] = static_cast<std::uint8_t>(i / 1024 + i);
  }
  pair.fate = losing(1, {8});
  REQUIRE(pair.post(0, WorkOpcode::rdma_read, local, local.size, remote));
  pair.run();
  CHECK(only_status(pair.client().send_completions) == CompletionStatus::success);
  CHECK(std::memcmp(pair.client().bytes(local), pair.server().bytes(remote), local.size) == 0);
  std::vector<std::uint64_t> asked;  // packets, and from where
  std::uint64_t next = 8;
  for (const WirePacket& packet : pair.log) {
    if (packet.from != 0) continue;
    const wire::Reth reth = packet.parsed().reth;
    asked.push_back(reth.length / 1024);
    if (asked.size() == 1) continue;
    CHECK(reth.address == remote.address + next * 1024);
    next += asked.back();
  }
  REQUIRE(asked.size() > 2);
  CHECK(asked[0] == kPackets);
  CHECK(asked[1] == (kPackets - 8) / 2);
  CHECK(next == kPackets);
}

TEST_CASE("no probe is sent while a peer still answers what it was asked before") {
  FourReads reads;
  reads.pair.fate = [](const WirePacket&) { return 0; };
  reads.post();
  reads.pair.run(0s);
  wire::Packet stale;
  stale.info = &wire::info(wire::Opcode::rc_read_response_middle);
  stale.bth.psn = wire::Psn{PairOptions{}.first_psn - 1};
  for (int i = 0; i < 8; ++i) {
    reads.pair.advance(3ms);
    reads.pair.inject(0, stale, std::vector<std::uint8_t>(1024));
    reads.pair.run(0s);
  }
  CHECK(reads.requests() == 4);
  reads.pair.run(11ms);
  CHECK(reads.requests() == 5);
}

TEST_CASE("a probe for a READ asks for what is missing of it") {
  FourReads reads;
  reads.pair.fate = losing(1, {1, 2, 3, 4, 5, 6, 7});
  reads.post();
  reads.pair.run(540us);
  REQUIRE(reads.requests() == 5);
  const auto last = std::find_if(reads.pair.log.rbegin(), reads.pair.log.rend(),
                                 [](const WirePacket& packet) { return packet.from == 0; });
  CHECK(last->parsed().reth.address == reads.remote.address + 1024);
  CHECK(last->parsed().reth.length == 1024);
  reads.pair.run(60ms);
  CHECK(reads.all_succeeded());
}

}  // namespace
}  // namespace urxe::test
