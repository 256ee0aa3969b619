// The swarm itself: its plans, its command line, and that its checkers say something.
#include <algorithm>
#include <array>
#include <cstring>

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
using emulator::WorkOpcode;

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
    all.placements += verdict.placements;
    all.refusals += verdict.refusals;
    all.multicasts += verdict.multicasts;
  }
  CHECK(all.packets > 10'000);
  CHECK(all.messages > 1000);
  CHECK(all.retransmissions > 1000);
  CHECK(all.placements > 100);
  CHECK(all.refusals > 10);
  CHECK(all.multicasts > 10);
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

TEST_CASE("a part of a part says which steps and faults of the whole it has") {
  const Plan plan = draw_plan(980);
  REQUIRE(plan.faults.size() >= 2);
  const Plan part = part_of(part_of(plan, {3, 5, 9, 20}, {1}), {1, 3}, {0});
  CHECK(part.step_numbers == Numbers{5, 20});
  CHECK(part.fault_numbers == Numbers{1});
  REQUIRE(part.steps.size() == 2);
  CHECK(part.steps[1].dice == plan.steps[20].dice);
  // What is not there has no number either.
  CHECK(part_of(part, {0, 7}, {5}).step_numbers == Numbers{5});
}

TEST_CASE("shrinking what was reduced before ends at the steps that fail") {
  const Plan plan = draw_plan(980);
  const auto has = [&](const Plan& part, std::size_t number) {
    return std::any_of(part.steps.begin(), part.steps.end(),
                       [&](const Step& step) { return step.dice == plan.steps[number].dice; });
  };
  const auto fails = [&](const Plan& part) { return has(part, 30) && has(part, 41); };
  const Plan small = shrink(part_of(plan, {7, 12, 30, 40, 41, 50}, {1}), fails, 1000);
  CHECK(small.step_numbers == Numbers{30, 41});
  CHECK(small.fault_numbers.empty());
  CHECK(fails(small));
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

TEST_CASE("an ATOMIC WRITE is stored in one piece, once, in its turn") {
  Watched watched(Kind::in_turn);
  Message earlier{.id = 2, .opcode = WorkOpcode::rdma_write, .bytes = bytes_of_message(2, 4)};
  watched.message.opcode = WorkOpcode::atomic_write;
  watched.message.bytes = bytes_of_message(1, 8);
  std::uint64_t value = 0;
  std::memcpy(&value, watched.message.bytes.data(), sizeof(value));
  const test::MemoryObserver::Atomic store{0x1110, value, 0, value};
  watched.checker.expect(0x1100, 0x1120, earlier);
  watched.checker.expect(0x1100, 0x1110, watched.message);
  SECTION("not before what was asked for earlier") { watched.checker.on_atomic(store); }
  SECTION("after that") {
    watched.checker.on_write(0x1120, earlier.bytes);
    SECTION("not like any other bytes") { watched.checker.on_write(0x1110, watched.message.bytes); }
    SECTION("not with other bytes") { watched.checker.on_atomic({0x1110, 5, 0, 5}); }
    SECTION("not elsewhere") { watched.checker.on_atomic({0x1118, value, 0, value}); }
    SECTION("not twice") {
      watched.checker.on_atomic(store);
      CHECK(watched.findings.empty());
      CHECK(watched.message.effect_done == 8);
      watched.checker.on_atomic(store);
    }
  }
  CHECK_FALSE(watched.findings.empty());
}

using Refused = test::MemoryObserver::Kind;

TEST_CASE("memory that is gone is refused to the message that needs it") {
  Watched watched(Kind::in_turn);
  watched.checker.expect(0x1100, 0x1110, watched.message);
  watched.checker.take_away(0x1118, 4);
  watched.checker.on_refused({Refused::write, 0x1110, 20});
  CHECK(watched.findings.empty());
  CHECK(watched.message.refused);
  CHECK(watched.checker.was_refused(0x1100));
  SECTION("not memory that is there") {
    watched.checker.on_refused({Refused::write, 0x111C, 4});
    CHECK_FALSE(watched.findings.empty());
  }
  SECTION("not when it came back") {
    watched.checker.bring_back(0x1118);
    watched.checker.on_refused({Refused::write, 0x1110, 20});
    CHECK_FALSE(watched.findings.empty());
  }
  SECTION("not without a region") {
    watched.checker.forbid(0x1000);
    watched.checker.on_refused({Refused::write, 0x1110, 20});
    CHECK_FALSE(watched.findings.empty());
  }
  SECTION("a reader does not fail who writes") {
    watched.message.refused = false;
    watched.checker.on_refused({Refused::read, 0x1110, 20});
    CHECK_FALSE(watched.message.refused);
  }
}

TEST_CASE("an address without memory may be asked for through an implicit region only") {
  Watched watched(Kind::in_turn);
  SECTION("without") {
    watched.checker.on_refused({Refused::write, 0x900000, 4});
    CHECK_FALSE(watched.findings.empty());
  }
  SECTION("with one") {
    watched.checker.allow(0x3000, 16, true, true);
    watched.checker.on_refused({Refused::write, 0x900000, 4});
    CHECK(watched.findings.empty());
    // Still none but its own bytes are anybody's business.
    watched.checker.on_write(0x3010, watched.bytes(0, 1));
    CHECK_FALSE(watched.findings.empty());
  }
  SECTION("where packets are damaged and believed, its permission is what counts") {
    MemoryChecker checker(watched.findings, watched.atomics, "test", true);
    checker.allow(0x3000, 16, false, true);
    checker.on_read(0x3010, 4);
    CHECK(watched.findings.empty());
    checker.on_write(0x3010, watched.bytes(0, 1));
    CHECK_FALSE(watched.findings.empty());
  }
}

TEST_CASE("a hole in memory is refused to the device, and its bytes come back") {
  test::MemoryDouble memory;
  const std::uint64_t block = memory.map(100);
  std::array<std::uint8_t, 4> four{1, 2, 3, 4};
  REQUIRE(memory.write(block + 8, four));
  memory.take_away(block + 10, 10);
  CHECK_FALSE(memory.write(block + 8, four));
  CHECK_FALSE(memory.read(block + 19, four));
  CHECK_FALSE(memory.store(block + 16, 7));
  CHECK(memory.write(block + 20, four));
  CHECK(memory.write(block + 6, four));
  CHECK(memory.faults == 0);
  memory.bring_back(block + 10);
  REQUIRE(memory.read(block + 10, four));
  CHECK(four == std::array<std::uint8_t, 4>{3, 4, 0, 0});
}

// Two queue pairs of a device in one group. The checker knows them by their addresses only.
struct Grouped {
  Grouped() {
    checker.attach(group, a);
    checker.attach(group, b);
  }
  struct alignas(Endpoint) Place {
    std::array<std::uint8_t, sizeof(Endpoint)> bytes;
  };
  // Nothing is made of them.
  static const Endpoint& endpoint(const Place& place) {
    return reinterpret_cast<const Endpoint&>(place);
  }
  std::array<Place, 3> places{};
  const Endpoint& a = endpoint(places[0]);
  const Endpoint& b = endpoint(places[1]);
  const Endpoint& stranger = endpoint(places[2]);
  Findings findings;
  GroupChecker checker{findings, "test"};
  wire::IpAddress group = group_address(0);
};

TEST_CASE("a multicast packet comes once to each attached queue pair") {
  Grouped grouped;
  grouped.checker.on_arrival(grouped.group, 1, {&grouped.a, &grouped.b});
  grouped.checker.on_delivery(grouped.a, 1);
  SECTION("to both, and again with the next copy") {
    for (int copy = 0; copy < 2; ++copy) {
      grouped.checker.on_delivery(grouped.b, 1);
      grouped.checker.on_handled();
      grouped.checker.on_arrival(grouped.group, 1, {});
    }
    CHECK(grouped.findings.empty());
    CHECK(grouped.checker.deliveries() == 3);
    return;
  }
  SECTION("not to one only") { grouped.checker.on_handled(); }
  SECTION("not twice") { grouped.checker.on_delivery(grouped.a, 1); }
  SECTION("not another message") { grouped.checker.on_delivery(grouped.b, 2); }
  SECTION("not to others") { grouped.checker.on_delivery(grouped.stranger, 1); }
  SECTION("not by itself") {
    grouped.checker.on_delivery(grouped.b, 1);
    grouped.checker.on_handled();
    CHECK(grouped.findings.empty());
    grouped.checker.on_delivery(grouped.b, 1);
  }
  CHECK_FALSE(grouped.findings.empty());
}

TEST_CASE("who is the first and the last of a group") {
  Grouped grouped;
  CHECK_FALSE(grouped.checker.attach(grouped.group, grouped.stranger));
  CHECK(grouped.checker.attach(group_address(1), grouped.a));
  CHECK_FALSE(grouped.checker.detach(grouped.group, grouped.a));
  CHECK_FALSE(grouped.checker.detach(grouped.group, grouped.a));
  CHECK_FALSE(grouped.checker.detach(grouped.group, grouped.b));
  CHECK(grouped.checker.detach(grouped.group, grouped.stranger));
  CHECK(grouped.checker.groups_of(grouped.a) == std::vector{group_address(1)});
}

TEST_CASE("the first draws of a seed are what they were, and lack what came later") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Plan first = draw_plan(seed, kUsualSteps, Draws::first);
    const Plan all = draw_plan(seed);
    CHECK(first.faults.size() == all.faults.size());
    REQUIRE(first.steps.size() == all.steps.size());
    for (std::size_t i = 0; i < first.steps.size(); ++i) {
      CHECK(first.steps[i].kind < StepKind::page);
      CHECK(first.steps[i].dice == all.steps[i].dice);
    }
    for (std::size_t i = 0; i < first.connections.size(); ++i) {
      CHECK(first.connections[i].ends[0].first_psn == all.connections[i].ends[0].first_psn);
      CHECK_FALSE(first.connections[i].draws_placements);
    }
  }
  CHECK(play(draw_plan(28, kUsualSteps, Draws::first)).packets == 436);
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
             .max_read_atomic = 1,
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
  SECTION("an answer to a FLUSH that brings data") {
    wire.flow.on_request_sent(Time{}, Wire::packet(wire::Opcode::rc_flush, 3));
    wire.arrive(2);
    wire.arrive(3);
    CHECK(wire.flow.flush_at(wire::Psn{0xFFFFFE} + 3) == 0);
    CHECK_FALSE(wire.flow.flush_at(wire::Psn{0xFFFFFE} + 2).has_value());
    wire::Packet response = Wire::packet(wire::Opcode::rc_read_response_only, 3);
    response.aeth = {.syndrome = wire::Syndrome::ack(), .msn = wire::Msn{4}};
    wire.flow.on_response_sent(response);
    REQUIRE(wire.findings.empty());
    const std::array<std::uint8_t, 4> data{};
    response.payload = data;
    wire.flow.on_response_sent(response);
  }
  SECTION("an answer to a READ that was none") {
    wire.flow.on_response_sent(Wire::packet(wire::Opcode::rc_read_response_only, 1));
  }
  CHECK_FALSE(wire.findings.empty());
}

}  // namespace
}  // namespace urxe::swarm
