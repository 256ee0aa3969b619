// Connections over a network that loses, repeats, delays and reorders their messages: in the end
// both ends agree on which exist, and nothing is left of those that do not.
#include <map>
#include <numeric>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "net/faults/rule_parser.h"
#include "net/random.h"
#include "tests/sim/pair_world.h"

namespace urxe::test {
namespace {

using namespace emulator;

constexpr wire::ServiceId kService = wire::service_id(wire::PortSpace::tcp, 7174);
constexpr int kSeeds = 2000;
constexpr Duration kSlice = 100ms;
constexpr int kSlices = 600;  // a minute with faults
constexpr int kMostConnections = 12;

std::vector<net::Rule> draw_rules(net::Random& dice) {
  const double p = std::array{0.02, 0.1, 0.3}.at(dice.below(3));
  std::string text;
  if (dice.chance(0.8)) text += fmt::format("drop p={} until=60s\n", p);
  if (dice.chance(0.5)) text += fmt::format("duplicate p={} copies=2 until=60s\n", p);
  if (dice.chance(0.5)) text += fmt::format("delay p={} by=30ms jitter=9s until=60s\n", p);
  if (dice.chance(0.3)) text += fmt::format("reorder p={} packets=2 within=2s until=60s\n", p);
  return *net::parse_rules(text);
}

// A program at one end.
class Program {
 public:
  Program(End& end, net::Random& dice) : end_(end), dice_(dice) {}

  [[nodiscard]] ConnectionManager& cm() { return end_.host.device().cm(); }
  [[nodiscard]] const std::map<wire::CommId, bool>& connections() const { return established_; }
  [[nodiscard]] bool holds(wire::CommId id) const {
    const auto found = established_.find(id);
    return found != established_.end() && found->second;
  }

  void connect(Time now, const wire::IpAddress& peer, std::uint32_t qpn) {
    ConnectSpec spec{.service = kService, .vector = {.destination = peer, .global = true}};
    std::vector<std::uint8_t> data(92);
    wire::IpCmHeader{.source_port = 1000, .source = end_.host.address(), .destination = peer}
        .serialize(data);
    spec.offer = offer(qpn, data);
    established_[cm().connect(now, spec).value()] = false;
  }

  // Ends one of its connections, in one way or the other.
  void end_one(Time now) {
    for (const auto& [id, established] : established_) {
      if (!established || dice_.chance(0.7)) continue;
      if (dice_.chance(0.5) && cm().disconnect(now, id)) {
        established_[id] = false;
      } else {
        release(now, id);
      }
      return;
    }
  }

  void take_events(Time now) {
    while (const auto event = cm().poll_event()) handle(now, *event);
    end_.host.settle();
  }

  void release_all(Time now) {
    while (!established_.empty()) release(now, established_.begin()->first);
    end_.host.settle();
  }

 private:
  static QpOffer offer(std::uint32_t qpn, wire::Bytes data = {}) {
    return {.qpn = wire::Qpn{qpn},
            .starting_psn = wire::Psn{qpn * 3},
            .responder_resources = 5,
            .initiator_depth = 6,
            .retry_count = 7,
            .private_data = data};
  }

  void release(Time now, wire::CommId id) {
    cm().release(now, id);
    established_.erase(id);
  }

  void handle(Time now, const CmEvent& event) {
    switch (event.kind) {
      case CmEventKind::request_received:
        return answer_request(now, event.id);
      case CmEventKind::reply_received:
        return answer_reply(now, event.id);
      case CmEventKind::established:
        established_[event.id] = true;
        return;
      default:  // the end, one way or another
        if (established_.contains(event.id)) release(now, event.id);
    }
  }

  void answer_request(Time now, wire::CommId id) {
    established_[id] = false;
    cm().taken(id);
    const std::uint64_t roll = dice_.below(10);
    const std::uint32_t qpn = 0x200 + static_cast<std::uint32_t>(next_++);
    if (roll < 7 && cm().accept(now, id, offer(qpn))) return;
    if (roll < 9) static_cast<void>(cm().reject(now, id, wire::RejectReason::consumer_defined, {}));
    release(now, id);
  }

