#include "net/wire/headers.h"

#include <algorithm>
#include <array>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/hex.h"

namespace urxe::wire {
namespace {

// Both ways between a value and its bytes. The buffer is dirty before, so that a byte that is not
// written shows; the bytes behind the header must stay as they were.
template <typename Header>
void check_both_ways(const Header& value, const std::string& hex) {
  const auto expected = test::from_hex(hex);
  REQUIRE(expected);
  CHECK(Header::parse(*expected) == value);
  std::vector<std::uint8_t> bytes(expected->size() + 4, 0xEE);
  value.serialize(bytes);
  CHECK(test::to_hex(Bytes(bytes).first(expected->size())) == hex);
  CHECK(test::to_hex(Bytes(bytes).last(4)) == "eeeeeeee");
}

TEST_CASE("a BTH with every field distinct has these bytes") {
  check_both_ways(Bth{.opcode = 0x9A,
                      .solicited = true,
                      .migration = false,
                      .pad_count = 2,
                      .version = 0xB,
                      .pkey = PKey{0x8123},
                      .fecn = true,
                      .becn = false,
                      .destination = Qpn{0x456789},
                      .ack_request = true,
                      .psn = Psn{0xABCDEF}},
                  "9aab81238045678980abcdef");
}

TEST_CASE("every flag of the BTH has its own bit") {
  Bth bth{.migration = false, .pkey = PKey{0}};
  check_both_ways(bth, "000000000000000000000000");
  bth = {.solicited = true, .migration = false, .pkey = PKey{0}};
  check_both_ways(bth, "008000000000000000000000");
  bth = {.migration = true, .pkey = PKey{0}};
  check_both_ways(bth, "004000000000000000000000");
  bth = {.migration = false, .pad_count = 3, .pkey = PKey{0}};
  check_both_ways(bth, "003000000000000000000000");
  bth = {.migration = false, .version = 15, .pkey = PKey{0}};
  check_both_ways(bth, "000f00000000000000000000");
  bth = {.migration = false, .pkey = PKey{0}, .fecn = true};
  check_both_ways(bth, "000000008000000000000000");
  bth = {.migration = false, .pkey = PKey{0}, .becn = true};
  check_both_ways(bth, "000000004000000000000000");
  bth = {.migration = false, .pkey = PKey{0}, .ack_request = true};
  check_both_ways(bth, "000000000000000080000000");
}

TEST_CASE("the reserved bits of the BTH are ignored on reception and sent as zeros") {
  std::array<std::uint8_t, kBthSize> bytes{};
  bytes[4] = 0x3F;
  bytes[8] = 0x7F;
  const Bth bth = Bth::parse(bytes);
  CHECK(bth == Bth{.migration = false, .pkey = PKey{0}});
  bth.serialize(bytes);
  CHECK(std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; }));
}

TEST_CASE("the BTH of a default value is what hardware expects") {
  const Bth bth;
  CHECK(bth.migration);
  CHECK(bth.pkey == kDefaultPKey);
  CHECK(bth.version == 0);
}

TEST_CASE("fields that are too wide do not run into their neighbours") {
  std::array<std::uint8_t, kBthSize> bytes{};
  Bth{.migration = false, .pad_count = 0xFC, .version = 0xF0, .pkey = PKey{0}}.serialize(bytes);
  CHECK(test::to_hex(bytes) == "000000000000000000000000");
}

TEST_CASE("a DETH with every field distinct has these bytes") {
  check_both_ways(Deth{.qkey = QKey{0x81234567}, .source = Qpn{0x89ABCD}},
                  "8123456700"
                  "89abcd");
}

TEST_CASE("the reserved byte of the DETH is ignored on reception and sent as zero") {
  const auto bytes = test::from_hex("81234567ff89abcd");
  CHECK(Deth::parse(*bytes).source == Qpn{0x89ABCD});
}

TEST_CASE("a RETH with every field distinct has these bytes") {
  check_both_ways(
      Reth{.address = 0x8123456789ABCDEF, .rkey = RKey{0x90A1B2C3}, .length = 0xD4E5F607},
      "8123456789abcdef90a1b2c3d4e5f607");
}

TEST_CASE("an AtomicETH with every field distinct has these bytes") {
  check_both_ways(AtomicEth{.address = 0x8123456789ABCDEF,
                            .rkey = RKey{0x90A1B2C3},
                            .swap_or_add = 0x1020304050607080,
                            .compare = 0xF1E2D3C4B5A69788},
                  "8123456789abcdef90a1b2c31020304050607080f1e2d3c4b5a69788");
}

TEST_CASE("an AETH with every field distinct has these bytes") {
  check_both_ways(Aeth{.syndrome = Syndrome{0x62}, .msn = Msn{0x89ABCD}}, "6289abcd");
}

TEST_CASE("a FETH with every field distinct has these bytes") {
  check_both_ways(Feth{.placement = 0x9, .selectivity = 2}, "00000029");
}

TEST_CASE("the reserved bits of the FETH are ignored on reception and sent as zeros") {
  const auto bytes = test::from_hex("ffffffd9");
  CHECK(Feth::parse(*bytes) == Feth{.placement = 0x9, .selectivity = 1});
}

}  // namespace
}  // namespace urxe::wire
