// What implementations are known to get wrong in the bits and bytes of their packets: the BTH,
// padding, immediate data. The names of the tests say what is right.
#include <catch2/catch.hpp>

#include "tests/unit/emulator/trap.h"

namespace urxe::test {
namespace {

using namespace emulator;

// --- fields of the BTH

TEST_CASE("packets go out with the migration bit set, and come in with and without it") {
  Trap t;
  t.post(WorkOpcode::rdma_read, 3000);
  t.pair.run();
  for (const WirePacket& packet : t.pair.log) CHECK(packet.parsed().bth.migration);
  const bool migration = GENERATE(true, false);
  wire::Packet write = t.raw(wire::Opcode::rc_write_only, 3);
  write.bth.migration = migration;
  write.reth.length = 4;
  t.pair.inject(1, write, {1, 2, 3, 4});
  CHECK(t.pair.server().bytes(t.remote)[3] == 4);
}

TEST_CASE("any UDP source port is accepted") {
  Trap t;
  t.post(WorkOpcode::rdma_write, 8);
  t.pair.transmit();
  WirePacket packet = t.pair.log.at(0);
  packet.path.source_port = GENERATE(std::uint16_t{1}, std::uint16_t{69}, std::uint16_t{72},
                                     std::uint16_t{4791}, std::uint16_t{65535});
  t.pair.server().device.handle_packet(
      t.pair.now(), {.path = packet.path, .bytes = packet.bytes, .icrc_is_right = true});
  CHECK(t.pair.server().device.has_output());
}

TEST_CASE("a packet with a wrong ICRC, version, opcode, pad, queue pair or key is not answered") {
  Trap t;
  t.post(WorkOpcode::rdma_write, 7);
  t.pair.transmit();
  const WirePacket good = t.pair.log.at(0);
  const auto handle = [&](std::vector<std::uint8_t> bytes, bool icrc = true) {
    t.pair.server().device.handle_packet(
        t.pair.now(), {.path = good.path, .bytes = bytes, .icrc_is_right = icrc});
    CHECK_FALSE(t.pair.server().device.has_output());
    CHECK(t.pair.server().bytes(t.remote)[0] == 0);
  };
  std::memset(t.pair.client().bytes(t.local), 1, 8);
  handle(good.bytes, false);
  const auto changed = [&](std::size_t at, std::uint8_t value) {
    auto bytes = good.bytes;
    bytes.at(at) = value;
    return bytes;
  };
  handle(changed(0, 0x15));                  // reserved opcode
  handle(changed(0, 0x40));                  // RD
  handle(changed(0, 0x64));                  // UD
  handle(changed(1, 0x41));                  // TVer 1
  handle(changed(2, 0x12));                  // P_Key
  handle(changed(7, good.bytes[7] ^ 0x40));  // QPN
  const std::size_t headers = wire::info(wire::Opcode::rc_write_only).header_size();
  for (std::size_t size = 0; size < headers + wire::kIcrcSize; ++size) {
    handle({good.bytes.begin(), good.bytes.begin() + static_cast<std::ptrdiff_t>(size)});
  }
  CHECK(t.pair.server().device.counters().icrc_errors == 1);
  CHECK(t.pair.server().qp->state() == QpState::ready_to_send);
}

TEST_CASE("a P_Key matches but for the membership bit, if one side is a full member") {
  Trap t;
  wire::Packet write = t.raw(wire::Opcode::rc_write_only, 0);
  write.reth.length = 4;
  struct Key {
    std::uint16_t value;
    bool matches;
  };
  const Key key = GENERATE(Key{0xFFFF, true}, Key{0x7FFF, true}, Key{0x8001, false},
                           Key{0x0000, false}, Key{0x8000, false});
  write.bth.pkey = wire::PKey{key.value};
  t.pair.inject(1, write, {1, 2, 3, 4});
  CHECK((t.pair.server().bytes(t.remote)[3] == 4) == key.matches);
}

// --- bytes

TEST_CASE("first and middle packets are full, and pad bytes are zero") {
  Trap t;
  std::memset(t.pair.client().bytes(t.local), 0xFF, 8192);
  const std::size_t length = GENERATE(1, 2, 3, 1025, 3001);
  t.pair.post_receive(1, t.remote);
  t.post(WorkOpcode::send, length);
  t.pair.run();
  for (const WirePacket& raw : requests(t.pair, 0)) {
    const wire::Packet packet = raw.parsed();
    if (!packet.info->ends_message()) CHECK(packet.payload.size() == 1024);
    CHECK(packet.bth.pad_count == (4 - packet.payload.size() % 4) % 4);
    for (std::size_t i = 0; i < packet.bth.pad_count; ++i) {
      CHECK(raw.bytes[raw.bytes.size() - wire::kIcrcSize - 1 - i] == 0);
    }
  }
}

TEST_CASE("the solicited bit is on the last packet of SENDs and of WRITEs with immediate only") {
  const auto opcode =
      GENERATE(WorkOpcode::send, WorkOpcode::send_with_immediate, WorkOpcode::rdma_write,
               WorkOpcode::rdma_write_with_immediate, WorkOpcode::rdma_read, WorkOpcode::fetch_add);
  const bool may = opcode != WorkOpcode::rdma_write && opcode != WorkOpcode::rdma_read &&
                   opcode != WorkOpcode::fetch_add;
  Trap t;
  t.pair.post_receive(1, t.remote);
  t.post(opcode, opcode == WorkOpcode::fetch_add ? 8 : 3000,
         [](OwnedSend& send) { send.request.flags = kSignaled | kSolicited; });
  t.pair.run();
  const auto sent = sent_by(t.pair, 0);
  for (const wire::Packet& packet : sent) {
    CHECK(packet.bth.solicited == (may && packet.info->ends_message()));
  }
}

TEST_CASE("a solicited message wakes a receiver that waits for solicited ones") {
  Trap t;
  const bool solicited = GENERATE(false, true);
  Node& server = t.pair.server();
  server.receive_cq->request_notification(Notify::solicited);
  t.pair.post_receive(1, t.remote);
  t.post(WorkOpcode::send, 8, [solicited](OwnedSend& send) {
    send.request.flags = solicited ? kSignaled | kSolicited : kSignaled;
  });
  t.pair.run();
  CHECK((server.device.poll_completion_event() == server.receive_cq) == solicited);
}

TEST_CASE("immediate data arrive as they were given, with the flag") {
  const auto opcode =
      GENERATE(WorkOpcode::send_with_immediate, WorkOpcode::rdma_write_with_immediate);
  const std::size_t length = GENERATE(0, 8, 3000);
  Trap t;
  t.pair.post_receive(1, t.remote, 9);
  t.post(opcode, length, [](OwnedSend& send) { send.request.immediate = 0x12345678; });
  t.pair.run();
  t.check_success(1);
  const auto& received = t.pair.server().receive_completions.completions;
  REQUIRE(received.size() == 1);
  CHECK(received[0].immediate == 0x12345678);
  CHECK(received[0].flags == kWithImmediate);
  CHECK(received[0].byte_count == length);
  CHECK(received[0].opcode == (opcode == WorkOpcode::send_with_immediate
                                   ? CompletionOpcode::receive
                                   : CompletionOpcode::receive_rdma_with_immediate));
}

}  // namespace
}  // namespace urxe::test