  void answer_reply(Time now, wire::CommId id) {
    if (!established_.contains(id)) return;
    if (dice_.chance(0.85) && cm().confirm(now, id)) {
      established_[id] = true;
      return;
    }
    release(now, id);
  }

  End& end_;
  net::Random& dice_;
  std::map<wire::CommId, bool> established_;  // what it holds, and whether it may send
  std::uint32_t next_ = 0;
};

class Connections {
 public:
  explicit Connections(std::uint64_t seed)
      : dice_(seed),
        world_({.rules = draw_rules(dice_), .seed = seed}),
        client_(world_.client(), dice_),
        server_(world_.server(), dice_) {
    listener_ = server_.cm().listen({.service = kService});
  }

  void with_faults() {
    int made = 0;
    for (int slice = 0; slice < kSlices; ++slice) {
      if (made < kMostConnections && dice_.chance(0.1)) {
        client_.connect(now(), world_.server().host.address(),
                        0x100 + static_cast<std::uint32_t>(made++));
      }
      if (dice_.chance(0.005)) client_.end_one(now());
      if (dice_.chance(0.005)) server_.end_one(now());
      run_for(kSlice);
    }
  }

  // True when nothing is left to be done.
  [[nodiscard]] bool come_to_rest() {
    constexpr int kHours = 1200;  // of time wait and retries, in slices of ten seconds
    for (int i = 0; i < kHours; ++i) {
      run_for(10s);
      if (world_.network().simulation().next() == kNever) return true;
    }
    return false;
  }

  void release_all() {
    client_.release_all(now());
    server_.release_all(now());
    server_.cm().stop_listening(listener_);
  }

  void check_that_both_agree() {
    check_that(client_, server_);
    check_that(server_, client_);
  }
  [[nodiscard]] std::size_t held() const {
    return client_.connections().size() + server_.connections().size();
  }
  // Messages that were sent again.
  [[nodiscard]] std::uint64_t repeated() {
    const auto sum = [](const CmCounters::Row& row) {
      return std::accumulate(row.begin(), row.end(), std::uint64_t{0});
    };
    return sum(client_.cm().counters().sent_again) + sum(server_.cm().counters().sent_again);
  }
  [[nodiscard]] std::size_t left() {
    return client_.cm().connections() + server_.cm().connections() + server_.cm().listeners();
  }

 private:
  [[nodiscard]] Time now() { return world_.network().simulation().now(); }

  void run_for(Duration time) {
    net::Simulation& simulation = world_.network().simulation();
    const Time end = now() + time;
    client_.take_events(now());
    server_.take_events(now());
    while (simulation.next() <= end && simulation.step()) {
      client_.take_events(now());
      server_.take_events(now());
    }
    simulation.run_until(end);
  }

  // What one end may use, the other one may use too.
  static void check_that(Program& one, const Program& other) {
    for (const auto& [id, established] : one.connections()) {
      const Connection* connection = one.cm().find(id);
      REQUIRE(connection != nullptr);
      CAPTURE(id.value(), static_cast<int>(connection->state));
      CHECK(established == (connection->state == CmState::established));
      if (established) CHECK(other.holds(connection->remote_id));
    }
  }

  net::Random dice_;
  PairWorld world_;
  Program client_;
  Program server_;
  ListenerId listener_;
};

TEST_CASE("both ends agree on their connections, and nothing is left, whatever was lost") {
  std::size_t held = 0;
  std::uint64_t repeated = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    CAPTURE(seed);
    Connections connections(static_cast<std::uint64_t>(seed));
    connections.with_faults();
    REQUIRE(connections.come_to_rest());
    connections.check_that_both_agree();
    held += connections.held();
    repeated += connections.repeated();
    connections.release_all();
    REQUIRE(connections.come_to_rest());
    REQUIRE(connections.left() == 0);
  }
  // Many live on, and many had a hard time: the checks have something to look at.
  CHECK(held > kSeeds);
  CHECK(repeated > 5 * kSeeds);
}

}  // namespace
}  // namespace urxe::test
