#include "net/faults/rule_values.h"

#include <catch2/catch.hpp>

namespace urxe::net {
namespace {

using namespace std::chrono_literals;

TEST_CASE("numbers are decimal or hexadecimal, and whole") {
  CHECK(parse_number("0") == 0);
  CHECK(parse_number("18446744073709551615") == UINT64_MAX);
  CHECK(parse_number("0x1F") == 31);
  CHECK(parse_number("0xFFFFFFFFFFFFFFFF") == UINT64_MAX);
  for (const char* text :
       {"", "x", "-1", "+1", "1x", "0x", "0xG", "1.5", " 1", "1 ", "18446744073709551616"}) {
    INFO(text);
    CHECK_FALSE(parse_number(text));
  }
}

TEST_CASE("sizes have binary units") {
  CHECK(parse_size("1500") == 1500);
  CHECK(parse_size("64K") == 65536);
  CHECK(parse_size("10M") == 10 * 1024 * 1024);
  CHECK(parse_size("2G") == std::uint64_t{2} << 30);
  for (const char* text : {"", "K", "1k", "1KB", "99999999999G"}) {
    INFO(text);
    CHECK_FALSE(parse_size(text));
  }
}

TEST_CASE("times have a unit and may have a fraction") {
  CHECK(parse_duration("5ns") == 5ns);
  CHECK(parse_duration("250us") == 250us);
  CHECK(parse_duration("1.5ms") == 1500us);
  CHECK(parse_duration("2s") == 2s);
  CHECK(parse_duration("0s") == 0s);
  for (const char* text :
       {"", "5", "s", "ms", "-1ms", "1m", "1e3s", "nans", "infs", "1..5s", "99999999999s"}) {
    INFO(text);
    CHECK_FALSE(parse_duration(text));
  }
}

TEST_CASE("a probability lies between 0 and 1") {
  CHECK(parse_probability("0") == 0.0);
  CHECK(parse_probability("0.01") == Approx(0.01));
  CHECK(parse_probability("1") == 1.0);
  for (const char* text : {"", "1.1", "-0.1", "nan", "1%", "."}) {
    INFO(text);
    CHECK_FALSE(parse_probability(text));
  }
}

TEST_CASE("a range is a number or two in order") {
  CHECK(parse_range("5", 9)->first == 5);
  CHECK(parse_range("5", 9)->last == 5);
  CHECK(parse_range("0x5..0x9", 9)->last == 9);
  for (const char* text : {"", "..", "5..", "..5", "9..5", "10", "5..10", "5...6"}) {
    INFO(text);
    CHECK_FALSE(parse_range(text, 9));
  }
}

TEST_CASE("PSNs are absolute, or relative at both ends") {
  CHECK_FALSE(parse_psns("5")->relative);
  CHECK(parse_psns("+5")->relative);
  CHECK(parse_psns("+5")->range.first == 5);
  CHECK(parse_psns("+5..+8")->range.last == 8);
  CHECK(parse_psns("0xFFFFFF")->range.first == 0xFFFFFF);
  for (const char* text : {"", "+", "0x1000000", "+5..8", "5..+8", "++5"}) {
    INFO(text);
    CHECK_FALSE(parse_psns(text));
  }
}

}  // namespace
}  // namespace urxe::net
