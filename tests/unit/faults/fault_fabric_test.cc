#include "net/faults/fault_fabric.h"

#include <algorithm>
#include <map>

#include <catch2/catch.hpp>

#include "net/sim/network.h"
#include "tests/unit/faults/packets.h"

namespace urxe::test {
namespace {

using namespace net;

struct Arrived {
  Time time;
  std::uint32_t psn;
  bool icrc_is_right;
  wire::Ecn ecn;
  std::vector<std::uint8_t> bytes;
};

struct Inbox final : Receiver {
  void on_packet(Time now, const wire::Inbound& packet) override {
    all.push_back({now,
                   wire::Bth::parse(packet.bytes).psn.value(),
                   packet.icrc_is_right,
                   packet.path.ecn(),
                   {packet.bytes.begin(), packet.bytes.end()}});
  }
  [[nodiscard]] std::vector<std::uint32_t> psns() const {
    std::vector<std::uint32_t> psns;
    for (const Arrived& arrived : all) psns.push_back(arrived.psn);
    return psns;
  }
  std::vector<Arrived> all;
};

// Node 1 sends to node 2; one of them has faults.
struct Bench {
  explicit Bench(std::string_view sender_rules, std::string_view receiver_rules = "",
                 const LinkSpec& spec = {.latency = 1us})
      : a(network.add_node({.address = host(1)})),
        b(network.add_node({.address = host(2)})),
        sender(std::make_unique<SimFabric>(a), rules(sender_rules), 1),
        receiver(std::make_unique<SimFabric>(b), rules(receiver_rules), 1) {
    network.connect(a, b, spec);
  }
  Time now() { return network.simulation().now(); }

  bool send(std::uint32_t psn, std::size_t payload = 64) {
    const wire::MutableBytes slot = sender.reserve();
    if (slot.empty()) return false;
    const auto bytes = roce({.psn = psn, .payload = payload});
    std::copy(bytes.begin(), bytes.end(), slot.begin());
    sender.commit(now(), {.path = &path, .size = bytes.size()});
    return true;
  }
  void send_all(std::uint32_t count) {
    for (std::uint32_t psn = 0; psn < count; ++psn) REQUIRE(send(psn));
    sender.flush(now());
  }
  // Time passes in small steps, in which both sides do what they must.
  void run(Duration time) {
    for (const Time end = now() + time; now() < end;) {
      network.simulation().run_until(std::min(now() + 10us, end));
      Inbox nothing;
      sender.receive(now(), nothing, SIZE_MAX);
      receiver.receive(now(), inbox, SIZE_MAX);
    }
  }

