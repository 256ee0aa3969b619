#include "net/wire/address.h"

#include <string>

#include <catch2/catch.hpp>

namespace urxe::wire {
namespace {

IpAddress address(const std::string& text) {
  const auto parsed = IpAddress::parse(text);
  REQUIRE(parsed);
  return *parsed;
}

TEST_CASE("an IPv4 address is kept in its IPv4-mapped form, which is the GID") {
  const IpAddress v4 = address("192.0.2.33");
  CHECK(v4.bytes() ==
        std::array<std::uint8_t, 16>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 0, 2, 33});
  CHECK(v4.is_v4());
  CHECK(v4.v4() == 0xC0000221);
  CHECK(v4 == IpAddress::from_v4(0xC0000221));
  CHECK(v4 == address("::ffff:192.0.2.33"));
}

TEST_CASE("an address is printed as it is written") {
  for (const char* text : {"0.0.0.0", "127.0.0.1", "255.255.255.255", "::", "::1", "2001:db8::7",
                           "fe80::5054:ff:fe88:2", "ff02::1:ff00:1"}) {
    CHECK(address(text).to_string() == text);
  }
}

TEST_CASE("what is not an address is not taken") {
  for (const char* text : {"", " ", "1.2.3", "1.2.3.4.5", "256.0.0.1", "1.2.3.4 ", "01.2.3.4x",
                           "host", ":::", "1:2:3:4:5:6:7:8:9", "fe80::1%eth0", "::g"}) {
    INFO('"' << text << '"');
    CHECK_FALSE(IpAddress::parse(text));
  }
}

TEST_CASE("sixteen bytes make the address that they hold") {
  const IpAddress v6 = address("2001:db8:1:2:3:4:5:6");
  CHECK(IpAddress::from_bytes(v6.bytes()) == v6);
  CHECK_FALSE(v6.is_v4());
}

TEST_CASE("only ::ffff:0:0/96 is IPv4") {
  CHECK_FALSE(address("::1").is_v4());
  CHECK_FALSE(address("::7f00:1").is_v4());  // the deprecated IPv4-compatible form
  CHECK_FALSE(address("::fffe:7f00:1").is_v4());
  CHECK_FALSE(address("1::ffff:7f00:1").is_v4());
  CHECK_FALSE(address("::1:ffff:7f00:1").is_v4());
}

TEST_CASE("addresses know their kind") {
  struct Row {
    const char* text;
    bool unspecified, link_local, loopback, multicast;
  };
  constexpr Row kRows[] = {
      {"::", true, false, false, false},
      {"0.0.0.0", false, false, false, false},
      {"::1", false, false, true, false},
      {"127.0.0.1", false, false, true, false},
      {"127.8.9.10", false, false, true, false},
      {"128.0.0.1", false, false, false, false},
      {"fe80::1", false, true, false, false},
      {"febf::1", false, true, false, false},
      {"fec0::1", false, false, false, false},
      {"fe7f::1", false, false, false, false},
      {"ff0e::1", false, false, false, true},
      {"224.0.0.1", false, false, false, true},
      {"239.255.255.255", false, false, false, true},
      {"240.0.0.1", false, false, false, false},
      {"10.0.0.1", false, false, false, false},
      {"2001:db8::1", false, false, false, false},
  };
  for (const Row& row : kRows) {
    INFO(row.text);
    CHECK(address(row.text).is_unspecified() == row.unspecified);
    CHECK(address(row.text).is_link_local() == row.link_local);
    CHECK(address(row.text).is_loopback() == row.loopback);
    CHECK(address(row.text).is_multicast() == row.multicast);
  }
}

}  // namespace
}  // namespace urxe::wire
