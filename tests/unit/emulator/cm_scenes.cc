#include "tests/unit/emulator/cm_scenes.h"

#include <catch2/catch.hpp>

namespace urxe::test {

emulator::DeviceOptions scene_options() {
  emulator::DeviceOptions options;
  options.cm_probe_interval = 5s;
  options.node_guid = 0x02005E0000000001;
  return options;
}

Scene::Scene(int receiver) : node(receiver), world(scene_options()) {
  // The ends' numbers are to differ.
  for (int i = 0; i < 0x20; ++i) world.cm(0).release(world.now(), world.connect());
  world.fate = [](int, const wire::CmMessage&) { return 0; };
  world.pair().transmit();
  world.fate = nullptr;
  for (const int at : {0, 1}) {
    world.cm(at).listen({.service = kTestService, .address = world.pair().node(at).address});
    world.cm(at).listen({.service = kUdService,
                         .address = world.pair().node(at).address,
                         .type = emulator::QpType::ud});
  }
  other = world.establish(kOtherClientQpn, kOtherServerQpn);
}

void Scene::lose_all() {
  world.fate = [](int, const wire::CmMessage&) { return 0; };
}

wire::CommId Scene::connect() {
  client = world.connect(kClientQpn);
  world.run(10ms);
  for (const auto& event : world.events(1)) server = event.id;
  return client;
}

void Scene::accept() {
  world.cm(1).taken(server);
  REQUIRE(world.cm(1).accept(world.now(), server, CmWorld::offer(kServerQpn)));
  world.run(10ms);
}

void Scene::establish() {
  connect();
  accept();
  REQUIRE(world.cm(0).confirm(world.now(), client));
  world.run(10ms);
}

void Scene::disconnect() {
  establish();
  REQUIRE(world.cm(0).disconnect(world.now(), client));
  world.run(10ms);
}

void Scene::resolve() {
  const auto data = world.ip_header(0, 1, 216);
  client = world.cm(0)
               .resolve(world.now(),
                        {.service = kUdService, .vector = world.vector_to(1), .private_data = data})
               .value();
  world.run(10ms);
  for (const auto& event : world.events(1)) server = event.id;
}

std::vector<Stage> stages() {
  return {
      {"listening", 1, [](Scene&) {}},
      {"REQ sent", 0,
       [](Scene& scene) {
         scene.lose_all();
         scene.connect();
       }},
      {"MRA(REQ) received", 0,
       [](Scene& scene) {
         scene.connect();
         scene.world.run(7s);
       }},
      {"REQ received", 1, [](Scene& scene) { scene.connect(); }},
      {"REP received", 0,
       [](Scene& scene) {
         scene.connect();
         scene.accept();
       }},
      {"REP sent", 1,
       [](Scene& scene) {
         scene.connect();
         scene.lose_all();
         scene.accept();
       }},
      {"MRA(REP) received", 1,
       [](Scene& scene) {
         scene.connect();
         scene.accept();
         scene.world.run(7s);
       }},
      {"established, by us", 0, [](Scene& scene) { scene.establish(); }},
      {"established, by the peer", 1, [](Scene& scene) { scene.establish(); }},
      {"DREQ sent", 0,
       [](Scene& scene) {
         scene.establish();
         scene.lose_all();
         REQUIRE(scene.world.cm(0).disconnect(scene.world.now(), scene.client));
         scene.world.run(10ms);
       }},
      {"DREQ sent, released", 0,
       [](Scene& scene) {
         scene.establish();
         scene.lose_all();
         scene.world.cm(0).release(scene.world.now(), scene.client);
         scene.world.run(10ms);
       }},
      {"DREQ received", 1, [](Scene& scene) { scene.disconnect(); }},
      {"time wait", 0, [](Scene& scene) { scene.disconnect(); }},
      {"idle", 0,
       [](Scene& scene) {
         scene.disconnect();
         scene.world.run(9s);
       }},
      {"SIDR_REQ sent", 0,
       [](Scene& scene) {
         scene.lose_all();
         scene.resolve();
       }},
      {"SIDR_REQ received", 1, [](Scene& scene) { scene.resolve(); }},
  };
}

}  // namespace urxe::test
