// How connections are made: what both ends learn, and what they do when messages are lost.
#include <algorithm>
#include <array>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/unit/emulator/cm_world.h"

namespace urxe::emulator {
namespace {

using test::CmWorld;
using test::kTestService;
using wire::CmAttribute;
using namespace std::chrono_literals;

TEST_CASE("a connection is made with REQ, REP and RTU, each sent once") {
  CmWorld world;
  world.listen();
  world.establish();
  CHECK(world.sent_count(CmAttribute::req) == 1);
  CHECK(world.sent_count(CmAttribute::rep) == 1);
  CHECK(world.sent_count(CmAttribute::rtu) == 1);
  world.run(200s);
  CHECK(world.sent_count(CmAttribute::req) == 1);
  CHECK(world.events(0).empty());
  CHECK(world.events(1).empty());
}

TEST_CASE("a request shows the server what the client offered, its private data in full") {
  CmWorld world;
  world.listen();
  auto data = world.ip_header(0, 1);
  for (std::size_t i = wire::kIpCmHeaderSize; i < data.size(); ++i) {
    data[i] = static_cast<std::uint8_t>(i);
  }
  REQUIRE(world.cm(0).connect(world.now(), {.service = kTestService,
                                            .vector = world.vector_to(1),
                                            .offer = CmWorld::offer(0x111, data)}));
  world.run();
  const CmEvent event = world.one_event(1, CmEventKind::request_received);
  const auto& req = std::get<wire::CmReq>(event.message.body);
  CHECK(req.local_qpn == wire::Qpn{0x111});
  CHECK(req.initiator_depth == 6);
  CHECK(req.responder_resources == 5);
  CHECK(std::equal(data.begin(), data.end(), req.private_data.begin()));
  CHECK(event.path.destination == world.pair().node(0).address);
  CHECK(event.path.source == world.pair().node(1).address);
}

TEST_CASE("both ends' queue pairs get what was agreed") {
  CmWorld world;
  world.listen();
  const auto ends = world.establish();
  const auto client = world.cm(0).qp_setup(ends.client, QpState::ready_to_receive);
  const auto server = world.cm(1).qp_setup(ends.server, QpState::ready_to_receive);
  REQUIRE(client);
  REQUIRE(server);
  CHECK(client->attributes.destination == wire::Qpn{0x222});
  CHECK(server->attributes.destination == wire::Qpn{0x111});
  CHECK(client->attributes.vector.destination == world.pair().node(1).address);
  CHECK(server->attributes.vector.destination == world.pair().node(0).address);
  CHECK(client->attributes.receive_psn == wire::Psn{0x111 * 3});
  CHECK(server->attributes.receive_psn == wire::Psn{0x222 * 3});
  const auto client_send = world.cm(0).qp_setup(ends.client, QpState::ready_to_send);
  const auto server_send = world.cm(1).qp_setup(ends.server, QpState::ready_to_send);
  REQUIRE(client_send);
  REQUIRE(server_send);
  CHECK(client_send->attributes.send_psn == server->attributes.receive_psn);
  CHECK(server_send->attributes.send_psn == client->attributes.receive_psn);
  CHECK(client_send->attributes.max_read_atomic == 5);  // the server's responder resources
  CHECK(client->attributes.max_dest_read_atomic == 6);  // the server's initiator depth
  CHECK(client_send->attributes.timeout == 19);
  CHECK(client_send->attributes.rnr_retry == 3);
  CHECK(client_send->attributes.retry_count == 7);
  CHECK(client->mask == (kAttrState | kAttrAddressVector | kAttrPathMtu | kAttrDestinationQpn |
                         kAttrReceivePsn | kAttrMaxDestReadAtomic | kAttrMinRnrTimer));
}

TEST_CASE("a lost REQ, REP or RTU is made good") {
  for (const auto lost : {CmAttribute::req, CmAttribute::rep, CmAttribute::rtu}) {
    INFO(wire::to_string(lost));
    CmWorld world;
    world.listen();
    int count = 0;
    world.fate = [&](int, const wire::CmMessage& message) {
      return message.attribute() == lost && count++ == 0 ? 0 : 1;
    };
    const auto client = world.connect();
    world.run(lost == CmAttribute::req ? 7s : 1s);
    const auto server = world.one_event(1, CmEventKind::request_received).id;
    REQUIRE(world.cm(1).accept(world.now(), server, CmWorld::offer(0x222)));
    world.run(lost == CmAttribute::rep ? 5s : 1s);
    world.one_event(0, CmEventKind::reply_received);
    REQUIRE(world.cm(0).confirm(world.now(), client));
    world.run(lost == CmAttribute::rtu ? 5s : 1s);
    world.one_event(1, CmEventKind::established);
    CHECK(world.sent_count(lost) == 2);
    CHECK(world.events(0).empty());
  }
}

TEST_CASE("a request that nobody answers is sent sixteen times, 6.1 s apart, and then given up") {
  CmWorld world;
  world.fate = [](int, const wire::CmMessage&) { return 0; };
  const auto id = world.connect();
  world.run(90s);
  CHECK(world.events(0).empty());
  CHECK(world.sent_count(CmAttribute::req) == 15);
  world.run(10s);
  CHECK(world.one_event(0, CmEventKind::request_timed_out).id == id);
  CHECK(world.sent_count(CmAttribute::req) == 16);
  world.cm(0).release(world.now(), id);
  CHECK(world.remembered() == 0);
}

TEST_CASE("a request to where the network says nobody is is repeated sooner, and given up soon") {
  CmWorld world;
  world.fate = [](int, const wire::CmMessage&) { return 0; };
  const auto id = world.connect();
  const auto peer = world.pair().node(1).address;
  world.run(1ms);
  for (int reports = 0; reports < 5; ++reports) {
    CHECK(world.sent_count(CmAttribute::req) == 1 + reports);
    world.cm(0).handle_unreachable(world.now(), peer);
    world.cm(0).handle_unreachable(world.now(), peer);  // more of them change nothing
    world.run(500ms);
  }
  CHECK(world.events(0).empty());
  world.cm(0).handle_unreachable(world.now(), peer);
  CHECK(world.one_event(0, CmEventKind::request_timed_out).id == id);
  world.run(20s);
  CHECK(world.sent_count(CmAttribute::req) == 6);
}

TEST_CASE("a server that begins while the network says that nobody is there gets the request") {
  CmWorld world;
  world.fate = [](int, const wire::CmMessage&) { return 0; };
  world.connect();
  world.run(1ms);
  world.cm(0).handle_unreachable(world.now(), world.pair().node(1).address);
  world.fate = nullptr;
  world.listen();
  world.run(600ms);
  const auto server = world.one_event(1, CmEventKind::request_received).id;
  REQUIRE(world.cm(1).accept(world.now(), server, CmWorld::offer(0x222)));
  world.run(1ms);
  world.one_event(0, CmEventKind::reply_received);
}

TEST_CASE("an unreachable address is nothing to requests to others and to what is established") {
  CmWorld world;
  world.listen();
  const auto ends = world.establish();
  world.cm(0).handle_unreachable(world.now() + 1h, world.pair().node(1).address);
  CHECK(world.cm(0).find(ends.client)->state == emulator::CmState::established);
  world.fate = [](int, const wire::CmMessage&) { return 0; };
  world.connect(0x333);
  world.cm(0).handle_unreachable(world.now() + 1h, world.pair().node(0).address);
  world.run(6s);
  CHECK(world.events(0).empty());
  CHECK(world.sent_count(CmAttribute::req) == 2);  // of both connections
}

TEST_CASE("the end of a connection whose peer's address is empty comes soon") {
  CmWorld world;
  world.listen();
  const auto ends = world.establish();
  world.fate = [](int, const wire::CmMessage&) { return 0; };
  REQUIRE(world.cm(0).disconnect(world.now(), ends.client));
  world.cm(0).handle_unreachable(world.now(), world.pair().node(1).address);
  world.run(3s);
  world.cm(0).handle_unreachable(world.now(), world.pair().node(1).address);
  CHECK(world.one_event(0, CmEventKind::disconnect_timed_out).id == ends.client);
}

TEST_CASE("a reply that nobody answers is given up, too") {
  CmWorld world;
  world.listen();
  world.connect();
  world.run();
  const auto server = world.one_event(1, CmEventKind::request_received).id;
  world.fate = [](int, const wire::CmMessage&) { return 0; };
  REQUIRE(world.cm(1).accept(world.now(), server, CmWorld::offer(0x222)));
  world.run(70s);
  CHECK(world.one_event(1, CmEventKind::reply_timed_out).id == server);
  CHECK(world.sent_count(CmAttribute::rep) == 16);
}

TEST_CASE("a request that is repeated while the server thinks is answered with MRA, once shown") {
  CmWorld world;
  world.listen();
  world.connect();
  world.run(7s);
  CHECK(world.events(1).size() == 1);
  CHECK(world.sent_count(CmAttribute::req) == 2);
  CHECK(world.sent_count(CmAttribute::mra) == 1);
  // The server asked for 65 s, beside what a path needs.
  world.run(60s);
  CHECK(world.sent_count(CmAttribute::req) == 2);
  world.run(10s);
  CHECK(world.sent_count(CmAttribute::req) == 3);
  CHECK(world.cm(1).counters().received_again[0] == 2);
}

TEST_CASE("every CM message may come twice, and nothing is told twice") {
  CmWorld world;
  world.listen();
  world.fate = [](int, const wire::CmMessage&) { return 2; };
  const auto ends = world.establish();
  REQUIRE(world.cm(0).disconnect(world.now(), ends.client));
  world.run();
  world.one_event(1, CmEventKind::disconnect_requested);
  REQUIRE(world.cm(1).disconnect(world.now(), ends.server));
  world.run();
  world.one_event(0, CmEventKind::disconnected);
}

TEST_CASE("a REP that comes again is answered with the RTU again") {
  CmWorld world;
  world.listen();
  bool lose = true;
  world.fate = [&](int, const wire::CmMessage& message) {
    return message.attribute() == CmAttribute::rtu && lose ? 0 : 1;
  };
  const auto client = world.connect();
  world.run();
  const auto server = world.one_event(1, CmEventKind::request_received).id;
  REQUIRE(world.cm(1).accept(world.now(), server, CmWorld::offer(0x222)));
  world.run();
  REQUIRE(world.cm(0).confirm(world.now(), client));
  world.run(10s);
  lose = false;
  CHECK(world.events(1).empty());
  world.run(5s);
  world.one_event(1, CmEventKind::established);
}

TEST_CASE("a server's queue pair that hears from the client need not wait for the RTU") {
  CmWorld world;
  world.listen();
  world.connect();
  world.run();
  const auto server = world.one_event(1, CmEventKind::request_received).id;
  REQUIRE(world.cm(1).accept(world.now(), server, CmWorld::offer(0x222)));
  REQUIRE(world.cm(1).note_established(world.now(), server));
  world.one_event(1, CmEventKind::established);
  CHECK_FALSE(world.cm(1).note_established(world.now(), server));
}

TEST_CASE("a service without listener is refused with reason 8, another address with 28") {
  CmWorld world;
  const auto id = world.connect();
  world.run();
  CmEvent event = world.one_event(0, CmEventKind::rejected);
  CHECK(event.id == id);
  CHECK(std::get<wire::CmRej>(event.message.body).reason == wire::RejectReason::invalid_service_id);
  world.listen({.service = kTestService, .address = wire::IpAddress::from_v4(0x01020304)});
  world.connect();
  world.run();
  event = world.one_event(0, CmEventKind::rejected);
  CHECK(std::get<wire::CmRej>(event.message.body).reason == wire::RejectReason::consumer_defined);
  world.listen({.service = kTestService, .address = world.pair().node(1).address});
  world.connect();
  world.run();
  CHECK(world.events(0).empty());
  world.one_event(1, CmEventKind::request_received);
}

TEST_CASE("a listener for IPv6 only, or for other queue pairs, takes no request of IPv4 and RC") {
  for (const ListenSpec& spec :
       {ListenSpec{.service = kTestService, .family = ListenSpec::Family::v6},
        ListenSpec{.service = kTestService, .type = QpType::uc}}) {
    CmWorld world;
    world.listen(spec);
    world.connect();
    world.run();
    world.one_event(0, CmEventKind::rejected);
    CHECK(world.events(1).empty());
  }
}

TEST_CASE("a full backlog drops requests silently until the program takes one") {
  CmWorld world;
  world.listen({.service = kTestService, .backlog = 2});
  for (std::uint32_t i = 0; i < 3; ++i) world.connect(0x100 + i);
  world.run();
  auto requests = world.events(1);
  REQUIRE(requests.size() == 2);
  CHECK(world.events(0).empty());
  world.cm(1).taken(requests[0].id);
  world.run(10s);  // the third asks again
  CHECK(world.events(1).size() == 1);
}

TEST_CASE("a rejection carries reason and private data, and both ends are done") {
  CmWorld world;
  world.listen();
  const auto client = world.connect();
  world.run();
  const auto server = world.one_event(1, CmEventKind::request_received).id;
  std::vector<std::uint8_t> data(148, 0x5A);
  REQUIRE(world.cm(1).reject(world.now(), server, wire::RejectReason::consumer_defined, data));
  world.run();
  const CmEvent event = world.one_event(0, CmEventKind::rejected);
  const auto& rej = std::get<wire::CmRej>(event.message.body);
  CHECK(rej.reason == wire::RejectReason::consumer_defined);
  CHECK(rej.private_data[147] == 0x5A);
  world.cm(0).release(world.now(), client);
  world.cm(1).release(world.now(), server);
  CHECK(world.remembered() == 0);
}

TEST_CASE("private data that does not fit a message is refused") {
  CmWorld world;
  world.listen();
  const std::vector<std::uint8_t> large(256);
  CHECK_FALSE(world.cm(0).connect(
      world.now(),
      {.service = kTestService, .vector = world.vector_to(1), .offer = CmWorld::offer(1, large)}));
  CHECK(world.remembered() == 0);
  world.connect();
  world.run();
  const auto server = world.one_event(1, CmEventKind::request_received).id;
  CHECK_FALSE(world.cm(1).accept(world.now(), server, CmWorld::offer(1, large)));
  CHECK_FALSE(world.cm(1).reject(world.now(), server, wire::RejectReason::consumer_defined, large));
  const std::vector<std::uint8_t> largest(196);
  CHECK(world.cm(1).accept(world.now(), server, CmWorld::offer(1, largest)));
}

TEST_CASE("a client that forgets its request tells the server, which forgets it as well") {
  CmWorld world;
  world.listen();
  const auto client = world.connect();
  world.run();
  const auto server = world.one_event(1, CmEventKind::request_received).id;
  world.cm(0).release(world.now(), client);
  world.run();
  const CmEvent event = world.one_event(1, CmEventKind::rejected);
  CHECK(std::get<wire::CmRej>(event.message.body).reason == wire::RejectReason::timeout);
  CHECK_FALSE(world.cm(1).accept(world.now(), server, CmWorld::offer(1)));
  world.cm(1).release(world.now(), server);
  CHECK(world.remembered() == 0);
}

TEST_CASE("a REP for a request that nobody knows any more is refused at once") {
  CmWorld world;
  world.listen();
  const auto client = world.connect();
  world.run();
  const auto server = world.one_event(1, CmEventKind::request_received).id;
  world.fate = [](int from, const wire::CmMessage&) { return from == 0 ? 0 : 1; };
  world.cm(0).release(world.now(), client);  // its REJ is lost
  world.run();
  world.fate = nullptr;
  REQUIRE(world.cm(1).accept(world.now(), server, CmWorld::offer(1)));
  world.run();
  const CmEvent event = world.one_event(1, CmEventKind::rejected);
  CHECK(std::get<wire::CmRej>(event.message.body).reason == wire::RejectReason::invalid_comm_id);
}

// A REQ or REP with other numbers than the real one, which is lost.
void send_instead(CmWorld& world, int to, const wire::CmBody& body) {
  std::vector<std::uint8_t> mad(wire::kMadSize);
  wire::serialize_cm({.body = body}, mad);
  world.cm(to).handle_mad(
      world.now(), mad,
      {.source = world.pair().node(1 - to).address, .destination = world.pair().node(to).address});
}

TEST_CASE("a REP with the id of another connection is dropped, and its request goes on waiting") {
  CmWorld world;
  world.listen();
  const auto other = world.establish(0x333, 0x444);
  world.fate = [](int, const wire::CmMessage&) { return 0; };
  const auto client = world.connect();
  world.run(10ms);
  for (const std::uint32_t qpn : {0x444, 0x222}) {
    send_instead(
        world, 0,
        wire::CmRep{.local_id = other.server, .remote_id = client, .local_qpn = wire::Qpn{qpn}});
  }
  CHECK(world.events(0).empty());
  CHECK(world.cm(0).find(other.client)->state == CmState::established);
  CHECK(world.cm(0).find(client)->state == CmState::request_sent);
  CHECK(world.cm(0).find(client)->remote_qpn == wire::Qpn{});
}

TEST_CASE(
    "a REQ whose data would lead nowhere, or of another partition, is refused with reason 12") {
  CmWorld world;
  world.listen();
  wire::CmReq right{.local_id = wire::CommId{0x5A5A}, .service = kTestService};
  right.primary.local_gid = world.pair().node(0).address;
  right.primary.remote_gid = world.pair().node(1).address;
  std::array<wire::CmReq, 4> wrong{right, right, right, right};
  wrong[0].primary.local_gid = {};
  wrong[1].primary.local_gid = wire::IpAddress::from_v4(0);
  wrong[2].primary.local_gid = *wire::IpAddress::parse("fd00::1");
  wrong[3].pkey = wire::PKey{0x8001};
  int refused = 0;
  world.fate = [&](int, const wire::CmMessage& message) {
    refused += std::get<wire::CmRej>(message.body).reason == wire::RejectReason::invalid_gid;
    return 0;
  };
  for (const wire::CmReq& req : wrong) send_instead(world, 1, req);
  world.run(10ms);
  CHECK(refused == 4);
  CHECK(world.events(1).empty());
  right.pkey = wire::PKey{0x7FFF};  // a limited member
  send_instead(world, 1, right);
  world.one_event(1, CmEventKind::request_received);
}

TEST_CASE("a rejection with reason 6 ends a request or a reply as any other does") {
  CmWorld world;
  world.listen();
  const auto client = world.connect();
  world.run(10ms);
  const auto server = world.one_event(1, CmEventKind::request_received).id;
  world.fate = [](int, const wire::CmMessage&) { return 0; };
  REQUIRE(world.cm(1).accept(world.now(), server, CmWorld::offer(0x222)));
  world.run(10ms);
  send_instead(world, 1,
               wire::CmRej{.local_id = client,
                           .remote_id = server,
                           .subject = wire::CmSubject::other,
                           .reason = wire::RejectReason::invalid_comm_id});
  CHECK(world.one_event(1, CmEventKind::rejected).id == server);
}

TEST_CASE("two ends that connect to each other at the same time get two connections") {
  CmWorld world;
  world.cm(0).listen({.service = kTestService});
  world.listen();
  const auto there = world.connect(0x111);
  const auto data = world.ip_header(1, 0);
  const auto back = world.cm(1).connect(world.now(), {.service = kTestService,
                                                      .vector = world.vector_to(0),
                                                      .offer = CmWorld::offer(0x333, data)});
  REQUIRE(back);
  world.run();
  for (const int node : {0, 1}) {
    const auto id = world.one_event(node, CmEventKind::request_received).id;
    REQUIRE(world.cm(node).accept(world.now(), id, CmWorld::offer(0x500)));
  }
  world.run();
  CHECK(world.one_event(0, CmEventKind::reply_received).id == there);
  CHECK(world.one_event(1, CmEventKind::reply_received).id == *back);
}

TEST_CASE("a device connects to itself") {
  CmWorld world;
  world.cm(0).listen({.service = kTestService});
  const auto data = world.ip_header(0, 0);
  const auto client = world.cm(0).connect(world.now(), {.service = kTestService,
                                                        .vector = world.vector_to(0),
                                                        .offer = CmWorld::offer(0x111, data)});
  REQUIRE(client);
  // The pair's wire leads to the other end only.
  const auto deliver = [&] {
    std::vector<std::uint8_t> mad(wire::kMadSize);
    while (const wire::Path* path = world.cm(0).poll_transmit(mad)) {
      const wire::Path copy = *path;
      world.cm(0).handle_mad(world.now(), mad, copy);
    }
  };
  deliver();
  const auto server = world.one_event(0, CmEventKind::request_received).id;
  REQUIRE(world.cm(0).accept(world.now(), server, CmWorld::offer(0x222)));
  deliver();
  CHECK(world.one_event(0, CmEventKind::reply_received).id == *client);
  REQUIRE(world.cm(0).confirm(world.now(), *client));
  deliver();
  CHECK(world.one_event(0, CmEventKind::established).id == server);
}

}  // namespace
}  // namespace urxe::emulator
