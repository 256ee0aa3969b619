// ATOMIC WRITE and FLUSH: the memory placement extensions of IBTA 1.5, annex A19.
#include <algorithm>
#include <array>
#include <cstring>

#include <catch2/catch.hpp>

#include "tests/support/device_pair.h"

namespace urxe::test {
namespace {

using namespace emulator;

constexpr Access kAll = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kFlushGlobal;

PairOptions with_flush() {
  PairOptions options;
  options.access = kAll;
  return options;
}

struct Placing {
  Placing() : Placing(with_flush()) {}
  explicit Placing(const PairOptions& options) : pair(options) {}

  void write(std::uint64_t value, std::uint64_t offset = 0) {
    REQUIRE(pair.post(0, WorkOpcode::atomic_write, {}, 0, remote, [&](OwnedSend& send) {
      send.sges.clear();
      send.inline_data.resize(sizeof(value));
      std::memcpy(send.inline_data.data(), &value, sizeof(value));
      send.request.length = sizeof(value);
      send.request.remote_address += offset;
    }));
  }
  void flush(const FlushRange& range) {
    REQUIRE(pair.post(0, WorkOpcode::flush, {}, 0, remote, [&](OwnedSend& send) {
      send.sges.clear();
      send.request.flush = range;
    }));
  }
  std::uint64_t there() {
    std::uint64_t value = 0;
    std::memcpy(&value, pair.server().bytes(remote), sizeof(value));
    return value;
  }
  std::vector<Completion>& completions() { return pair.client().send_completions.completions; }
  [[nodiscard]] std::size_t sent(wire::Opcode opcode) const {
    return static_cast<std::size_t>(std::count_if(
        pair.log.begin(), pair.log.end(),
        [opcode](const WirePacket& packet) { return packet.parsed().info->opcode == opcode; }));
  }

