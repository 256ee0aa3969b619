// What implementations of the transport are known to have got wrong, or to disagree about. The
// names of the tests say what is right.
#include <catch2/catch.hpp>

#include "tests/support/outcomes.h"

namespace urxe::test {
namespace {

using namespace emulator;

using Statuses = std::vector<CompletionStatus>;
constexpr auto kOk = CompletionStatus::success;

std::vector<wire::Packet> sent_by(const DevicePair& pair, int node) {
  std::vector<wire::Packet> packets;
  for (const WirePacket& packet : pair.log) {
    if (packet.from == node) packets.push_back(packet.parsed());
  }
  return packets;
}

std::uint64_t load(Node& node, const Node::Buffer& buffer) {
  std::uint64_t value = 0;
  std::memcpy(&value, node.bytes(buffer), sizeof(value));
  return value;
}

struct Trap {
  Trap() : Trap(PairOptions{}) {}
  explicit Trap(const PairOptions& options)
      : pair(options), local(pair.client().buffer(8192)), remote(pair.server().buffer(8192)) {}
  void post(
      WorkOpcode opcode, std::size_t length,
      const std::function<void(OwnedSend&)>& adjust = [](OwnedSend&) {}) {
    REQUIRE(pair.post(0, opcode, local, length, remote, adjust));
  }
  // Loses the packets of a node that have these numbers, from 0 on.
  void lose(int node, std::vector<int> numbers) {
    pair.fate = [node, numbers = std::move(numbers), count = 0](const WirePacket& packet) mutable {
      if (packet.from != node) return 1;
      return std::find(numbers.begin(), numbers.end(), count++) == numbers.end() ? 1 : 0;
    };
  }
  void check_success(std::size_t requests) {
    CHECK(statuses(pair.client().send_completions) == Statuses(requests, kOk));
  }
  wire::Packet raw(wire::Opcode opcode, std::uint32_t offset) const {
    wire::Packet packet;
    packet.info = &wire::info(opcode);
    packet.bth.psn = wire::Psn{PairOptions{}.first_psn} + offset;
    packet.reth = {.address = remote.address, .rkey = wire::RKey{remote.key}, .length = 0};
    packet.atomic = {.address = remote.address, .rkey = wire::RKey{remote.key}, .swap_or_add = 1};
    return packet;
  }
  DevicePair pair;
  Node::Buffer local;
  Node::Buffer remote;
};

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

// --- sequence numbers

TEST_CASE("the responder naks an out-of-order PSN once, then waits in silence") {
  Trap t;
  for (std::uint32_t offset = 1; offset < 6; ++offset) {
    t.pair.inject(1, t.raw(wire::Opcode::rc_write_only, offset));
  }
  auto acks = acknowledgements(t.pair, 1);
  REQUIRE(acks.size() == 1);
  CHECK(acks[0].syndrome == wire::Syndrome::nak(wire::NakCode::psn_sequence_error));
  CHECK(sent_by(t.pair, 1)[0].bth.psn == wire::Psn{PairOptions{}.first_psn});
  // The expected packet ends the silence: the next gap is told again.
  t.pair.inject(1, t.raw(wire::Opcode::rc_write_only, 0));
  t.pair.inject(1, t.raw(wire::Opcode::rc_write_only, 2));
  acks = acknowledgements(t.pair, 1);
  REQUIRE(acks.size() == 2);
  CHECK(sent_by(t.pair, 1)[1].bth.psn == wire::Psn{PairOptions{}.first_psn + 1});
}

TEST_CASE("a duplicate SEND or WRITE is acknowledged with the latest PSN and not executed") {
  Trap t;
  t.pair.post_receive(1, t.remote, 1);
  t.pair.post_receive(1, t.remote, 2);
  t.pair.inject(1, t.raw(wire::Opcode::rc_send_only, 0), {1, 1, 1, 1});
  wire::Packet write = t.raw(wire::Opcode::rc_write_only, 1);
  write.reth.length = 4;
  t.pair.inject(1, write, {2, 2, 2, 2});
  t.pair.inject(1, t.raw(wire::Opcode::rc_send_only, 0), {3, 3, 3, 3});
  write.bth.psn = wire::Psn{PairOptions{}.first_psn};
  t.pair.inject(1, write, {4, 4, 4, 4});
  const auto answers = sent_by(t.pair, 1);
  REQUIRE(answers.size() == 2);
  for (const wire::Packet& answer : answers) {
    CHECK(answer.aeth.syndrome == wire::Syndrome::ack());
    CHECK(answer.bth.psn == wire::Psn{PairOptions{}.first_psn + 1});
    CHECK(answer.aeth.msn == wire::Msn{2});
  }
  CHECK(t.pair.server().bytes(t.remote)[0] == 2);
  CHECK(t.pair.server().receive_completions.completions.size() == 1);
}

TEST_CASE("a READ takes as many PSNs as its response has packets, and at least one") {
  const std::size_t length = GENERATE(0, 1, 1024, 1025, 3000);
  const std::uint32_t packets =
      length == 0 ? 1 : static_cast<std::uint32_t>((length + 1023) / 1024);
  Trap t;
  t.post(WorkOpcode::rdma_read, length);
  t.post(WorkOpcode::rdma_write, 8);
  t.pair.run();
  t.check_success(2);
  const auto asked = sent_by(t.pair, 0);
  REQUIRE(asked.size() == 2);
  CHECK(asked[1].bth.psn == asked[0].bth.psn + packets);
  const auto answers = sent_by(t.pair, 1);
  REQUIRE(answers.size() == packets + 1);
  for (std::uint32_t i = 0; i < packets; ++i) CHECK(answers[i].bth.psn == asked[0].bth.psn + i);
}

TEST_CASE("the AETH is on the first and the last READ response, not on the middle ones") {
  Trap t;
  t.post(WorkOpcode::rdma_read, 5000);
  t.pair.run();
  const auto answers = sent_by(t.pair, 1);
  REQUIRE(answers.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(answers[i].info->has(wire::Header::aeth) == (i == 0 || i == 4));
  }
}

TEST_CASE("the MSN counts messages when they are executed, a READ before its last response") {
  Trap t;
  t.post(WorkOpcode::rdma_write, 3000);
  t.post(WorkOpcode::rdma_read, 3000);
  t.post(WorkOpcode::fetch_add, 8);
  t.pair.run();
  std::vector<std::uint32_t> msns;
  for (const wire::Packet& answer : sent_by(t.pair, 1)) {
    if (answer.info->has(wire::Header::aeth)) msns.push_back(answer.aeth.msn.value());
  }
  CHECK(msns == std::vector<std::uint32_t>{1, 2, 2, 3});
}

// --- acknowledgements

TEST_CASE("a READ response acknowledges everything before it") {
  Trap t;
  t.post(WorkOpcode::rdma_write, 8);
  t.post(WorkOpcode::rdma_read, 8);
  t.lose(1, {0});  // the WRITE's acknowledgement
  t.pair.run();
  t.check_success(2);
  CHECK(sent_by(t.pair, 0).size() == 2);
  CHECK(t.pair.client().device.counters().retransmitted_packets == 0);
}

TEST_CASE("a later acknowledgement does not complete a READ or an atomic without a response") {
  const auto opcode = GENERATE(WorkOpcode::rdma_read, WorkOpcode::fetch_add);
  Trap t;
  std::memset(t.pair.server().bytes(t.remote), 0x42, 8);
  t.post(opcode, 8);
  t.post(WorkOpcode::send, 0);
  t.pair.post_receive(1, t.remote);
  t.lose(1, {0});
  t.pair.run();
  t.check_success(2);
  CHECK(t.pair.client().bytes(t.local)[0] == 0x42);
  CHECK(t.pair.client().device.counters().lost_read_responses == 1);
  CHECK(t.pair.client().device.counters().timeouts == 0);
}

TEST_CASE("every last packet asks for an acknowledgement, and the responder sends none unasked") {
  Trap t;
  t.post(WorkOpcode::rdma_write, 5000);
  t.pair.run();
  const auto asked = sent_by(t.pair, 0);
  REQUIRE(asked.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) CHECK(asked[i].bth.ack_request == (i == 4));
  CHECK(sent_by(t.pair, 1).size() == 1);
  // A message whose packets do not ask gets no answer, however long one waits.
  wire::Packet quiet = t.raw(wire::Opcode::rc_write_only, 5);
  t.pair.inject(1, quiet);
  t.pair.run(100s);
  CHECK(sent_by(t.pair, 1).size() == 1);
}

TEST_CASE("an acknowledgement for a PSN in the middle of a message completes nothing yet") {
  Trap t;
  t.pair.fate = [](const WirePacket&) { return 0; };
  t.post(WorkOpcode::rdma_write, 3000);
  t.pair.transmit();
  wire::Packet ack = t.raw(wire::Opcode::rc_acknowledge, 1);
  ack.aeth.syndrome = wire::Syndrome::ack();
  t.pair.inject(0, ack);
  CHECK(t.pair.client().send_completions.completions.empty());
  ack.bth.psn = ack.bth.psn + 1;
  t.pair.inject(0, ack);
  t.check_success(1);
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

// --- timers

TEST_CASE("an RNR NAK's time is waited for, and nothing else is sent meanwhile") {
  PairOptions options;
  options.min_rnr_timer = 20;  // 10.24 ms
  Trap t(options);
  t.post(WorkOpcode::send, 8);
  t.post(WorkOpcode::rdma_write, 8);
  t.pair.run(9ms);
  CHECK(sent_by(t.pair, 0).size() == 2);
  t.post(WorkOpcode::rdma_write, 8);
  t.pair.post_receive(1, t.remote);
  t.pair.run(1ms);
  CHECK(sent_by(t.pair, 0).size() == 2);
  t.pair.run();
  t.check_success(3);
}

TEST_CASE("no timeout strikes while acknowledgements keep coming") {
  PairOptions options;
  options.timeout = 8;
  options.latency = 1ms;
  options.device.min_ack_timeout = 3ms;
  options.device.initial_window = options.device.max_window = 3000;
  Trap t(options);
  // About 30 round trips of 2 ms each: ten times the timeout.
  t.local = t.pair.client().buffer(60000);
  t.remote = t.pair.server().buffer(60000);
  t.post(WorkOpcode::rdma_write, 60000);
  t.pair.run();
  t.check_success(1);
  CHECK(t.pair.client().device.counters().timeouts == 0);
  CHECK(t.pair.client().device.counters().retransmitted_packets == 0);
}

TEST_CASE("no timer runs when nothing is outstanding") {
  Trap t;
  t.post(WorkOpcode::rdma_write, 8);
  CHECK(t.pair.client().device.next_deadline() == kNever);
  t.pair.transmit();
  CHECK(t.pair.client().device.next_deadline() != kNever);
  t.pair.run();
  CHECK(t.pair.client().device.next_deadline() == kNever);
  CHECK(t.pair.server().device.next_deadline() == kNever);
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

// --- UD

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
  REQUIRE(t.pair->server().receive_completions.completions.size() == 1);
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
