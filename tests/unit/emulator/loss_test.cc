// What the requester does about lost packets: one ladder of packets after another.
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

}  // namespace
}  // namespace urxe::test
