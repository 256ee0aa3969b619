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

}  // namespace
}  // namespace urxe::test
