#include "net/faults/opcode_names.h"

#include <algorithm>

#include <catch2/catch.hpp>

#include "net/wire/opcode.h"

namespace urxe::net {
namespace {

std::size_t count_of(std::string_view name) {
  const auto set = find_opcodes(name);
  return set ? set->opcodes.count() : 0;
}

bool has(std::string_view name, wire::Opcode opcode) {
  return find_opcodes(name)->opcodes.test(static_cast<std::size_t>(opcode));
}

TEST_CASE("every opcode of the table is found by its own name, and alone") {
  for (const wire::OpcodeInfo& info : wire::all_opcodes()) {
    std::string name(info.name);
    std::replace(name.begin(), name.end(), ' ', '_');
    INFO(name);
    CHECK(count_of(name) == 1);
    CHECK(has(name, info.opcode));
  }
}

TEST_CASE("without a service an opcode's name means all services that have it") {
  CHECK(count_of("SEND_ONLY") == 3);
  CHECK(count_of("send_only") == 3);
  CHECK(count_of("SEND_MIDDLE") == 2);
  CHECK(count_of("READ_RESPONSE_MIDDLE") == 1);
  CHECK(has("READ_REQUEST", wire::Opcode::rc_read_request));
  CHECK(has("RDMA_READ_REQUEST", wire::Opcode::rc_read_request));
  CHECK(has("CNP", wire::Opcode::cnp));
}

TEST_CASE("classes hold what their names say") {
  CHECK(count_of("SEND") == 16);
  CHECK(count_of("RC_SEND") == 8);
  CHECK(count_of("WRITE") == 12);
  CHECK(count_of("READ") == 1);
  CHECK(count_of("READ_RESPONSE") == 4);
  CHECK(count_of("ATOMIC") == 2);
  CHECK(count_of("RESPONSE") == 6);
  CHECK(count_of("REQUEST") + count_of("RESPONSE") + 1 == wire::all_opcodes().size());
}

TEST_CASE("acknowledgements are told apart by what they say") {
  CHECK(find_opcodes("ACK")->syndrome == wire::Syndrome::Kind::ack);
  CHECK(find_opcodes("NAK")->syndrome == wire::Syndrome::Kind::nak);
  CHECK(find_opcodes("RNR")->syndrome == wire::Syndrome::Kind::rnr_nak);
  CHECK_FALSE(find_opcodes("ACKNOWLEDGE")->syndrome);
  CHECK(has("NAK", wire::Opcode::rc_acknowledge));
}

TEST_CASE("a number stands for itself, known or not") {
  CHECK(has("0x0c", wire::Opcode::rc_read_request));
  CHECK(find_opcodes("0xFF")->opcodes.test(0xFF));
}

TEST_CASE("what is no name is refused") {
  for (const char* name :
       {"", "SEN", "SENDS", "RC_", "UD_WRITE", "RC", "0x", "0x100", "0xZ", "12"}) {
    INFO(name);
    CHECK_FALSE(find_opcodes(name));
  }
}

}  // namespace
}  // namespace urxe::net