  Network network{1};
  SimNode& a;
  SimNode& b;
  FaultFabric sender;
  FaultFabric receiver;
  Inbox inbox;
  wire::Path path{.source = host(1), .destination = host(2), .source_port = 0xC000};
};

using Psns = std::vector<std::uint32_t>;

TEST_CASE("without rules everything passes unchanged") {
  Bench bench("", "");
  bench.send_all(5);
  bench.run(1ms);
  CHECK(bench.inbox.psns() == Psns{0, 1, 2, 3, 4});
  for (const Arrived& arrived : bench.inbox.all) CHECK(arrived.icrc_is_right);
}

TEST_CASE("a dropped packet never arrives, on either side") {
  SECTION("sender") {
    Bench bench("drop psn=2");
    bench.send_all(5);
    bench.run(1ms);
    CHECK(bench.inbox.psns() == Psns{0, 1, 3, 4});
    CHECK(bench.a.counters().sent_packets == 4);
  }
  SECTION("receiver") {
    Bench bench("", "drop dir=rx psn=2");
    bench.send_all(5);
    bench.run(1ms);
    CHECK(bench.inbox.psns() == Psns{0, 1, 3, 4});
  }
  SECTION("the last one, and the next goes into the same slot") {
    Bench bench("drop psn=4");
    bench.send_all(5);
    REQUIRE(bench.send(5));
    bench.run(1ms);
    CHECK(bench.inbox.psns() == Psns{0, 1, 2, 3, 5});
  }
}

TEST_CASE("a duplicate follows its original") {
  const bool at_sender = GENERATE(true, false);
  Bench bench(at_sender ? "duplicate psn=1 copies=2" : "",
              at_sender ? "" : "duplicate psn=1 copies=2");
  bench.send_all(3);
  bench.run(1ms);
  CHECK(bench.inbox.psns() == Psns{0, 1, 1, 1, 2});
  CHECK(bench.inbox.all[1].bytes == bench.inbox.all[2].bytes);
}

TEST_CASE("a delayed packet arrives later, and the others do not wait") {
  const bool at_sender = GENERATE(true, false);
  Bench bench(at_sender ? "delay psn=1 by=500us" : "", at_sender ? "" : "delay psn=1 by=500us");
  bench.send_all(3);
  bench.run(2ms);
  CHECK(bench.inbox.psns() == Psns{0, 2, 1});
  CHECK(bench.inbox.all[2].time >= Time{500us});
  CHECK(bench.inbox.all[2].time <= Time{550us});
}

TEST_CASE("what waits has a deadline, and nothing has none") {
  Bench bench("delay psn=1 by=500us", "delay psn=2 by=300us");
  CHECK(bench.sender.next_deadline() == kNever);
  bench.send_all(3);
  CHECK(bench.sender.next_deadline() == Time{500us});
  bench.run(100us);
  CHECK(bench.receiver.next_deadline() > Time{300us});
  CHECK(bench.receiver.next_deadline() < Time{350us});
  bench.run(1ms);
  CHECK(bench.sender.next_deadline() == kNever);
  CHECK(bench.receiver.next_deadline() == kNever);
}

TEST_CASE("a reordered packet is overtaken by as many as the rule says") {
  const bool at_sender = GENERATE(true, false);
  const std::string_view text = "reorder psn=1 packets=2";
  Bench bench(at_sender ? text : "", at_sender ? "" : text);
  bench.send_all(5);
  bench.run(1ms);
  CHECK(bench.inbox.psns() == Psns{0, 2, 3, 1, 4});
}

TEST_CASE("a reordered packet that nothing overtakes comes when its time is up") {
  Bench bench("reorder psn=2 packets=3 within=2ms");
  bench.send_all(3);
  bench.run(1900us);
  CHECK(bench.inbox.psns() == Psns{0, 1});
  bench.run(200us);
  CHECK(bench.inbox.psns() == Psns{0, 1, 2});
}

TEST_CASE("a corrupted packet differs in one bit, and its ICRC tells") {
  const bool at_sender = GENERATE(true, false);
  const std::uint32_t bit = GENERATE(0U, 8U * 12 + 3, 8U * (12 + 64) - 1);
  const std::string text = "corrupt psn=1 bit=" + std::to_string(bit);
  Bench bench(at_sender ? text : "", at_sender ? "" : text);
  bench.send_all(3);
  bench.run(1ms);
  REQUIRE(bench.inbox.all.size() == 3);
  const auto& good = bench.inbox.all[0].bytes;
  auto expected = roce({.psn = 1, .payload = 64});
  expected[bit / 8] ^= static_cast<std::uint8_t>(0x80 >> bit % 8);
  const auto& bad = bench.inbox.all[1];
  CHECK(bad.bytes.size() == good.size());
  CHECK(std::equal(expected.begin(), expected.end(), bad.bytes.begin()));
  CHECK_FALSE(bad.icrc_is_right);
  CHECK(bench.inbox.all[0].icrc_is_right);
  CHECK(bench.inbox.all[2].icrc_is_right);
}

TEST_CASE("a flipped bit of the ICRC spoils it") {
  Bench bench("corrupt psn=1 bit=" + std::to_string(8 * (12 + 64) + 5));
  bench.send_all(2);
  bench.run(1ms);
  REQUIRE(bench.inbox.all.size() == 2);
  CHECK_FALSE(bench.inbox.all[1].icrc_is_right);
  const auto clean = roce({.psn = 1, .payload = 64});
  CHECK(std::equal(clean.begin(), clean.end(), bench.inbox.all[1].bytes.begin()));
}

TEST_CASE("a bit that the ICRC does not cover is flipped unnoticed, as on a cable") {
  const bool at_sender = GENERATE(true, false);
  const std::string_view text = "corrupt psn=1 bit=32";  // FECN
  Bench bench(at_sender ? text : "", at_sender ? "" : text);
  bench.send_all(2);
  bench.run(1ms);
  REQUIRE(bench.inbox.all.size() == 2);
  CHECK(bench.inbox.all[1].icrc_is_right);
  CHECK(wire::Bth::parse(bench.inbox.all[1].bytes).fecn);
}

TEST_CASE("a repaired ICRC hides the damage") {
  const bool at_sender = GENERATE(true, false);
  const std::string_view text = "corrupt psn=1 bit=100 icrc=repair";
  Bench bench(at_sender ? text : "", at_sender ? "" : text);
  bench.send_all(2);
  bench.run(1ms);
  REQUIRE(bench.inbox.all.size() == 2);
  CHECK(bench.inbox.all[1].icrc_is_right);
  CHECK(bench.inbox.all[1].bytes[12] == 0x08);
}

TEST_CASE("two flips of the same bit cancel") {
  Bench bench("corrupt psn=1 bit=100; corrupt psn=1 bit=100");
  bench.send_all(2);
  bench.run(1ms);
  CHECK(bench.inbox.all.at(1).icrc_is_right);
}

TEST_CASE("a marked packet arrives with CE") {
  const bool at_sender = GENERATE(true, false);
  Bench bench(at_sender ? "mark psn=1" : "", at_sender ? "" : "mark psn=1");
  bench.send_all(2);
  bench.run(1ms);
  REQUIRE(bench.inbox.all.size() == 2);
  CHECK(bench.inbox.all[0].ecn == wire::Ecn::not_ect);
  CHECK(bench.inbox.all[1].ecn == wire::Ecn::ce);
  CHECK(bench.inbox.all[1].icrc_is_right);
}

TEST_CASE("copies that a full fabric does not take are sent when it has room") {
  Bench bench("duplicate copies=16", "",
              {.bits_per_second = 1'000'000'000, .latency = 1us, .queue_limit = 12'000});
  REQUIRE(bench.send(0, 4096));
  CHECK_FALSE(bench.sender.flush(bench.now()));
  // Not at once, which would keep the owner busy until then.
  CHECK(bench.sender.next_deadline() != kNever);
  CHECK(bench.sender.next_deadline() > bench.now());
  bench.run(2ms);
  CHECK(bench.inbox.all.size() == 17);
  CHECK(bench.sender.flush(bench.now()));
}

TEST_CASE("every packet is accounted for under all faults but loss") {
  Bench bench(
      "duplicate p=0.1; delay by=50us jitter=100us p=0.1; reorder packets=3 p=0.1; mark p=0.1",
      "duplicate p=0.1; delay by=50us jitter=100us p=0.1; reorder packets=3 p=0.1");
  std::uint32_t sent = 0;
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 10; ++i) REQUIRE(bench.send(sent++));
    bench.sender.flush(bench.now());
    bench.run(20us);
  }
  bench.run(50ms);
  std::map<std::uint32_t, int> copies;
  for (const Arrived& arrived : bench.inbox.all) ++copies[arrived.psn];
  CHECK(copies.size() == sent);
  const std::uint64_t extra =
      bench.sender.injector().counters(0).hits + bench.receiver.injector().counters(0).hits;
  CHECK(bench.inbox.all.size() >= sent + extra / 2);
  CHECK(bench.inbox.all.size() <= sent + 2 * extra);
  const auto psns = bench.inbox.psns();
  CHECK_FALSE(std::is_sorted(psns.begin(), psns.end()));
}

}  // namespace
}  // namespace urxe::test
