// The swarm itself: its plans, its command line, and that its checkers say something.
#include <catch2/catch.hpp>

#include "tests/sim/swarm/memory_checker.h"
#include "tests/sim/swarm/options.h"
#include "tests/sim/swarm/shrink.h"
#include "tests/sim/swarm/wire_watcher.h"
#include "tests/sim/swarm/world.h"

namespace urxe::swarm {
namespace {

using Numbers = std::vector<std::size_t>;
using Kind = MemoryChecker::Area;

TEST_CASE("one seed makes one run, to the last packet") {
  for (std::uint64_t seed = 1000; seed < 1010; ++seed) {
    const Verdict first = play(draw_plan(seed));
    const Verdict second = play(draw_plan(seed));
    CHECK(first.packets > 0);
    CHECK(first.packets == second.packets);
    CHECK(first.messages == second.messages);
    CHECK(first.retransmissions == second.retransmissions);
  }
}

TEST_CASE("a few seeds find nothing, and do something") {
  Verdict all;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Verdict verdict = play(draw_plan(seed));
    INFO("urxe-sim --seed " << seed);
    REQUIRE(verdict.findings.empty());
    all.packets += verdict.packets;
    all.messages += verdict.messages;
    all.retransmissions += verdict.retransmissions;
  }
  CHECK(all.packets > 10'000);
  CHECK(all.messages > 1000);
  CHECK(all.retransmissions > 1000);
}

TEST_CASE("a part of a plan keeps the steps and faults that it is told") {
  const Plan plan = draw_plan(7);
  REQUIRE(plan.steps.size() == kUsualSteps);
  const Plan part = part_of(plan, {3, 5}, {});
  REQUIRE(part.steps.size() == 2);
  CHECK(part.steps[1].dice == plan.steps[5].dice);
  CHECK(part.faults.empty());
  CHECK(part.step_numbers == Numbers{3, 5});
}

TEST_CASE("lists of numbers are read as they are written") {
  CHECK(format_numbers({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8");
  CHECK(parse_numbers("0-2,5,7-8") == Numbers{0, 1, 2, 5, 7, 8});
  CHECK(parse_numbers(format_numbers({})) == Numbers{});
  for (const char* wrong : {"", "x", "3-1", "1,", "-1", "1--2", "99999999999"}) {
    CHECK_FALSE(parse_numbers(wrong).has_value());
  }
}

TEST_CASE("a command line that is wrong is refused") {
  CHECK(parse_options({"--seed", "0x10"})->seed == 16);
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{}, {"--seed"}, {"--seed", "x"}, {"--nothing"}, {"--steps", "5"}}) {
    CHECK_FALSE(parse_options(wrong).has_value());
  }
}

// A checker over one region of 1000 bytes with an area of 100 in it.
struct Watched {
  explicit Watched(Kind kind) {
    checker.allow(0x1000, 1000, true);
    checker.add_area(0x1100, 100, kind);
    message.id = 1;
    message.bytes = bytes_of_message(1, 20);
    message.remote_address = 0x1110;
  }
  [[nodiscard]] std::span<const std::uint8_t> bytes(std::size_t from, std::size_t size) const {
    return std::span(message.bytes).subspan(from, size);
  }
  Findings findings;
  AtomicLog atomics;
  MemoryChecker checker{findings, atomics, "test", false};
  Message message;
};

TEST_CASE("an effect is written once, in order, with its own bytes") {
  Watched watched(Kind::in_turn);
  watched.checker.expect(0x1100, 0x1110, watched.message);
  watched.checker.on_write(0x1110, watched.bytes(0, 12));
  watched.checker.on_write(0x111C, watched.bytes(12, 8));
  CHECK(watched.findings.empty());
  SECTION("not twice") { watched.checker.on_write(0x1110, watched.bytes(0, 12)); }
  SECTION("not elsewhere") { watched.checker.on_write(0x1000, watched.bytes(0, 12)); }
  SECTION("not outside of all regions") { watched.checker.on_write(0x2000, watched.bytes(0, 1)); }
  SECTION("not after the region is gone") {
    watched.checker.forbid(0x1000);
    watched.checker.on_read(0x1110, 4);
  }
  CHECK_FALSE(watched.findings.empty());
}

TEST_CASE("an effect with other bytes or at another place is found") {
  Watched watched(Kind::in_turn);
  watched.checker.expect(0x1100, 0x1110, watched.message);
  SECTION("other bytes") { watched.checker.on_write(0x1110, watched.bytes(1, 12)); }
  SECTION("too far") { watched.checker.on_write(0x1111, watched.bytes(0, 12)); }
  CHECK_FALSE(watched.findings.empty());
}

TEST_CASE("a receive is written only while it is lent") {
  Watched watched(Kind::receives);
  watched.checker.lend(0x1100, 0x1120, 16);
  watched.checker.on_write(0x1120, watched.bytes(0, 16));
  CHECK(watched.findings.empty());
  SECTION("not beyond it") { watched.checker.on_write(0x1121, watched.bytes(0, 16)); }
  SECTION("not when it came back") {
    watched.checker.take_back(0x1100, 0x1120);
    watched.checker.on_write(0x1120, watched.bytes(0, 1));
  }
  CHECK_FALSE(watched.findings.empty());
}

TEST_CASE("an atomic is executed once, and only if somebody asked") {
  Watched watched(Kind::counters);
  watched.atomics.expect(5, watched.message);
  watched.checker.on_atomic({0x1110, 5, 0, 5});
  CHECK(watched.findings.empty());
  CHECK(watched.message.executions == 1);
  SECTION("not twice") { watched.checker.on_atomic({0x1110, 5, 5, 10}); }
  SECTION("not unasked") { watched.checker.on_atomic({0x1110, 6, 5, 11}); }
  SECTION("not on what changed by itself") { watched.checker.on_atomic({0x1110, 5, 7, 12}); }
  CHECK_FALSE(watched.findings.empty());
}

// A flow of SENDs of one packet each, from PSN 0xFFFFFE on.
struct Wire {
  static wire::Packet packet(wire::Opcode opcode, std::uint32_t index) {
    wire::Packet made;
    made.info = &wire::info(opcode);
    made.bth.opcode = static_cast<std::uint8_t>(opcode);
    made.bth.psn = wire::Psn{0xFFFFFE} + index;
    return made;
  }
  void send(std::uint32_t index, Time now = Time{}) {
    flow.on_request_sent(now, packet(wire::Opcode::rc_send_only, index));
  }
  void arrive(std::uint32_t index) {
    flow.on_request_received(packet(wire::Opcode::rc_send_only, index));
  }
  static wire::Packet answer(wire::Syndrome syndrome, std::uint32_t index, std::uint32_t msn) {
    wire::Packet made = packet(wire::Opcode::rc_acknowledge, index);
    made.aeth = {.syndrome = syndrome, .msn = wire::Msn{msn}};
    return made;
  }
  Findings findings;
  Flow flow{findings,
            "test",
            {.mtu = 256,
             .first = wire::Psn{0xFFFFFE},
             .retry_count = 1,
             .rnr_retry = 1,
             .ack_timeout = std::chrono::milliseconds(1),
             .reliable = true}};
};

constexpr auto kSequence = wire::NakCode::psn_sequence_error;

TEST_CASE("a lawful conversation finds nothing") {
  Wire wire;
  for (std::uint32_t i = 0; i < 4; ++i) wire.send(i);
  wire.arrive(0);
  wire.arrive(2);
  wire.flow.on_response_sent(Wire::answer(wire::Syndrome::ack(), 0, 1));
  wire.flow.on_response_sent(Wire::answer(wire::Syndrome::nak(kSequence), 1, 1));
  wire.flow.on_response_received(Time{}, Wire::answer(wire::Syndrome::nak(kSequence), 1, 1));
  for (std::uint32_t i = 1; i < 4; ++i) wire.send(i);
  for (std::uint32_t i = 1; i < 4; ++i) wire.arrive(i);
  wire.flow.on_response_sent(Wire::answer(wire::Syndrome::ack(), 3, 4));
  CHECK(wire.findings.empty());
}

TEST_CASE("unlawful packets are found") {
  Wire wire;
  for (std::uint32_t i = 0; i < 3; ++i) wire.send(i);
  wire.arrive(0);
  wire.arrive(1);
  const auto rnr = Wire::answer(wire::Syndrome::rnr_nak(1), 2, 2);
  SECTION("a PSN left out") { wire.send(4); }
  SECTION("another packet with the same PSN") {
    wire.flow.on_request_sent(Time{}, Wire::packet(wire::Opcode::rc_write_only, 1));
  }
  SECTION("what was acknowledged, again") {
    wire.flow.on_response_received(Time{}, Wire::answer(wire::Syndrome::ack(), 1, 2));
    wire.send(1);
  }
  SECTION("a retry too many") { wire.send(0, Time{std::chrono::seconds(1)}); }
  SECTION("an RNR retry too many") {
    for (int i = 0; i < 2; ++i) {
      wire.flow.on_response_received(Time{}, rnr);
      wire.send(2);
    }
  }
  SECTION("an acknowledgement of what never came") {
    wire.flow.on_response_sent(Wire::answer(wire::Syndrome::ack(), 2, 3));
  }
  SECTION("an acknowledgement with another MSN") {
    wire.flow.on_response_sent(Wire::answer(wire::Syndrome::ack(), 1, 1));
  }
  SECTION("an acknowledgement that goes back") {
    wire.flow.on_response_sent(Wire::answer(wire::Syndrome::ack(), 1, 2));
    wire.flow.on_response_sent(Wire::answer(wire::Syndrome::ack(), 0, 1));
  }
  SECTION("a NAK that is said twice") {
    for (int i = 0; i < 2; ++i) {
      wire.flow.on_response_sent(Wire::answer(wire::Syndrome::nak(kSequence), 2, 2));
    }
  }
  SECTION("an answer to a READ that was none") {
    wire.flow.on_response_sent(Wire::packet(wire::Opcode::rc_read_response_only, 1));
  }
  CHECK_FALSE(wire.findings.empty());
}

}  // namespace
}  // namespace urxe::swarm
