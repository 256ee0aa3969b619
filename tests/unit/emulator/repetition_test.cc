// What implementations are known to get wrong about requests that are made twice: READs, atomics,
// and local operations between them. The names of the tests say what is right.
#include <catch2/catch.hpp>

#include "tests/unit/emulator/trap.h"

namespace urxe::test {
namespace {

using namespace emulator;

std::uint64_t load(Node& node, const Node::Buffer& buffer) {
  std::uint64_t value = 0;
  std::memcpy(&value, node.bytes(buffer), sizeof(value));
  return value;
}

// --- READs and atomics that are asked for again

TEST_CASE("a duplicate atomic gets the saved result, and is not executed again") {
  const auto opcode = GENERATE(WorkOpcode::fetch_add, WorkOpcode::compare_swap);
  Trap t;
  const std::uint64_t before = 40;
  std::memcpy(t.pair.server().bytes(t.remote), &before, 8);
  t.post(opcode, 8, [](OwnedSend& send) {
    send.request.compare_or_add = 40;
    send.request.swap = 99;
  });
  t.lose(1, {0, 1, 2});
  t.pair.run();
  t.check_success(1);
  CHECK(load(t.pair.client(), t.local) == 40);
  CHECK(load(t.pair.server(), t.remote) == (opcode == WorkOpcode::fetch_add ? 80 : 99));
  CHECK(t.pair.server().device.counters().duplicate_requests >= 3);
}

TEST_CASE("the saved result of an atomic survives others that come after it") {
  PairOptions options;
  options.read_atomic = 4;
  Trap t(options);
  for (int i = 0; i < 4; ++i) {
    t.post(WorkOpcode::fetch_add, 8, [&](OwnedSend& send) {
      send.request.compare_or_add = 1;
      send.sges[0].address += static_cast<std::uint64_t>(8 * i);
    });
  }
  t.lose(1, {0});
  t.pair.run();
  t.check_success(4);
  for (std::uint64_t i = 0; i < 4; ++i) {
    std::uint64_t result = 0;
    std::memcpy(&result, t.pair.client().bytes(t.local) + 8 * i, 8);
    CHECK(result == i);
  }
  CHECK(load(t.pair.server(), t.remote) == 4);
}

TEST_CASE("a duplicate atomic whose result is gone, or that is another operation, is dropped") {
  PairOptions options;
  options.read_atomic = 1;
  Trap t(options);
  t.pair.inject(1, t.raw(wire::Opcode::rc_fetch_add, 0));
  t.pair.inject(1, t.raw(wire::Opcode::rc_fetch_add, 1));
  t.pair.inject(1, t.raw(wire::Opcode::rc_fetch_add, 0));
  CHECK(sent_by(t.pair, 1).size() == 2);
  t.pair.inject(1, t.raw(wire::Opcode::rc_read_request, 1));
  CHECK(sent_by(t.pair, 1).size() == 2);
  t.pair.inject(1, t.raw(wire::Opcode::rc_fetch_add, 1));
  CHECK(sent_by(t.pair, 1).size() == 3);
  CHECK(load(t.pair.server(), t.remote) == 2);
  CHECK(t.pair.server().qp->state() == QpState::ready_to_send);
}

TEST_CASE("a duplicate READ may ask for a part of the original, and for nothing else") {
  Trap t;
  wire::Packet read = t.raw(wire::Opcode::rc_read_request, 0);
  read.reth.length = 4096;
  t.pair.inject(1, read);
  REQUIRE(sent_by(t.pair, 1).size() == 4);
  const auto ask_again = [&](std::uint32_t offset, std::int64_t address, std::uint32_t length,
                             std::uint32_t key) {
    wire::Packet again = t.raw(wire::Opcode::rc_read_request, offset);
    again.reth = {.address = t.remote.address + static_cast<std::uint64_t>(address),
                  .rkey = wire::RKey{key},
                  .length = length};
    const std::size_t before = sent_by(t.pair, 1).size();
    t.pair.inject(1, again);
    return sent_by(t.pair, 1).size() - before;
  };
  CHECK(ask_again(1, 1024, 3072, t.remote.key) == 3);
  CHECK(ask_again(3, 3072, 1024, t.remote.key) == 1);
  CHECK(ask_again(0, 0, 1024, t.remote.key) == 1);
  CHECK(ask_again(0, 0, 4097, t.remote.key) == 0);
  CHECK(ask_again(1, 0, 1024, t.remote.key) == 0);
  CHECK(ask_again(1, 1024, 4096, t.remote.key) == 0);
  CHECK(ask_again(1, 1024, 3072, t.remote.key ^ 1) == 0);
  CHECK(t.pair.server().qp->state() == QpState::ready_to_send);
}

TEST_CASE("a READ that is asked for again when its memory is gone ends no connection") {
  Trap t;
  t.post(WorkOpcode::rdma_read, 3000);
  t.pair.run();
  t.check_success(1);
  const wire::Packet read = sent_by(t.pair, 0).front();
  REQUIRE(t.pair.server().device.destroy(*t.pair.server().regions.back()));
  t.pair.inject(1, read);  // from a requester that was only impatient
  const wire::Packet answer = sent_by(t.pair, 1).back();
  CHECK(answer.aeth.syndrome == wire::Syndrome::nak(wire::NakCode::remote_access_error));
  CHECK(answer.bth.psn == read.bth.psn);
  CHECK(t.pair.server().qp->state() == QpState::ready_to_send);
  CHECK_FALSE(t.pair.server().device.poll_async_event());
  t.remote = t.pair.server().buffer(64);
  t.post(WorkOpcode::rdma_write, 8);
  t.pair.run();
  t.check_success(2);
}

TEST_CASE("a READ asks again only from the first missing response on") {
  Trap t;
  std::memset(t.pair.server().bytes(t.remote), 0x42, 5000);
  t.post(WorkOpcode::rdma_read, 5000);
  t.lose(1, {2});
  t.pair.run();
  t.check_success(1);
  const auto asked = sent_by(t.pair, 0);
  REQUIRE(asked.size() == 2);
  CHECK(asked[1].bth.psn == asked[0].bth.psn + 2);
  CHECK(asked[1].reth.address == asked[0].reth.address + 2048);
  CHECK(asked[1].reth.length == 5000 - 2048);
  CHECK(t.pair.client().bytes(t.local)[4999] == 0x42);
}

TEST_CASE("a requester stalls rather than have more READs outstanding than max_rd_atomic") {
  PairOptions options;
  options.read_atomic = GENERATE(std::uint8_t{1}, std::uint8_t{3});
  Trap t(options);
  for (int i = 0; i < 8; ++i) t.post(i % 2 == 0 ? WorkOpcode::rdma_read : WorkOpcode::fetch_add, 8);
  int outstanding = 0;
  t.pair.fate = [&](const WirePacket& packet) {
    outstanding += packet.from == 0 ? 1 : -1;
    CHECK(outstanding <= options.read_atomic);
    return 1;
  };
  t.pair.run();
  t.check_success(8);
}

TEST_CASE("a fence waits for the responses of READs and atomics") {
  Trap t;
  t.post(WorkOpcode::rdma_read, 8);
  t.post(WorkOpcode::fetch_add, 8);
  t.post(WorkOpcode::rdma_write, 8,
         [](OwnedSend& send) { send.request.flags = kSignaled | kFence; });
  t.pair.transmit();
  CHECK(sent_by(t.pair, 0).size() == 2);
  t.pair.deliver_next();
  t.pair.deliver_next();
  t.pair.deliver_next();
  CHECK(sent_by(t.pair, 0).size() == 2);
  t.pair.run();
  CHECK(sent_by(t.pair, 0).size() == 3);
  t.check_success(3);
}

// --- local operations

TEST_CASE("a retry does not execute a bind or an invalidation before it again") {
  Trap t;
  Node& client = t.pair.client();
  MemoryWindow* window = *client.device.create_window(*client.pd, WindowType::type2);
  const wire::RKey first{window->key()};
  const wire::RKey second{(window->key() & ~0xFFU) | ((window->key() + 9) & 0xFF)};
  t.post(WorkOpcode::rdma_write, 8);
  t.post(WorkOpcode::bind_window, 0, [&](OwnedSend& send) {
    send.request.bind = {.address = t.local.address,
                         .length = 8,
                         .region = wire::LKey{t.local.key},
                         .window = first,
                         .new_key = second,
                         .access = kRemoteRead};
  });
  t.post(WorkOpcode::rdma_write, 8);
  t.post(WorkOpcode::local_invalidate, 0,
         [&](OwnedSend& send) { send.request.invalidate = second; });
  t.post(WorkOpcode::rdma_write, 8);
  t.lose(0, {0, 1, 2, 3, 4});
  t.pair.run();
  t.check_success(5);
  CHECK(client.qp->state() == QpState::ready_to_send);
}

TEST_CASE("local operations complete in their turn, not when they are executed") {
  Trap t;
  Node& client = t.pair.client();
  MemoryWindow* window = *client.device.create_window(*client.pd, WindowType::type1);
  t.post(WorkOpcode::rdma_write, 8, [](OwnedSend& send) { send.request.wr_id = 1; });
  t.post(WorkOpcode::bind_window, 0, [&](OwnedSend& send) {
    send.request.wr_id = 2;
    send.request.bind = {.window = wire::RKey{window->key()}, .new_key = wire::RKey{7}};
  });
  t.pair.transmit();
  CHECK(client.send_completions.completions.empty());
  t.pair.run();
  REQUIRE(client.send_completions.completions.size() == 2);
  CHECK(client.send_completions.completions[0].wr_id == 1);
  CHECK(client.send_completions.completions[1].wr_id == 2);
}

}  // namespace
}  // namespace urxe::test
