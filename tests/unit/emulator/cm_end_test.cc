// How connections end, how services are resolved, and what strangers can do: nothing.
#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "net/random.h"
#include "tests/unit/emulator/cm_world.h"

namespace urxe::emulator {
namespace {

using test::CmWorld;
using test::kTestService;
using wire::CmAttribute;
using namespace std::chrono_literals;

TEST_CASE("one end asks for the end, the other agrees at once, and both rest for a while") {
  CmWorld world;
  world.listen();
  const auto ends = world.establish();
  REQUIRE(world.cm(0).disconnect(world.now(), ends.client));
  world.run();
  CHECK(world.one_event(1, CmEventKind::disconnect_requested).id == ends.server);
  CHECK(world.one_event(0, CmEventKind::disconnected).id == ends.client);
  REQUIRE(world.cm(1).disconnect(world.now(), ends.server));
  world.run();
  CHECK(world.events(1).empty());
  world.run(2s);
  world.one_event(0, CmEventKind::time_wait_ended);
  world.one_event(1, CmEventKind::time_wait_ended);
  world.cm(0).release(world.now(), ends.client);
  world.cm(1).release(world.now(), ends.server);
  CHECK(world.remembered() == 0);
  CHECK(world.sent_count(CmAttribute::dreq) == 1);
  CHECK(world.sent_count(CmAttribute::drep) == 1);
}

TEST_CASE("both ends may ask for the end at the same time") {
  CmWorld world;
  world.listen();
  const auto ends = world.establish();
  REQUIRE(world.cm(0).disconnect(world.now(), ends.client));
  REQUIRE(world.cm(1).disconnect(world.now(), ends.server));
  world.run();
  for (const int node : {0, 1}) {
    const auto events = world.events(node);
    REQUIRE_FALSE(events.empty());
    CHECK(events[0].kind == CmEventKind::disconnect_requested);
  }
  world.run(10s);
  world.cm(0).release(world.now(), ends.client);
  world.cm(1).release(world.now(), ends.server);
  CHECK(world.remembered() == 0);
}

TEST_CASE("a lost DREQ or DREP is made good") {
  for (const auto lost : {CmAttribute::dreq, CmAttribute::drep}) {
    INFO(wire::to_string(lost));
    CmWorld world;
    world.listen();
    const auto ends = world.establish();
    int count = 0;
    world.fate = [&](int, const wire::CmMessage& message) {
      return message.attribute() == lost && count++ == 0 ? 0 : 1;
    };
    REQUIRE(world.cm(0).disconnect(world.now(), ends.client));
    world.run(5s);
    CHECK(world.events(0).empty());
    world.run(2s);
    world.one_event(1, CmEventKind::disconnect_requested);
    REQUIRE(world.cm(1).disconnect(world.now(), ends.server));
    const auto events = world.events(0);
    REQUIRE_FALSE(events.empty());
    CHECK(events[0].kind == CmEventKind::disconnected);
  }
}

TEST_CASE("an end that nobody agrees to comes in the end") {
  CmWorld world;
  world.listen();
  const auto ends = world.establish();
  world.fate = [](int, const wire::CmMessage&) { return 0; };
  REQUIRE(world.cm(0).disconnect(world.now(), ends.client));
  world.run(99s);
  const auto events = world.events(0);
  REQUIRE_FALSE(events.empty());
  CHECK(events[0].kind == CmEventKind::disconnect_timed_out);
  CHECK(world.sent_count(CmAttribute::dreq) == 16);
}

TEST_CASE("a connection that is released tells the peer until the peer has heard it") {
  CmWorld world;
  world.listen();
  const auto ends = world.establish();
  int lost = 2;
  world.fate = [&](int, const wire::CmMessage&) { return lost-- > 0 ? 0 : 1; };
  world.cm(0).release(world.now(), ends.client);
  CHECK_FALSE(world.cm(0).disconnect(world.now(), ends.client));
  world.run(15s);
  world.one_event(1, CmEventKind::disconnect_requested);
  REQUIRE(world.cm(1).disconnect(world.now(), ends.server));
  world.run(5s);
  CHECK(world.cm(0).connections() == 0);
  CHECK(world.events(0).empty());
}

TEST_CASE("both ends may release at the same time") {
  CmWorld world;
  world.listen();
  const auto ends = world.establish();
  world.cm(0).release(world.now(), ends.client);
  world.cm(1).release(world.now(), ends.server);
  world.run(5s);
  CHECK(world.remembered() == 0);
}

TEST_CASE("a process that ends tells all its peers") {
  CmWorld world;
  world.listen();
  std::vector<CmWorld::Ends> all;
  for (std::uint32_t i = 0; i < 5; ++i) all.push_back(world.establish(0x100 + i, 0x200 + i));
  world.cm(0).release_all(world.now());
  world.run();
  const auto events = world.events(1);
  CHECK(events.size() == 5);
  for (const CmEvent& event : events) CHECK(event.kind == CmEventKind::disconnect_requested);
}

TEST_CASE("a DREQ that nobody knows is agreed to, so that the peer stops asking") {
  CmWorld world;
  world.listen();
  const auto ends = world.establish();
  world.fate = [](int from, const wire::CmMessage&) { return from == 1 ? 0 : 1; };
  world.cm(1).release_all(world.now());
  world.run(90s);  // it gives up
  CHECK(world.cm(1).connections() == 0);
  world.fate = nullptr;
  REQUIRE(world.cm(0).disconnect(world.now(), ends.client));
  world.run(1s);
  world.one_event(0, CmEventKind::disconnected);
}

TEST_CASE("a peer that forgot a connection and asks anew with the same queue pair is stale") {
  CmWorld world;
  world.listen();
  const auto ends = world.establish(0x111, 0x222);
  // The client crashed: nothing of it is left but a queue pair number.
  world.fate = [](int from, const wire::CmMessage&) { return from == 0 ? 0 : 1; };
  world.cm(0).release_all(world.now());
  world.run(100s);
  world.fate = nullptr;
  world.connect(0x111);
  world.run(1s);
  const CmEvent event = world.one_event(0, CmEventKind::rejected);
  CHECK(std::get<wire::CmRej>(event.message.body).reason == wire::RejectReason::stale_connection);
  world.run(1s);
  CHECK(world.one_event(1, CmEventKind::disconnected).id == ends.server);
  world.run(5s);
  world.events(1);  // its time wait ended
  world.connect(0x111);
  world.run(1s);
  world.one_event(1, CmEventKind::request_received);
}

// --- service resolution

constexpr wire::ServiceId kUdService = wire::service_id(wire::PortSpace::udp, 7174);

TEST_CASE("a UD service is found: queue pair, Q_Key, and private data both ways") {
  CmWorld world;
  world.listen({.service = kUdService, .type = QpType::ud});
  auto data = world.ip_header(0, 1, 216);
  data.back() = 0x77;
  const auto client = world.cm(0).resolve(
      world.now(), {.service = kUdService, .vector = world.vector_to(1), .private_data = data});
  REQUIRE(client);
  world.run();
  const CmEvent asked = world.one_event(1, CmEventKind::resolution_requested);
  CHECK(std::get<wire::CmSidrReq>(asked.message.body).private_data.back() == 0x77);
  const std::vector<std::uint8_t> answer(136, 0x66);
  REQUIRE(world.cm(1).answer(
      world.now(), asked.id,
      {.qpn = wire::Qpn{0x42}, .qkey = wire::QKey{0x01234567}, .private_data = answer}));
  world.run();
  const CmEvent event = world.one_event(0, CmEventKind::resolved);
  const auto& rep = std::get<wire::CmSidrRep>(event.message.body);
  CHECK(rep.status == wire::SidrStatus::success);
  CHECK(rep.qpn == wire::Qpn{0x42});
  CHECK(rep.qkey == wire::QKey{0x01234567});
  CHECK(rep.private_data[135] == 0x66);
  CHECK(rep.service == kUdService);
  world.cm(0).release(world.now(), *client);
  world.cm(1).release(world.now(), asked.id);
  CHECK(world.remembered() == 0);
}

TEST_CASE("a UD service that is unknown, refused, or silent gives its own answer") {
  CmWorld world;
  const auto data = world.ip_header(0, 1, 216);
  const ResolveSpec spec{.service = kUdService, .vector = world.vector_to(1), .private_data = data};
  const auto status = [&] {
    const CmEvent event = world.one_event(0, CmEventKind::resolved);
    return std::get<wire::CmSidrRep>(event.message.body).status;
  };
  REQUIRE(world.cm(0).resolve(world.now(), spec));
  world.run();
  CHECK(status() == wire::SidrStatus::unsupported);
  world.listen({.service = kUdService, .type = QpType::ud});
  REQUIRE(world.cm(0).resolve(world.now(), spec));
  world.run();
  world.cm(1).release(world.now(), world.one_event(1, CmEventKind::resolution_requested).id);
  world.run();
  CHECK(status() == wire::SidrStatus::rejected);
  world.fate = [](int, const wire::CmMessage&) { return 0; };
  REQUIRE(world.cm(0).resolve(world.now(), spec));
  world.run(70s);
  world.one_event(0, CmEventKind::resolution_timed_out);
}

TEST_CASE("a SIDR_REQ that comes again is shown once, and answered again after the answer") {
  CmWorld world;
  world.listen({.service = kUdService, .type = QpType::ud});
  const auto data = world.ip_header(0, 1, 216);
  REQUIRE(world.cm(0).resolve(
      world.now(), {.service = kUdService, .vector = world.vector_to(1), .private_data = data}));
  world.run(10s);
  CHECK(world.sent_count(CmAttribute::sidr_req) == 3);
  world.one_event(1, CmEventKind::resolution_requested);
}

TEST_CASE("a REQ may have the id of a SIDR_REQ of the same peer, even without a GUID") {
  CmWorld world;
  world.listen();
  world.listen({.service = kUdService, .type = QpType::ud});
  const auto data = world.ip_header(0, 1, 216);
  const auto asked = world.cm(0).resolve(
      world.now(), {.service = kUdService, .vector = world.vector_to(1), .private_data = data});
  REQUIRE(asked);
  world.run(10ms);
  world.one_event(1, CmEventKind::resolution_requested);
  wire::CmReq req{.local_id = *asked, .service = kTestService};
  req.primary.local_gid = world.pair().node(0).address;
  req.primary.remote_gid = world.pair().node(1).address;
  std::vector<std::uint8_t> mad(wire::kMadSize);
  wire::serialize_cm({.body = req}, mad);
  world.cm(1).handle_mad(
      world.now(), mad,
      {.source = world.pair().node(0).address, .destination = world.pair().node(1).address});
  world.one_event(1, CmEventKind::request_received);
}

// --- strangers

TEST_CASE("a message from another address than the peer's changes nothing") {
  CmWorld world;
  world.listen();
  const auto ends = world.establish();
  std::vector<std::uint8_t> mad(wire::kMadSize);
  const wire::Path forged{.source = wire::IpAddress::from_v4(0x01010101),
                          .destination = world.pair().node(1).address};
  const auto forge = [&](const wire::CmBody& body) {
    wire::serialize_cm({.body = body}, mad);
    world.cm(1).handle_mad(world.now(), mad, forged);
  };
  forge(wire::CmDreq{.local_id = ends.client, .remote_id = ends.server, .remote_qpn = {}});
  forge(wire::CmDreq{
      .local_id = ends.client, .remote_id = ends.server, .remote_qpn = wire::Qpn{0x222}});
  forge(wire::CmRej{
      .local_id = ends.client, .remote_id = ends.server, .subject = wire::CmSubject::other});
  world.run();
  CHECK(world.events(1).empty());
  CHECK(world.cm(1).find(ends.server)->state == CmState::established);
}

TEST_CASE("a DREQ for another queue pair, or with another id, changes nothing") {
  CmWorld world;
  world.listen();
  const auto ends = world.establish();
  std::vector<std::uint8_t> mad(wire::kMadSize);
  const wire::Path path{.source = world.pair().node(0).address,
                        .destination = world.pair().node(1).address};
  const auto send = [&](const wire::CmBody& body) {
    wire::serialize_cm({.body = body}, mad);
    world.cm(1).handle_mad(world.now(), mad, path);
  };
  send(wire::CmDreq{
      .local_id = ends.client, .remote_id = ends.server, .remote_qpn = wire::Qpn{0x999}});
  send(wire::CmDreq{
      .local_id = wire::CommId{12345}, .remote_id = ends.server, .remote_qpn = wire::Qpn{0x222}});
  send(wire::CmDrep{.local_id = ends.client, .remote_id = ends.server});
  send(wire::CmRtu{.local_id = ends.client, .remote_id = ends.server});
  CHECK(world.events(1).empty());
  CHECK(world.cm(1).find(ends.server)->state == CmState::established);
}

// Bits of real messages turned over, and given to an end with a connection in each state.
TEST_CASE("damaged messages harm nobody, and leave nothing behind") {
  net::Random random(1);
  for (int round = 0; round < 200; ++round) {
    CmWorld world;
    world.listen();
    world.listen({.service = kUdService, .type = QpType::ud});
    std::vector<std::vector<std::uint8_t>> seen;
    world.fate = [&](int, const wire::CmMessage& message) {
      seen.emplace_back(wire::kMadSize);
      wire::serialize_cm(message, seen.back());
      return 1;
    };
    const auto ends = world.establish();
    if (round % 2 == 0) world.cm(0).release(world.now(), ends.client);
    for (int i = 0; i < 50; ++i) {
      auto mad = seen[random.below(seen.size())];
      for (std::uint64_t bits = random.below(6); bits > 0; --bits) {
        mad[random.below(60)] ^= static_cast<std::uint8_t>(1U << random.below(8));
      }
      const int to = static_cast<int>(random.below(2));
      world.cm(to).handle_mad(world.now(), mad,
                              {.source = world.pair().node(1 - to).address,
                               .destination = world.pair().node(to).address});
    }
    world.run(200s);
    for (const int node : {0, 1}) {
      world.cm(node).release_all(world.now());
      world.run(200s);
    }
    world.run(200s);
    REQUIRE(world.remembered() == 0);
  }
}

// Loss, repetition and time until both ends agree that there is a connection, or that there is
// none.
TEST_CASE("whatever is lost or repeated, both ends agree, and in the end nothing is left") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    net::Random random(seed);
    CmWorld world;
    world.listen();
    world.fate = [&](int, const wire::CmMessage&) {
      const auto draw = random.below(10);
      return draw < 4 ? 0 : draw < 6 ? 2 : 1;
    };
    const auto client = world.connect();
    wire::CommId server;
    bool client_is_up = false;
    bool server_is_up = false;
    for (int step = 0; step < 1400; ++step) {
      world.run(1s);
      for (const CmEvent& event : world.events(1)) {
        if (event.kind == CmEventKind::request_received) {
          server = event.id;
          REQUIRE(world.cm(1).accept(world.now(), server, CmWorld::offer(0x222)));
        }
        if (event.kind == CmEventKind::established) server_is_up = true;
        if (event.kind == CmEventKind::disconnect_requested) {
          static_cast<void>(world.cm(1).disconnect(world.now(), event.id));
          server_is_up = false;
        }
      }
      for (const CmEvent& event : world.events(0)) {
        if (event.kind != CmEventKind::reply_received) continue;
        REQUIRE(world.cm(0).confirm(world.now(), client));
        client_is_up = true;
      }
      if (step == 1200) {
        // 40 % loss, sixteen tries: it does not fail in these seeds.
        CHECK(client_is_up);
        CHECK(server_is_up);
        world.cm(0).release(world.now(), client);
      }
    }
    CHECK_FALSE(server_is_up);
    world.cm(1).release(world.now(), server);
    world.run(200s);
    CHECK(world.remembered() == 0);
  }
}

}  // namespace
}  // namespace urxe::emulator
