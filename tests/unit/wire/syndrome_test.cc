#include "net/wire/syndrome.h"

#include <chrono>

#include <catch2/catch.hpp>

namespace urxe::wire {
namespace {

using std::chrono::microseconds;

TEST_CASE("an acknowledgement grants unlimited credits") {
  CHECK(Syndrome::ack().bits() == 0x1F);
  CHECK(Syndrome::ack().kind() == Syndrome::Kind::ack);
  CHECK(Syndrome{}.bits() == 0x1F);
}

TEST_CASE("every NAK has the byte that peers expect") {
  CHECK(Syndrome::nak(NakCode::psn_sequence_error).bits() == 0x60);
  CHECK(Syndrome::nak(NakCode::invalid_request).bits() == 0x61);
  CHECK(Syndrome::nak(NakCode::remote_access_error).bits() == 0x62);
  CHECK(Syndrome::nak(NakCode::remote_operational_error).bits() == 0x63);
  CHECK(Syndrome::nak(NakCode::invalid_rd_request).bits() == 0x64);
  CHECK(Syndrome::nak(NakCode::remote_access_error).kind() == Syndrome::Kind::nak);
}

TEST_CASE("an RNR NAK carries its timer code and no more") {
  CHECK(Syndrome::rnr_nak(0).bits() == 0x20);
  CHECK(Syndrome::rnr_nak(31).bits() == 0x3F);
  CHECK(Syndrome::rnr_nak(32).bits() == 0x20);
  CHECK(Syndrome::rnr_nak(12).kind() == Syndrome::Kind::rnr_nak);
  CHECK(Syndrome::rnr_nak(12).value() == 12);
}

TEST_CASE("every syndrome byte has one kind, whatever its reserved bit") {
  for (unsigned bits = 0; bits < 256; ++bits) {
    const Syndrome syndrome{static_cast<std::uint8_t>(bits)};
    INFO("syndrome " << bits);
    CHECK(static_cast<unsigned>(syndrome.kind()) == (bits & 0x60) / 0x20);
    CHECK(syndrome.value() == (bits & 0x1F));
    CHECK(syndrome.bits() == bits);
  }
}

TEST_CASE("the RNR delays are those of the specification's table") {
  // In hundredths of a millisecond, as the table has them.
  constexpr int kTable[] = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                            48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                            2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  for (std::uint8_t code = 0; code < 32; ++code) {
    INFO("code " << int{code});
    CHECK(rnr_delay(code) == microseconds(kTable[code] * 10));
  }
  CHECK(rnr_delay(0x2C) == rnr_delay(12));
}

}  // namespace
}  // namespace urxe::wire
