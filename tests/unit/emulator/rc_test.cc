#include <numeric>
#include <random>

#include <catch2/catch.hpp>

#include "tests/support/device_pair.h"

namespace urxe::test {
namespace {

using namespace emulator;

void fill(Node& node, const Node::Buffer& buffer, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::generate_n(node.bytes(buffer), buffer.size,
                  [&] { return static_cast<std::uint8_t>(random()); });
}

bool same(Node& a, const Node::Buffer& in_a, Node& b, const Node::Buffer& in_b, std::size_t size) {
  return std::equal(a.bytes(in_a), a.bytes(in_a) + size, b.bytes(in_b));
}

TEST_CASE("an RC SEND of any size arrives whole and completes on both sides") {
  const std::size_t size = GENERATE(0, 1, 3, 1023, 1024, 1025, 2048, 5000, 100000);
  DevicePair pair;
  const auto source = pair.client().buffer(size + 1);
  const auto sink = pair.server().buffer(size + 1);
  fill(pair.client(), source, 1);
  pair.post_receive(1, sink, 77);
  REQUIRE(pair.post(0, WorkOpcode::send, source, size));
  pair.run();
  REQUIRE(pair.client().send_completions.completions.size() == 1);
  CHECK(pair.client().send_completions.completions[0].status == CompletionStatus::success);
  REQUIRE(pair.server().receive_completions.completions.size() == 1);
  const Completion& received = pair.server().receive_completions.completions[0];
  CHECK(received.status == CompletionStatus::success);
  CHECK(received.wr_id == 77);
  CHECK(received.byte_count == size);
  CHECK(same(pair.client(), source, pair.server(), sink, size));
  // One acknowledgement, unless the message is so long that the window needs some on the way.
  const std::size_t packets = std::max<std::size_t>(1, (size + 1023) / 1024);
  CHECK(pair.log.size() >= packets + 1);
  CHECK(pair.log.size() <= packets + 1 + size / 10000);
}

TEST_CASE("RDMA WRITE and READ move data and complete at the requester only") {
  const std::size_t size = GENERATE(0, 1, 1024, 1025, 4096, 300000);
  DevicePair pair;
  const auto local = pair.client().buffer(size + 8);
  const auto remote = pair.server().buffer(size + 8);
  const bool read = GENERATE(false, true);
  fill(read ? pair.server() : pair.client(), read ? remote : local, 2);
  REQUIRE(pair.post(0, read ? WorkOpcode::rdma_read : WorkOpcode::rdma_write, local, size, remote));
  pair.run();
  REQUIRE(pair.client().send_completions.completions.size() == 1);
  CHECK(pair.client().send_completions.completions[0].status == CompletionStatus::success);
  CHECK(pair.server().receive_completions.completions.empty());
  CHECK(same(pair.client(), local, pair.server(), remote, size));
}

TEST_CASE("atomics change memory once and return what was there") {
  DevicePair pair;
  const auto local = pair.client().buffer(8);
  const auto remote = pair.server().buffer(8);
  std::uint64_t value = 40;
  std::memcpy(pair.server().bytes(remote), &value, 8);
  const bool swap = GENERATE(false, true);
  REQUIRE(pair.post(0, swap ? WorkOpcode::compare_swap : WorkOpcode::fetch_add, local, 8, remote,
                    [](OwnedSend& send) {
                      send.request.compare_or_add = 40;
                      send.request.swap = 99;
                    }));
  pair.run();
  std::memcpy(&value, pair.client().bytes(local), 8);
  CHECK(value == 40);
  std::memcpy(&value, pair.server().bytes(remote), 8);
  CHECK(value == (swap ? 99 : 80));
}

TEST_CASE("a mix of requests survives random loss, duplication and reordering of answers") {
  const auto seed = static_cast<unsigned>(GENERATE(range(0, 60)));
  PairOptions options;
  options.mtu = Mtu::bytes256;
  options.timeout = 10;
  DevicePair pair(options);
  std::mt19937 random(seed);
  const double loss = 0.1;
  std::uniform_real_distribution<double> chance(0, 1);
  pair.fate = [&](const WirePacket&) {
    const double roll = chance(random);
    if (roll < loss) return 0;
    return roll > 0.97 ? 2 : 1;
  };
  constexpr std::size_t kSize = 4000;
  struct Expected {
    Node::Buffer local, remote;
    WorkOpcode opcode;
  };
  std::vector<Expected> expected;
  std::uint64_t adds = 0;
  const auto counter = pair.server().buffer(8);
  for (int i = 0; i < 40; ++i) {
    const WorkOpcode opcode =
        std::array{WorkOpcode::send, WorkOpcode::rdma_write, WorkOpcode::rdma_read,
                   WorkOpcode::fetch_add}[random() % 4];
    const bool add = opcode == WorkOpcode::fetch_add;
    const std::size_t size = add ? 8 : random() % kSize + 1;
    Expected e{pair.client().buffer(size), add ? counter : pair.server().buffer(size), opcode};
    fill(pair.client(), e.local, seed + 1000 + static_cast<unsigned>(i));
    if (!add) fill(pair.server(), e.remote, seed + 2000 + static_cast<unsigned>(i));
    if (opcode == WorkOpcode::send) pair.post_receive(1, e.remote);
    REQUIRE(pair.post(0, opcode, e.local, size, e.remote, [&](OwnedSend& send) {
      send.request.wr_id = static_cast<std::uint64_t>(i);
      send.request.compare_or_add = 1;
    }));
    adds += add ? 1 : 0;
    expected.push_back(e);
  }
  pair.run(100s);
  const auto& completions = pair.client().send_completions.completions;
  REQUIRE(completions.size() == expected.size());
  std::uint64_t previous = 0;
  bool first_add = true;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("seed " << seed << " request " << i);
    REQUIRE(completions[i].status == CompletionStatus::success);
    CHECK(completions[i].wr_id == i);
    if (expected[i].opcode == WorkOpcode::fetch_add) {
      std::uint64_t value = 0;
      std::memcpy(&value, pair.client().bytes(expected[i].local), 8);
      if (!first_add) CHECK(value == previous + 1);
      first_add = false;
      previous = value;
    } else {
      CHECK(same(pair.client(), expected[i].local, pair.server(), expected[i].remote,
                 expected[i].local.size));
    }
  }
  std::uint64_t total = 0;
  std::memcpy(&total, pair.server().bytes(counter), 8);
  CHECK(total == adds);
  CHECK(pair.client().sends.held() == 0);
}

}  // namespace
}  // namespace urxe::test
