// How an end of a connection learns that the other has died without a word.
#include <catch2/catch.hpp>

#include "tests/unit/emulator/cm_world.h"

namespace urxe::emulator {
namespace {

using test::CmWorld;
using wire::CmAttribute;
using namespace std::chrono_literals;

DeviceOptions probing() {
  DeviceOptions options;
  options.cm_probe_interval = 5s;
  options.max_cm_probes = 4;
  return options;
}

// The MADs of a node are lost from now on, or all that go to it.
struct Silence {
  bool on = false;
  int dead = 0;
  void install(CmWorld& world) {
    world.fate = [this](int from, const wire::CmMessage&) { return on && from == dead ? 0 : 1; };
  }
};

TEST_CASE("a peer that answered probes once and falls silent is gone after five of them") {
  for (const int dead : {0, 1}) {
    CmWorld world(probing());
    Silence silence{.dead = dead};
    silence.install(world);
    world.listen();
    const auto ends = world.establish();
    world.run(12s);
    CHECK(world.events(1 - dead).empty());
    silence.on = true;
    world.run(19s);
    CHECK(world.events(1 - dead).empty());
    world.run(7s);
    const CmEvent event = world.one_event(1 - dead, CmEventKind::disconnect_requested);
    CHECK(event.id == (dead == 0 ? ends.server : ends.client));
    REQUIRE(world.cm(1 - dead).disconnect(world.now(), event.id));
    world.run(5s);
    world.one_event(1 - dead, CmEventKind::time_wait_ended);
  }
}

TEST_CASE("connections whose peers answer probes stay, for hours") {
  CmWorld world(probing());
  world.listen();
  world.establish();
  for (int hour = 0; hour < 3; ++hour) world.run(3600s);
  CHECK(world.events(0).empty());
  CHECK(world.events(1).empty());
  CHECK(world.sent_count(CmAttribute::mra) > 4'000);
}

TEST_CASE("a peer that never answered probes, as Linux, may be silent") {
  CmWorld world(probing());
  world.fate = [](int, const wire::CmMessage& message) {
    return message.attribute() == CmAttribute::mra ? 0 : 1;
  };
  world.listen();
  world.establish();
  world.run(600s);
  CHECK(world.events(0).empty());
  CHECK(world.events(1).empty());
}

TEST_CASE("whoever has the address of a peer that is gone says so, and the connection ends") {
  CmWorld world(probing());
  world.listen();
  const auto ends = world.establish();
  // What a killed process does: it forgets, and its DREQ never leaves.
  world.fate = [](int, const wire::CmMessage& message) {
    return message.attribute() == CmAttribute::dreq ? 0 : 1;
  };
  world.cm(0).release(world.now(), ends.client);
  world.run(200s);  // until the DREQ's retries are over
  CHECK(world.cm(0).connections() == 0);
  CHECK(world.one_event(1, CmEventKind::disconnect_requested).id == ends.server);
  REQUIRE(world.cm(1).disconnect(world.now(), ends.server));
}

TEST_CASE("an end that asks for the end of a dead connection has it at once") {
  CmWorld world(probing());
  world.listen();
  const auto ends = world.establish();
  world.fate = [](int, const wire::CmMessage& message) {
    return message.attribute() == CmAttribute::dreq ? 0 : 1;
  };
  world.run(4s);
  REQUIRE(world.cm(1).disconnect(world.now(), ends.server));
  world.run(1s);
  CHECK(world.events(1).empty());
  const wire::CmMessage forgotten{
      .transaction = 1,
      .body = wire::CmRej{.local_id = ends.client,
                          .remote_id = ends.server,
                          .subject = wire::CmSubject::other,
                          .reason = wire::RejectReason::invalid_comm_id}};
  std::array<std::uint8_t, wire::kMadSize> mad{};
  wire::serialize_cm(forgotten, mad);
  world.cm(1).handle_mad(
      world.now(), mad,
      {.source = world.pair().node(0).address, .destination = world.pair().node(1).address});
  CHECK(world.one_event(1, CmEventKind::disconnected).id == ends.server);
}

}  // namespace
}  // namespace urxe::emulator
