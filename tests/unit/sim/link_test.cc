#include "net/sim/link.h"

#include <algorithm>
#include <numeric>

#include <catch2/catch.hpp>

#include "net/wire/frame.h"
#include "tests/unit/sim/traffic.h"

namespace urxe::test {
namespace {

using namespace net;

// On a cable of 8 Gb/s a byte takes a nanosecond.
constexpr std::uint64_t kGigabytePerSecond = 8'000'000'000;
constexpr std::size_t kPayload = 920;
constexpr std::size_t kPacketSize =
    wire::kIpv4Size + wire::kUdpSize + wire::kBthSize + kPayload + wire::kIcrcSize;
constexpr Duration kPacketTime{kPacketSize + kEthernetOverhead};

struct Cable {
  explicit Cable(const LinkSpec& spec, std::uint64_t seed = 1)
      : link(simulation, spec, arrivals, Random(seed)) {}
  bool offer(std::uint32_t number, std::size_t payload = kPayload,
             wire::Ecn ecn = wire::Ecn::not_ect) {
    return link.offer(simulation.now(), ip_packet(path_between(1, 2, ecn), number, payload));
  }
  std::size_t marked() const {
    return static_cast<std::size_t>(
        std::count_if(arrivals.all.begin(), arrivals.all.end(),
                      [](const Arrival& arrival) { return arrival.path.ecn() == wire::Ecn::ce; }));
  }
  Simulation simulation;
  Arrivals arrivals;
  Link link;
};

TEST_CASE("a packet takes its time on the cable and then the latency") {
  Cable cable({.bits_per_second = kGigabytePerSecond, .latency = 5us});
  REQUIRE(cable.offer(7));
  cable.simulation.run_until(Time{1s});
  REQUIRE(cable.arrivals.all.size() == 1);
  CHECK(cable.arrivals.all[0].time == Time{5us} + kPacketTime);
  CHECK(cable.arrivals.all[0].number == 7);
}

TEST_CASE("packets share the cable: the rate is kept, and so is the order") {
  Cable cable({.bits_per_second = kGigabytePerSecond, .latency = 5us});
  for (std::uint32_t i = 0; i < 100; ++i) REQUIRE(cable.offer(i));
  cable.simulation.run_until(Time{1s});
  REQUIRE(cable.arrivals.all.size() == 100);
  for (std::uint32_t i = 0; i < 100; ++i) {
    CHECK(cable.arrivals.all[i].number == i);
    CHECK(cable.arrivals.all[i].time == Time{5us} + (i + 1) * kPacketTime);
  }
}

TEST_CASE("a cable that was idle does not make up for it") {
  Cable cable({.bits_per_second = kGigabytePerSecond, .latency = 0us});
  cable.simulation.run_until(Time{1ms});
  REQUIRE(cable.offer(1));
  REQUIRE(cable.offer(2));
  cable.simulation.run_until(Time{1s});
  CHECK(cable.arrivals.all[0].time == Time{1ms} + kPacketTime);
  CHECK(cable.arrivals.all[1].time == Time{1ms} + 2 * kPacketTime);
}

TEST_CASE("jitter delays within its bound and overtakes nothing") {
  Cable cable({.bits_per_second = kGigabytePerSecond, .latency = 5us, .jitter = 20us});
  for (std::uint32_t i = 0; i < 500; ++i) {
    REQUIRE(cable.offer(i));
    cable.simulation.run_until(cable.simulation.now() + kPacketTime);
  }
  cable.simulation.run_until(Time{1s});
  REQUIRE(cable.arrivals.all.size() == 500);
  Duration longest{};
  for (std::uint32_t i = 0; i < 500; ++i) {
    const Duration delay = cable.arrivals.all[i].time - Time{i * kPacketTime};
    CHECK(cable.arrivals.all[i].number == i);
    CHECK(delay >= 5us + kPacketTime);
    CHECK(delay <= 25us + kPacketTime);
    longest = std::max(longest, delay);
  }
  CHECK(longest > 20us);
}

TEST_CASE("a full queue drops the newest, and has room again as packets leave") {
  const std::size_t size = kPacketSize;
  Cable cable({.bits_per_second = kGigabytePerSecond, .latency = 5us, .queue_limit = 3 * size});
  CHECK(cable.offer(0));
  CHECK(cable.offer(1));
  CHECK(cable.offer(2));
  CHECK_FALSE(cable.offer(3));
  CHECK(cable.link.room_at(Time{}, size) == Time{kPacketTime});
  CHECK(cable.link.room_at(Time{}, 2 * size) == Time{2 * kPacketTime});
  cable.simulation.run_until(Time{kPacketTime});
  CHECK(cable.link.queued(Time{kPacketTime}) == 2 * size);
  CHECK(cable.offer(4));
  cable.simulation.run_until(Time{1s});
  CHECK(cable.arrivals.numbers() == std::vector<std::uint32_t>{0, 1, 2, 4});
  CHECK(cable.link.counters().dropped_packets == 1);
  CHECK(cable.link.counters().dropped_bytes == size);
  CHECK(cable.link.counters().longest_queue == 3 * size);
}

TEST_CASE("every packet that is offered is delivered, dropped or on the way, at any time") {
  Cable cable({.bits_per_second = kGigabytePerSecond,
               .latency = 30us,
               .jitter = 10us,
               .queue_limit = 8000});
  Random random(9);
  for (std::uint32_t i = 0; i < 5000; ++i) {
    cable.offer(i, random.below(2000));
    cable.simulation.run_until(cable.simulation.now() + Duration(random.below(1500)));
    const LinkCounters& counters = cable.link.counters();
    CHECK(counters.offered_packets ==
          counters.delivered_packets + counters.dropped_packets + cable.link.on_the_way());
    CHECK(counters.longest_queue <= 8000);
  }
  CHECK(cable.link.counters().dropped_packets > 100);
  cable.simulation.run_until(Time{1s});
  const LinkCounters& counters = cable.link.counters();
  CHECK(cable.link.on_the_way() == 0);
  CHECK(counters.offered_bytes == counters.delivered_bytes + counters.dropped_bytes);
  CHECK(cable.link.queued(Time{1s}) == 0);
  const auto numbers = cable.arrivals.numbers();
  CHECK(std::is_sorted(numbers.begin(), numbers.end()));
}

// --- marking

Cable marking_cable(double probability) {
  return Cable(
      {.bits_per_second = kGigabytePerSecond,
       .marking = {.min = 10 * kPacketSize, .max = 30 * kPacketSize, .probability = probability}});
}

TEST_CASE("a short queue marks nothing, a long one everything") {
  Cable cable = marking_cable(0);
  for (std::uint32_t i = 0; i < 50; ++i) cable.offer(i, kPayload, wire::Ecn::ect0);
  cable.simulation.run_until(Time{1s});
  for (const Arrival& arrival : cable.arrivals.all) {
    CHECK((arrival.path.ecn() == wire::Ecn::ce) == (arrival.number >= 30));
  }
  CHECK(cable.link.counters().marked_packets == cable.marked());
}

TEST_CASE("between the thresholds the probability of a mark rises with the queue") {
  std::array<int, 30> marks{};
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Cable cable({.bits_per_second = kGigabytePerSecond,
                 .marking = {.min = 10 * kPacketSize, .max = 30 * kPacketSize, .probability = 0.5}},
                seed);
    for (std::uint32_t i = 0; i < 30; ++i) cable.offer(i, kPayload, wire::Ecn::ect0);
    cable.simulation.run_until(Time{1s});
    for (const Arrival& arrival : cable.arrivals.all) {
      marks.at(arrival.number) += arrival.path.ecn() == wire::Ecn::ce ? 1 : 0;
    }
  }
  CHECK(std::accumulate(marks.begin(), marks.begin() + 11, 0) == 0);
  CHECK(std::abs(marks[20] - 100) < 30);  // half way: half of the probability
  CHECK(std::abs(marks[29] - 190) < 40);
}

TEST_CASE("packets of senders without ECN are never marked") {
  Cable cable = marking_cable(1);
  for (std::uint32_t i = 0; i < 50; ++i) cable.offer(i);
  cable.simulation.run_until(Time{1s});
  CHECK(cable.marked() == 0);
}

TEST_CASE("a mark keeps the packet's other bytes and its IPv4 checksum right") {
  SimPacket packet = ip_packet(path_between(1, 2, wire::Ecn::ect0), 5, 100);
  const SimPacket before = packet;
  REQUIRE(mark_congestion(packet));
  const auto frame = wire::parse_frame(packet);
  REQUIRE(frame);
  CHECK(frame->path.ecn() == wire::Ecn::ce);
  CHECK(
      std::equal(packet.begin() + wire::kIpv4Size, packet.end(), before.begin() + wire::kIpv4Size));
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < wire::kIpv4Size; i += 2) {
    sum += wire::load_be<std::uint16_t>(packet, i);
  }
  CHECK((sum & 0xFFFF) + (sum >> 16) == 0xFFFF);
}

TEST_CASE("one seed makes one run, another seed another") {
  const auto run = [](std::uint64_t seed) {
    Cable cable({.bits_per_second = kGigabytePerSecond,
                 .jitter = 5us,
                 .marking = {.min = 2000, .max = 30000, .probability = 0.5}},
                seed);
    for (std::uint32_t i = 0; i < 60; ++i) cable.offer(i, 500 + 7 * i, wire::Ecn::ect0);
    cable.simulation.run_until(Time{1s});
    std::vector<std::pair<Time, std::uint8_t>> seen;
    for (const Arrival& arrival : cable.arrivals.all) {
      seen.emplace_back(arrival.time, arrival.path.traffic_class);
    }
    return seen;
  };
  CHECK(run(1) == run(1));
  CHECK(run(1) != run(2));
}

}  // namespace
}  // namespace urxe::test
