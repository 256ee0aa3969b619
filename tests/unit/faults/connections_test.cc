#include "net/faults/connections.h"

#include <catch2/catch.hpp>

#include "tests/unit/faults/packets.h"

namespace urxe::test {
namespace {

using namespace net;

TEST_CASE("offsets count from the first request of a connection, across the wrap") {
  FirstPsns psns;
  CHECK(psns.offset_of(observed({.psn = 0xFFFFFE})) == 0);
  CHECK(psns.offset_of(observed({.psn = 0xFFFFFF})) == 1);
  CHECK(psns.offset_of(observed({.psn = 0})) == 2);
  CHECK(psns.offset_of(observed({.psn = 0xFFFFFF})) == 1);  // sent again
  CHECK(psns.offset_of(observed({.psn = 5})) == 7);         // after a loss on the way
}

TEST_CASE("connections are told apart by direction, peer and queue pair") {
  FirstPsns psns;
  CHECK(psns.offset_of(observed({.psn = 100, .qpn = 1})) == 0);
  CHECK(psns.offset_of(observed({.psn = 110, .qpn = 2})) == 0);
  CHECK(psns.offset_of(observed({.psn = 120, .qpn = 1}, Direction::receive)) == 0);
  CHECK(psns.offset_of(observed({.psn = 130, .qpn = 1}, Direction::transmit, 3)) == 0);
  CHECK(psns.offset_of(observed({.psn = 140, .qpn = 1})) == 40);
}

TEST_CASE("a response counts from the first request that it may answer") {
  FirstPsns psns;
  const Sample ack{.opcode = wire::Opcode::rc_acknowledge, .psn = 503, .qpn = 0x99};
  CHECK_FALSE(psns.offset_of(observed(ack, Direction::receive)));
  for (std::uint32_t psn = 500; psn < 510; ++psn) psns.offset_of(observed({.psn = psn}));
  psns.offset_of(observed({.psn = 9000, .qpn = 0x12}));
  CHECK(psns.offset_of(observed(ack, Direction::receive)) == 3);
  CHECK_FALSE(psns.offset_of(observed(ack, Direction::transmit)));
  CHECK_FALSE(psns.offset_of(observed(ack, Direction::receive, 3)));
}

TEST_CASE("the responses of a READ count from its request") {
  FirstPsns psns;
  CHECK(psns.offset_of(observed(
            {.opcode = wire::Opcode::rc_read_request, .psn = 40, .read_length = 100 * 256})) == 0);
  CHECK(psns.offset_of(observed({.opcode = wire::Opcode::rc_read_response_middle, .psn = 77},
                                Direction::receive)) == 37);
  CHECK(psns.offset_of(observed({.psn = 140})) == 100);
}

TEST_CASE("a READ of any length does not look like a new connection") {
  FirstPsns psns;
  const Sample read{.opcode = wire::Opcode::rc_read_request, .psn = 7, .read_length = 1U << 30};
  CHECK(psns.offset_of(observed(read)) == 0);
  CHECK(psns.offset_of(observed({.psn = 7 + (1U << 20)})) == 1U << 20);  // at an MTU of 1024
}

TEST_CASE("a jump that no loss explains begins a new connection") {
  FirstPsns psns;
  CHECK(psns.offset_of(observed({.psn = 1000})) == 0);
  CHECK(psns.offset_of(observed({.psn = 0x500000})) == 0);
  CHECK(psns.offset_of(observed({.psn = 0x500003})) == 3);
  CHECK(psns.offset_of(observed({.psn = 2000})) == 0);  // behind the first
}

TEST_CASE("a connection may send more packets than there are PSNs") {
  FirstPsns psns;
  std::uint64_t sent = 0;
  for (std::uint32_t step = 0; step < 1000; ++step, sent += 60000) {
    CHECK(psns.offset_of(observed({.psn = static_cast<std::uint32_t>(sent)})) == sent);
  }
}

TEST_CASE("the memory of connections is bounded, and the oldest is forgotten") {
  FirstPsns psns;
  for (std::uint32_t qpn = 0; qpn < 3 * FirstPsns::kMostFlows; ++qpn) {
    psns.offset_of(observed({.psn = 10, .qpn = qpn}));
    psns.offset_of(observed({.psn = 11, .qpn = 0}));  // in use all the time
  }
  CHECK(psns.flows() == FirstPsns::kMostFlows);
  CHECK(psns.offset_of(observed({.psn = 12, .qpn = 0})) == 2);
  CHECK(psns.offset_of(observed({.psn = 12, .qpn = 1})) == 0);
}

TEST_CASE("transmissions of a PSN are counted, for each flow by itself") {
  Transmissions transmissions;
  CHECK(transmissions.note(observed({.psn = 5})).times == 1);
  CHECK(transmissions.note(observed({.psn = 6})).times == 1);
  CHECK(transmissions.note(observed({.psn = 5})).times == 2);
  CHECK(transmissions.note(observed({.psn = 5, .qpn = 0x12})).times == 1);
  CHECK(transmissions.note(observed({.psn = 5}, Direction::receive)).times == 1);
  CHECK(transmissions.note(observed({.opcode = wire::Opcode::rc_acknowledge, .psn = 5})).times ==
        1);
  CHECK(transmissions.note(observed({.psn = 5})).times == 3);
}

TEST_CASE("PSNs are numbered in the order in which they are seen first") {
  Transmissions transmissions;
  CHECK(transmissions.note(observed({.psn = 50})).ordinal == 1);
  CHECK(transmissions.note(observed({.psn = 7})).ordinal == 2);
  CHECK(transmissions.note(observed({.psn = 50})).ordinal == 1);
  CHECK(transmissions.note(observed({.psn = 8})).ordinal == 3);
}

TEST_CASE("the memory of transmissions is bounded") {
  Transmissions transmissions;
  for (std::uint32_t psn = 0; psn < Transmissions::kMostPsns + 10; ++psn) {
    transmissions.note(observed({.psn = psn}));
  }
  CHECK(transmissions.size() == Transmissions::kMostPsns);
  CHECK(transmissions.note(observed({.psn = 100})).times == 2);
  CHECK(transmissions.note(observed({.psn = 0})).times == 1);  // forgotten
}

}  // namespace
}  // namespace urxe::test
