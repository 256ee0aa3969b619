#include "verbs/config/interface.h"

#include <algorithm>

#include <catch2/catch.hpp>

#include "verbs/config/environment.h"
#include "verbs/config/port_status.h"

namespace urxe::verbs {
namespace {

using wire::IpAddress;

// As the kernel prints it: a permanent address, a tentative one, one that failed the check.
constexpr std::string_view kIfInet6 =
    "00000000000000000000000000000001 01 80 10 80       lo\n"
    "fe8000000000000000fc00fffe000001 04 40 20 80     eth0\n"
    "fd000000000000000000000000000002 04 40 00 c0     eth0\n"
    "fd000000000000000000000000000003 04 40 00 88     eth0\n";

IpAddress ip(const char* text) { return IpAddress::parse(text).value(); }

TEST_CASE("an address is tentative until duplicate address detection has passed it") {
  CHECK_FALSE(is_tentative(kIfInet6, 1, ip("::1")));
  CHECK_FALSE(is_tentative(kIfInet6, 4, ip("fe80::fc:ff:fe00:1")));
  CHECK(is_tentative(kIfInet6, 4, ip("fd00::2")));
  CHECK(is_tentative(kIfInet6, 4, ip("fd00::3")));
}

TEST_CASE("an address is tentative only on the interface that the kernel names") {
  CHECK_FALSE(is_tentative(kIfInet6, 5, ip("fd00::2")));
}

TEST_CASE("an IPv4 address, or one that the kernel does not list, is not tentative") {
  CHECK_FALSE(is_tentative(kIfInet6, 4, ip("10.0.0.1")));
  CHECK_FALSE(is_tentative(kIfInet6, 4, ip("fd00::9")));
  CHECK_FALSE(is_tentative("", 4, ip("fd00::2")));
  CHECK_FALSE(is_tentative("not what is expected", 4, ip("fd00::2")));
}

TEST_CASE("lo is among the interfaces, with its index and MTU, and they are in index order") {
  const auto interfaces = list_interfaces();
  REQUIRE(interfaces);
  const auto lo = std::find_if(interfaces->begin(), interfaces->end(),
                               [](const Interface& i) { return i.name == "lo"; });
  REQUIRE(lo != interfaces->end());
  CHECK(lo->loopback);
  CHECK(lo->index > 0);
  CHECK(lo->mtu >= 1280);
  CHECK(std::is_sorted(interfaces->begin(), interfaces->end(),
                       [](const Interface& a, const Interface& b) { return a.index < b.index; }));
}

TEST_CASE("a file that does not exist has no contents") {
  CHECK_FALSE(read_small_file("/nonexistent/file"));
  CHECK(read_small_file("/proc/self/comm"));
}

const char* no_variable(const char*) { return nullptr; }

TEST_CASE("without variables the devices are the default ones and real devices stay") {
  const auto environment = read_environment(no_variable);
  REQUIRE(environment);
  CHECK_FALSE(environment->devices);
  CHECK_FALSE(environment->hide_real);
}

TEST_CASE("URXE_DEVICES is passed on as it is") {
  const auto environment = read_environment([](const char* name) {
    return std::string_view(name) == "URXE_DEVICES" ? "rxe0=lo" : nullptr;
  });
  REQUIRE(environment);
  CHECK(environment->devices == "rxe0=lo");
}

TEST_CASE("URXE_HIDE_REAL is 0 or 1, and anything else is refused with a sentence") {
  const auto read = [](const char* value) {
    return read_environment([=](const char* name) {
      return std::string_view(name) == "URXE_HIDE_REAL" ? value : nullptr;
    });
  };
  CHECK(read("1")->hide_real);
  CHECK_FALSE(read("0")->hide_real);
  CHECK_FALSE(read("")->hide_real);
  REQUIRE_FALSE(read("yes"));
  CHECK(read("yes").error() == "URXE_HIDE_REAL is \"yes\": expected 0 or 1");
}

TEST_CASE("a link's speed is expressed in InfiniBand's terms as rxe does") {
  CHECK(to_string(rate_of(-1)) == "2.5 Gb/sec (1X SDR)");
  CHECK(to_string(rate_of(1000)) == "2.5 Gb/sec (1X SDR)");
  CHECK(to_string(rate_of(10000)) == "10 Gb/sec (1X FDR10)");
  CHECK(to_string(rate_of(20000)) == "20 Gb/sec (4X DDR)");
  CHECK(to_string(rate_of(25000)) == "25 Gb/sec (1X EDR)");
  CHECK(to_string(rate_of(40000)) == "40 Gb/sec (4X FDR10)");
  CHECK(to_string(rate_of(100000)) == "100 Gb/sec (4X EDR)");
}

TEST_CASE("a port on an interface that does not exist is down and disabled") {
  DeviceConfig device;
  device.netdev = "nonexistent0";
  const PortStatus status = port_status(device);
  CHECK(status.state == PortState::down);
  CHECK(status.physical == PhysicalState::disabled);
}

TEST_CASE("a port's MTU is that of its interface at this moment, or what it was if nobody tells") {
  DeviceConfig device;
  device.active_mtu = 512;
  device.netdev = "lo";
  CHECK(port_status(device).active_mtu == 4096);
  device.netdev = "nonexistent0";
  CHECK(port_status(device).active_mtu == 512);
}

}  // namespace
}  // namespace urxe::verbs
