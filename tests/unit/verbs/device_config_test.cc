#include "verbs/config/device_config.h"

#include <set>

#include <catch2/catch.hpp>
#include <sys/sysmacros.h>

namespace urxe::verbs {
namespace {

using wire::IpAddress;

constexpr std::uint64_t kLoopbackGuid = 0x0200000000000001;

IpAddress ip(const char* text) { return IpAddress::parse(text).value(); }

Interface lo() {
  return {.name = "lo",
          .index = 1,
          .mtu = 65536,
          .up = true,
          .running = true,
          .loopback = true,
          .addresses = {ip("127.0.0.1"), ip("::1")}};
}

Interface eth(unsigned number, std::vector<IpAddress> addresses) {
  return {.name = "eth" + std::to_string(number),
          .index = 2 + number,
          .mtu = 1500,
          .up = true,
          .running = true,
          .mac = {0x52, 0x54, 0, 0x88, 0, static_cast<std::uint8_t>(number)},
          .addresses = std::move(addresses)};
}

tl::expected<std::vector<DeviceConfig>, std::string> choose(
    std::optional<std::string_view> request, const std::vector<Interface>& interfaces,
    const RealDevices& real = {}) {
  return choose_devices(request, interfaces, real, kLoopbackGuid);
}

TEST_CASE("by default every interface that is up and has an address gets a device, but not lo") {
  Interface down = eth(1, {ip("10.0.1.1")});
  down.up = false;
  const auto devices =
      choose({}, {lo(), eth(0, {ip("10.0.0.1")}), down, eth(2, {}), eth(3, {ip("10.0.3.1")})});
  REQUIRE(devices);
  REQUIRE(devices->size() == 2);
  CHECK((*devices)[0].name == "rxe0");
  CHECK((*devices)[0].netdev == "eth0");
  CHECK((*devices)[0].uverbs_number == 0);
  CHECK((*devices)[1].name == "rxe1");
  CHECK((*devices)[1].netdev == "eth3");
  CHECK((*devices)[1].ifindex == 5);
  CHECK((*devices)[1].uverbs_number == 1);
}

TEST_CASE("without another interface the default device is on lo, with 127.0.0.1 and ::1") {
  const auto devices = choose({}, {lo(), eth(0, {})});
  REQUIRE(devices);
  REQUIRE(devices->size() == 1);
  CHECK((*devices)[0].name == "rxe0");
  CHECK((*devices)[0].loopback);
  CHECK((*devices)[0].addresses == std::vector{ip("127.0.0.1"), ip("::1")});
  CHECK((*devices)[0].guid == kLoopbackGuid);
}

TEST_CASE("without any address there is no device, and no complaint") {
  Interface bare = lo();
  bare.addresses.clear();
  const auto devices = choose({}, {bare});
  REQUIRE(devices);
  CHECK(devices->empty());
}

TEST_CASE("an empty URXE_DEVICES is the same as none") {
  CHECK(choose("", {lo(), eth(0, {ip("10.0.0.1")})}) ==
        choose({}, {lo(), eth(0, {ip("10.0.0.1")})}));
}

TEST_CASE("GIDs are IPv6 link-local, then IPv4, then other IPv6") {
  const auto devices =
      choose({}, {eth(0, {ip("10.0.0.1"), ip("fd00::1"), ip("fe80::1"), ip("10.0.0.2")})});
  REQUIRE(devices);
  CHECK((*devices)[0].addresses ==
        std::vector{ip("fe80::1"), ip("10.0.0.1"), ip("10.0.0.2"), ip("fd00::1")});
}

TEST_CASE("URXE_DEVICES names devices and their interfaces in its order") {
  const auto devices = choose("rxe_b=eth1,rxe0=lo", {lo(), eth(0, {}), eth(1, {ip("10.0.1.1")})});
  REQUIRE(devices);
  REQUIRE(devices->size() == 2);
  CHECK((*devices)[0].name == "rxe_b");
  CHECK((*devices)[0].netdev == "eth1");
  CHECK((*devices)[1].name == "rxe0");
  CHECK((*devices)[1].netdev == "lo");
}

TEST_CASE("an address in URXE_DEVICES becomes the only GID") {
  const auto devices = choose("rxe0=eth0/fd00::2", {eth(0, {ip("10.0.0.1"), ip("fd00::2")})});
  REQUIRE(devices);
  CHECK((*devices)[0].addresses == std::vector{ip("fd00::2")});
}

TEST_CASE("lo may have any address of 127.0.0.0/8, though only 127.0.0.1 is listed") {
  const auto devices = choose("rxe0=lo/127.0.0.2", {lo()});
  REQUIRE(devices);
  CHECK((*devices)[0].addresses == std::vector{ip("127.0.0.2")});
}

TEST_CASE("devices on one interface have different GUIDs") {
  const auto devices = choose("rxe0=lo/127.0.0.1,rxe1=lo/127.0.0.2,rxe2=lo/::1", {lo()});
  REQUIRE(devices);
  std::set<std::uint64_t> guids;
  for (const auto& device : *devices) guids.insert(device.guid);
  CHECK(guids.size() == 3);
}

TEST_CASE("what is wrong with URXE_DEVICES is said with the entry and the reason") {
  struct Case {
    const char* text;
    const char* sentence;
  };
  const auto& [text, sentence] = GENERATE(values<Case>({
      {"rxe0", "URXE_DEVICES, entry 1 (\"rxe0\"): expected NAME=NETDEV[/ADDRESS]"},
      {"rxe0=lo,", "URXE_DEVICES, entry 2 (\"\"): expected NAME=NETDEV[/ADDRESS]"},
      {"mlx5_0=lo",
       "URXE_DEVICES, entry 1 (\"mlx5_0=lo\"): the device's name must begin with \"rxe\", because "
       "libibverbs picks the provider by it"},
      {"=lo",
       "URXE_DEVICES, entry 1 (\"=lo\"): the device's name must begin with \"rxe\", because "
       "libibverbs picks the provider by it"},
      {"rxe/0=lo",
       "URXE_DEVICES, entry 1 (\"rxe/0=lo\"): a device's name may hold letters, digits, '.', '_' "
       "and '-'"},
      {"rxe0=",
       "URXE_DEVICES, entry 1 (\"rxe0=\"): expected the name of a network interface after '='"},
      {"rxe0=eth7",
       "URXE_DEVICES, entry 1 (\"rxe0=eth7\"): there is no network interface \"eth7\" (there are "
       "lo, eth0, eth1)"},
      {"rxe0=eth1", "URXE_DEVICES, entry 1 (\"rxe0=eth1\"): eth1 has no IP address"},
      {"rxe0=lo/127.0.0.1/8",
       "URXE_DEVICES, entry 1 (\"rxe0=lo/127.0.0.1/8\"): \"127.0.0.1/8\" is no IPv4 or IPv6 "
       "address"},
      {"rxe0=lo/", "URXE_DEVICES, entry 1 (\"rxe0=lo/\"): \"\" is no IPv4 or IPv6 address"},
      {"rxe0=eth0/10.9.9.9",
       "URXE_DEVICES, entry 1 (\"rxe0=eth0/10.9.9.9\"): 10.9.9.9 is no address of eth0"},
      {"rxe0=eth0/127.0.0.2",
       "URXE_DEVICES, entry 1 (\"rxe0=eth0/127.0.0.2\"): 127.0.0.2 is no address of eth0"},
      {"rxe0=lo,rxe0=eth0",
       "URXE_DEVICES, entry 2 (\"rxe0=eth0\"): the name rxe0 is taken already"},
      {"rxe0=lo,rxe1=lo/::1",
       "URXE_DEVICES, entry 2 (\"rxe1=lo/::1\"): the address ::1 belongs to rxe0 already"},
      {"rxe9=lo",
       "URXE_DEVICES, entry 1 (\"rxe9=lo\"): the kernel has a device rxe9 already "
       "(URXE_HIDE_REAL=1 hides it)"},
  }));
  const auto devices = choose(text, {lo(), eth(0, {ip("10.0.0.1")}), eth(1, {})},
                              {.names = {"rxe9"}, .next_uverbs = 1});
  REQUIRE_FALSE(devices);
  CHECK(devices.error() == sentence);
}

TEST_CASE("a device's name may have 63 characters") {
  const std::string longest = "rxe" + std::string(60, 'x');
  CHECK(choose(longest + "=lo", {lo()}));
  const auto too_long = choose(longest + "x=lo", {lo()});
  REQUIRE_FALSE(too_long);
  CHECK(too_long.error().find("longer than 63 characters") != std::string::npos);
}

TEST_CASE("names and numbers of the kernel's devices are left to them") {
  const auto devices = choose({}, {eth(0, {ip("10.0.0.1")}), eth(1, {ip("10.0.1.1")})},
                              {.names = {"rxe0", "mlx5_0"}, .next_uverbs = 3});
  REQUIRE(devices);
  CHECK((*devices)[0].name == "rxe1");
  CHECK((*devices)[0].uverbs_name() == "uverbs3");
  CHECK((*devices)[1].name == "rxe2");
  CHECK((*devices)[1].uverbs_name() == "uverbs4");
}

TEST_CASE("uverbsN has the kernel's device number") {
  DeviceConfig device;
  device.uverbs_number = 3;
  CHECK(device.uverbs_device() == makedev(231, 195));
}

TEST_CASE("the active MTU is the largest that leaves 80 bytes for headers") {
  CHECK(active_mtu(68) == 256);
  CHECK(active_mtu(576) == 256);
  CHECK(active_mtu(591) == 256);
  CHECK(active_mtu(592) == 512);
  CHECK(active_mtu(1103) == 512);
  CHECK(active_mtu(1104) == 1024);
  CHECK(active_mtu(1500) == 1024);
  CHECK(active_mtu(2128) == 2048);
  CHECK(active_mtu(4175) == 2048);
  CHECK(active_mtu(4176) == 4096);
  CHECK(active_mtu(65536) == 4096);
}

TEST_CASE("a GUID is the modified EUI-64 of the MAC address") {
  CHECK(guid_of({0x52, 0x54, 0x00, 0x88, 0x00, 0x02}) == 0x505400fffe880002);
}

TEST_CASE("the made-up GUID is always the same and marked as local and individual") {
  const std::uint64_t guid = made_up_guid();
  CHECK(guid == made_up_guid());
  CHECK((guid >> 56 & 0x03) == 0x02);
}

}  // namespace
}  // namespace urxe::verbs