  DevicePair pair;
  Node::Buffer remote = pair.server().buffer(4096, kAll);
};

constexpr FlushRange kFlush{.length = 4096, .placement = wire::Feth::kGlobalVisibility};

TEST_CASE("an ATOMIC WRITE stores its eight bytes, and a READ response without data answers it") {
  Placing placing;
  placing.write(0x0123456789ABCDEF);
  placing.pair.run();
  CHECK(placing.there() == 0x0123456789ABCDEF);
  REQUIRE(placing.completions().size() == 1);
  CHECK(placing.completions()[0].status == CompletionStatus::success);
  CHECK(placing.completions()[0].opcode == CompletionOpcode::atomic_write);
  REQUIRE(placing.pair.log.size() == 2);
  const wire::Packet request = placing.pair.log[0].parsed();
  CHECK(request.info->opcode == wire::Opcode::rc_atomic_write);
  CHECK(request.reth.length == 8);
  CHECK(request.payload.size() == 8);
  const wire::Packet answer = placing.pair.log[1].parsed();
  CHECK(answer.info->opcode == wire::Opcode::rc_read_response_only);
  CHECK(answer.payload.empty());
  CHECK(answer.bth.psn == request.bth.psn);
}

TEST_CASE("a FLUSH names its range and its placement, and a READ response answers it") {
  Placing placing;
  placing.flush(kFlush);
  placing.pair.run();
  REQUIRE(placing.completions().size() == 1);
  CHECK(placing.completions()[0].status == CompletionStatus::success);
  CHECK(placing.completions()[0].opcode == CompletionOpcode::flush);
  REQUIRE(placing.pair.log.size() == 2);
  const wire::Packet request = placing.pair.log[0].parsed();
  CHECK(request.info->opcode == wire::Opcode::rc_flush);
  CHECK(request.reth.length == 4096);
  CHECK(request.feth == wire::Feth{.placement = 1, .selectivity = 0});
  CHECK(placing.pair.log[1].parsed().info->opcode == wire::Opcode::rc_read_response_only);
}

TEST_CASE("a FLUSH of a whole region asks for its key, not for a range") {
  Placing placing;
  FlushRange whole = kFlush;
  whole.length = 1U << 30;
  const bool in_range_only = GENERATE(false, true);
  if (!in_range_only) whole.selectivity = wire::Feth::kWholeRegion;
  placing.flush(whole);
  placing.pair.run();
  REQUIRE(placing.completions().size() == 1);
  CHECK(placing.completions()[0].status ==
        (in_range_only ? CompletionStatus::remote_access_error : CompletionStatus::success));
}

TEST_CASE("a FLUSH that the region's access flags do not allow is a remote access error") {
  Placing placing;
  SECTION("the region lacks FLUSH_GLOBAL") {
    placing.remote = placing.pair.server().buffer(4096);
    placing.flush(kFlush);
    placing.pair.run();
    CHECK(placing.completions().at(0).status == CompletionStatus::remote_access_error);
  }
  SECTION("the queue pair lacks FLUSH_PERSISTENT") {
    FlushRange persistent = kFlush;
    persistent.placement = wire::Feth::kPersistence;
    placing.flush(persistent);
    placing.pair.run();
    CHECK(placing.completions().at(0).status == CompletionStatus::remote_invalid_request);
  }
}

TEST_CASE("an ATOMIC WRITE to an address that is no multiple of 8 is an invalid request") {
  Placing placing;
  placing.write(1, 4);
  placing.pair.run();
  CHECK(placing.completions().at(0).status == CompletionStatus::remote_invalid_request);
  CHECK(placing.there() == 0);
}

TEST_CASE("an ATOMIC WRITE of other than eight bytes is a local length error") {
  Placing placing;
  REQUIRE(
      placing.pair.post(0, WorkOpcode::atomic_write, {}, 0, placing.remote, [](OwnedSend& send) {
        send.sges.clear();
        send.inline_data.resize(16);
        send.request.length = 16;
      }));
  placing.pair.run();
  CHECK(placing.completions().at(0).status == CompletionStatus::local_length_error);
}

TEST_CASE("an ATOMIC WRITE whose answer is lost is not executed again") {
  Placing placing;
  bool lost = false;
  placing.pair.fate = [&](const WirePacket& packet) {
    if (packet.from != 1 || lost) return 1;
    lost = true;
    const std::uint64_t program = 77;  // the program changes it meanwhile
    std::memcpy(placing.pair.server().bytes(placing.remote), &program, sizeof(program));
    return 0;
  };
  placing.write(5);
  placing.pair.run();
  REQUIRE(placing.completions().size() == 1);
  CHECK(placing.completions()[0].status == CompletionStatus::success);
  CHECK(placing.there() == 77);
  CHECK(placing.sent(wire::Opcode::rc_atomic_write) >= 2);
}

TEST_CASE("placement requests keep their order among others through loss") {
  const auto seed = static_cast<unsigned>(GENERATE(range(1, 20)));
  PairOptions options = with_flush();
  options.timeout = 10;
  Placing placing(options);
  unsigned state = seed;
  placing.pair.fate = [&](const WirePacket&) {
    state = state * 1103515245U + 12345U;
    return (state >> 16) % 8 == 0 ? 0 : 1;
  };
  const auto local = placing.pair.client().buffer(3000);
  for (std::uint64_t i = 1; i <= 10; ++i) {
    REQUIRE(placing.pair.post(0, WorkOpcode::rdma_write, local, 3000, placing.remote));
    placing.flush(kFlush);
    placing.write(i);
    REQUIRE(placing.pair.post(0, WorkOpcode::rdma_read, local, 3000, placing.remote));
  }
  placing.pair.run(100s);
  REQUIRE(placing.completions().size() == 40);
  for (const Completion& completion : placing.completions()) {
    CHECK(completion.status == CompletionStatus::success);
  }
  CHECK(placing.there() == 10);
  std::uint64_t read = 0;
  std::memcpy(&read, placing.pair.client().bytes(local), sizeof(read));
  CHECK(read == 10);
}

TEST_CASE("an answer with data to a FLUSH is a bad response") {
  Placing placing;
  placing.flush(kFlush);
  placing.pair.fate = [](const WirePacket& packet) { return packet.from == 1 ? 0 : 1; };
  placing.pair.transmit();
  wire::Packet answer;
  answer.info = &wire::info(wire::Opcode::rc_read_response_only);
  answer.bth.psn = placing.pair.log.at(0).parsed().bth.psn;
  answer.aeth.syndrome = wire::Syndrome::ack();
  placing.pair.inject(0, answer, std::vector<std::uint8_t>(8));
  CHECK(placing.completions().at(0).status == CompletionStatus::bad_response);
}

TEST_CASE("a peer without memory for an ATOMIC WRITE answers with a remote access error") {
  Placing placing;
  placing.pair.server().memory.unmap(placing.remote.address);
  placing.write(1);
  placing.pair.run();
  CHECK(placing.completions().at(0).status == CompletionStatus::remote_access_error);
}

}  // namespace
}  // namespace urxe::test
