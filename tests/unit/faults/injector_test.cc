#include "net/faults/injector.h"

#include <catch2/catch.hpp>

#include "tests/unit/faults/packets.h"

namespace urxe::test {
namespace {

using namespace net;

// An injector with a clock, and packets to put through it.
struct Bench {
  explicit Bench(std::string_view text, std::uint64_t seed = 1) : injector(rules(text), seed) {}
  Verdict judge(const Sample& sample, Direction direction = Direction::transmit,
                std::uint32_t peer = 2) {
    return injector.judge(now, direction, host(peer), roce(sample));
  }
  bool drops(const Sample& sample, Direction direction = Direction::transmit,
             std::uint32_t peer = 2) {
    return judge(sample, direction, peer).drop;
  }
  // Which of `count` packets with PSNs from 0 on are dropped.
  std::vector<std::uint32_t> dropped(std::uint32_t count) {
    std::vector<std::uint32_t> psns;
    for (std::uint32_t psn = 0; psn < count; ++psn) {
      if (drops({.psn = psn})) psns.push_back(psn);
    }
    return psns;
  }
  Time now{1s};
  Injector injector;
};

using Psns = std::vector<std::uint32_t>;

TEST_CASE("without conditions a rule hits everything") {
  CHECK(Bench("drop").dropped(3) == Psns{0, 1, 2});
  CHECK(Bench("").dropped(3).empty());
}

TEST_CASE("a rule looks at the direction") {
  Bench bench("drop dir=rx");
  CHECK_FALSE(bench.drops({}));
  CHECK(bench.drops({}, Direction::receive));
}

TEST_CASE("a rule looks at the peer, whichever way the packet goes") {
  Bench bench("drop peer=10.0.0.3");
  CHECK_FALSE(bench.drops({}));
  CHECK(bench.drops({}, Direction::transmit, 3));
  CHECK(bench.drops({}, Direction::receive, 3));
}

TEST_CASE("a rule looks at the opcode, and at what an acknowledgement says") {
  Bench bench("drop opcode=READ_RESPONSE_MIDDLE,NAK");
  CHECK_FALSE(bench.drops({}));
  CHECK(bench.drops({.opcode = wire::Opcode::rc_read_response_middle}));
  CHECK_FALSE(bench.drops({.opcode = wire::Opcode::rc_acknowledge}));
  CHECK(bench.drops({.opcode = wire::Opcode::rc_acknowledge,
                     .syndrome = wire::Syndrome::nak(wire::NakCode::invalid_request)}));
  CHECK_FALSE(bench.drops(
      {.opcode = wire::Opcode::rc_acknowledge, .syndrome = wire::Syndrome::rnr_nak(1)}));
}

TEST_CASE("a rule looks at the queue pair") {
  Bench bench("drop qpn=0x20..0x2F");
  CHECK_FALSE(bench.drops({.qpn = 0x1F}));
  CHECK(bench.drops({.qpn = 0x20}));
  CHECK(bench.drops({.qpn = 0x2F}));
  CHECK_FALSE(bench.drops({.qpn = 0x30}));
}

TEST_CASE("a rule looks at the PSN") { CHECK(Bench("drop psn=3..4").dropped(10) == Psns{3, 4}); }

TEST_CASE("a PSN may be relative to the first of its connection") {
  Bench bench("drop psn=+5");
  Psns dropped;
  for (std::uint32_t psn = 0xFFFFFD; psn < 0xFFFFFD + 10; ++psn) {
    if (bench.drops({.psn = psn})) dropped.push_back(psn & wire::Psn::kMask);
  }
  CHECK(dropped == Psns{2});
}

TEST_CASE("a rule may mean one transmission of a PSN only") {
  Bench first("drop psn=+1 transmission=1");
  CHECK_FALSE(first.drops({.psn = 70}));
  CHECK(first.drops({.psn = 71}));
  CHECK_FALSE(first.drops({.psn = 71}));
  CHECK_FALSE(first.drops({.psn = 71}));
  Bench second("drop transmission=2");
  CHECK_FALSE(second.drops({.psn = 70}));
  CHECK(second.drops({.psn = 70}));
  CHECK_FALSE(second.drops({.psn = 70}));
}

TEST_CASE("a rule may mean every transmission of the n-th PSN that it sees") {
  Bench bench("drop opcode=READ unique=2");
  const auto read = [](std::uint32_t psn) {
    return Sample{.opcode = wire::Opcode::rc_read_request, .psn = psn};
  };
  CHECK_FALSE(bench.drops(read(10)));
  CHECK_FALSE(bench.drops({.psn = 11}));
  CHECK(bench.drops(read(12)));
  CHECK_FALSE(bench.drops(read(13)));
  CHECK(bench.drops(read(12)));
  CHECK_FALSE(bench.drops(read(10)));
}

TEST_CASE("a time window counts from the first packet") {
  Bench bench("drop from=1ms until=2ms");
  CHECK_FALSE(bench.drops({}));
  bench.now += 1ms - 1ns;
  CHECK_FALSE(bench.drops({}));
  bench.now += 1ns;
  CHECK(bench.drops({}));
  bench.now += 1ms - 1ns;
  CHECK(bench.drops({}));
  bench.now += 1ns;
  CHECK_FALSE(bench.drops({}));
}

TEST_CASE("the n-th match, every n-th match, and the matches of a mask are chosen by number") {
  CHECK(Bench("drop nth=3").dropped(10) == Psns{2});
  CHECK(Bench("drop every=3").dropped(10) == Psns{2, 5, 8});
  CHECK(Bench("drop mask=0x8000000000000005").dropped(200) == Psns{0, 2, 63});
  CHECK(Bench("drop opcode=SEND psn=4..9 nth=2").dropped(20) == Psns{5});
}

TEST_CASE("a rule stops after so many hits or so many bytes") {
  CHECK(Bench("drop times=2").dropped(10) == Psns{0, 1});
  CHECK(Bench("drop every=2 times=2").dropped(10) == Psns{1, 3});
  // 16 bytes each: hit until the budget is used up.
  CHECK(Bench("drop bytes=40").dropped(10) == Psns{0, 1, 2});
}

TEST_CASE("a probability comes true as often as it says, and by the seed") {
  const Psns once = Bench("drop p=0.1", 5).dropped(10000);
  CHECK(std::abs(static_cast<int>(once.size()) - 1000) < 150);
  CHECK(Bench("drop p=0.1", 5).dropped(10000) == once);
  CHECK(Bench("drop p=0.1", 6).dropped(10000) != once);
}

TEST_CASE("each rule has its own dice") {
  // The second rule hits the same packets with and without the first.
  const auto hits = [](std::string_view text) {
    Bench bench(text);
    Psns psns;
    for (std::uint32_t psn = 0; psn < 1000; ++psn) {
      if (bench.judge({.psn = psn}).copies > 0) psns.push_back(psn);
    }
    return psns;
  };
  CHECK(hits("mark p=0.5; duplicate p=0.1") == hits("mark p=0.9; duplicate p=0.1"));
}

TEST_CASE("effects of several rules add up, and a drop ends the matter") {
  Bench bench("duplicate copies=2; delay by=1ms; delay by=2ms; mark; drop psn=1; duplicate");
  const Verdict kept = bench.judge({.psn = 0});
  CHECK_FALSE(kept.drop);
  CHECK(kept.copies == 3);
  CHECK(kept.delay == 3ms);
  CHECK(kept.mark);
  CHECK(bench.judge({.psn = 1}).drop);
  CHECK(bench.injector.counters(5).matches == 1);
}

TEST_CASE("a delay's jitter stays within its bound") {
  Bench bench("delay by=1ms jitter=1ms");
  Duration longest{};
  for (int i = 0; i < 1000; ++i) {
    const Duration delay = *bench.judge({}).delay;
    CHECK(delay >= 1ms);
    CHECK(delay <= 2ms);
    longest = std::max(longest, delay);
  }
  CHECK(longest > 1900us);
}

TEST_CASE("any bit may be hit, from the BTH to the ICRC, or to the pad if the ICRC is repaired") {
  const std::uint32_t bits = 8 * (wire::kBthSize + wire::kIcrcSize);
  std::vector<bool> hit(bits);
  Bench keep("corrupt");
  for (int i = 0; i < 5000; ++i) hit.at(keep.judge({}).flips.at(0)) = true;
  CHECK(std::find(hit.begin(), hit.end(), false) == hit.end());
  Bench repair("corrupt icrc=repair");
  for (int i = 0; i < 5000; ++i) {
    const Verdict verdict = repair.judge({});
    CHECK(verdict.repair_icrc);
    CHECK(verdict.flips.at(0) < 8 * wire::kBthSize);
  }
  CHECK(Bench("corrupt bit=7").judge({}).flips == Psns{7});
  CHECK(Bench("corrupt bit=1000").judge({}).flips == Psns{1000 % bits});
}

TEST_CASE("the summary says how often each rule hit") {
  Bench bench("drop psn=2..5 every=2; mark p=0", 77);
  bench.dropped(10);
  CHECK(bench.injector.summary() ==
        "faults, seed 77:\n"
        "  drop psn=2..5 every=2: hit 2 of 4 matching packets\n"
        "  mark p=0: hit 0 of 8 matching packets");
}

TEST_CASE("bytes too short for a BTH pass") {
  Injector injector(rules("drop"), 1);
  const std::vector<std::uint8_t> stub(wire::kBthSize - 1);
  CHECK_FALSE(injector.judge(Time{}, Direction::receive, host(1), stub).drop);
}

}  // namespace
}  // namespace urxe::test
