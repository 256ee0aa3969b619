#include "tests/unit/emulator/cm_world.h"

#include <catch2/catch.hpp>

namespace urxe::test {

using emulator::CmEventKind;

emulator::CmEvent CmWorld::one_event(int node, CmEventKind kind) {
  const auto found = events(node);
  REQUIRE(found.size() == 1);
  REQUIRE(static_cast<int>(found[0].kind) == static_cast<int>(kind));
  return found[0];
}

CmWorld::Ends CmWorld::establish(std::uint32_t client_qpn, std::uint32_t server_qpn) {
  Ends ends;
  ends.client = connect(client_qpn);
  run();
  ends.server = one_event(1, CmEventKind::request_received).id;
  cm(1).taken(ends.server);
  REQUIRE(cm(1).accept(now(), ends.server, offer(server_qpn)));
  run();
  REQUIRE(one_event(0, CmEventKind::reply_received).id == ends.client);
  REQUIRE(cm(0).confirm(now(), ends.client));
  run();
  REQUIRE(one_event(1, CmEventKind::established).id == ends.server);
  return ends;
}

int CmWorld::decide(const WirePacket& packet) {
  const auto message = wire::parse_cm(packet.parsed().payload);
  if (!message) return 1;
  ++sent[static_cast<std::size_t>(message->attribute()) - 0x10];
  return fate ? fate(packet.from, *message) : 1;
}

}  // namespace urxe::test
