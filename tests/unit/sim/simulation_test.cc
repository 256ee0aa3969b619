#include "net/sim/simulation.h"

#include <memory>
#include <vector>

#include <catch2/catch.hpp>

#include "net/random.h"

namespace urxe::net {
namespace {

using namespace std::chrono_literals;

// Writes down when it acted.
class Recorder final : public Actor {
 public:
  explicit Recorder(std::vector<const Recorder*>& order) : order_(order) {}
  void act(Time now) override {
    acted.push_back(now);
    order_.push_back(this);
  }
  std::vector<Time> acted;

 private:
  std::vector<const Recorder*>& order_;
};

struct Actors {
  std::vector<const Recorder*> order;
  Simulation simulation;  // dies after the actors
  Recorder a{order}, b{order}, c{order};
};

TEST_CASE("actors act in the order of their times, and of scheduling where times are equal") {
  Actors t;
  t.simulation.schedule(t.a, Time{30us});
  t.simulation.schedule(t.b, Time{10us});
  t.simulation.schedule(t.c, Time{10us});
  t.simulation.run_until(Time{1s});
  CHECK(t.order == std::vector<const Recorder*>{&t.b, &t.c, &t.a});
  CHECK(t.a.acted == std::vector{Time{30us}});
  CHECK(t.simulation.now() == Time{1s});
}

TEST_CASE("the clock stands where the last actor acted, and nothing acts too early") {
  Actors t;
  t.simulation.schedule(t.a, Time{10us});
  t.simulation.schedule(t.b, Time{20us});
  REQUIRE(t.simulation.step());
  CHECK(t.simulation.now() == Time{10us});
  t.simulation.run_until(Time{19us});
  CHECK(t.b.acted.empty());
  t.simulation.run_until(Time{20us});
  CHECK(t.b.acted == std::vector{Time{20us}});
  CHECK_FALSE(t.simulation.step());
}

TEST_CASE("scheduling again replaces the time, in both directions, and kNever takes it away") {
  Actors t;
  t.simulation.schedule(t.a, Time{10us});
  t.simulation.schedule(t.a, Time{50us});
  t.simulation.schedule(t.b, Time{50us});
  t.simulation.schedule(t.b, Time{20us});
  t.simulation.schedule(t.c, Time{5us});
  t.simulation.schedule(t.c, kNever);
  CHECK(t.simulation.next() == Time{20us});
  t.simulation.run_until(Time{1s});
  CHECK(t.a.acted == std::vector{Time{50us}});
  CHECK(t.b.acted == std::vector{Time{20us}});
  CHECK(t.c.acted.empty());
}

TEST_CASE("a latest time moves an actor forward only") {
  Actors t;
  t.simulation.schedule_at_latest(t.a, Time{20us});
  t.simulation.schedule_at_latest(t.a, Time{30us});
  CHECK(t.a.due() == Time{20us});
  t.simulation.schedule_at_latest(t.a, Time{10us});
  CHECK(t.a.due() == Time{10us});
}

TEST_CASE("a time that has passed means now") {
  Actors t;
  t.simulation.run_until(Time{1s});
  t.simulation.schedule(t.a, Time{10us});
  REQUIRE(t.simulation.step());
  CHECK(t.a.acted == std::vector{Time{1s}});
}

TEST_CASE("an actor that died is not called") {
  Actors t;
  auto doomed = std::make_unique<Recorder>(t.order);
  t.simulation.schedule(*doomed, Time{10us});
  t.simulation.schedule(*doomed, Time{5us});
  t.simulation.schedule(t.a, Time{20us});
  doomed.reset();
  t.simulation.run_until(Time{1s});
  CHECK(t.order == std::vector<const Recorder*>{&t.a});
}

TEST_CASE("time never runs backwards, whatever is scheduled") {
  Actors t;
  Random random(7);
  std::vector<std::unique_ptr<Recorder>> crowd;
  for (int i = 0; i < 100; ++i) crowd.push_back(std::make_unique<Recorder>(t.order));
  Time latest{};
  for (int i = 0; i < 10000; ++i) {
    Recorder& chosen = *crowd[random.below(crowd.size())];
    t.simulation.schedule(chosen, t.simulation.now() + Duration(random.below(1000)));
    if (random.chance(0.7) && t.simulation.step()) {
      CHECK(t.simulation.now() >= latest);
      latest = t.simulation.now();
    }
  }
}

}  // namespace
}  // namespace urxe::net
