// What implementations are known to get wrong about PSNs, MSNs, acknowledgements, and the timers
// that wait for them. The names of the tests say what is right.
#include <catch2/catch.hpp>

#include "tests/unit/emulator/trap.h"

namespace urxe::test {
namespace {

using namespace emulator;

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

}  // namespace
}  // namespace urxe::test
