// What the tests of the uverbs file share: one device, and a client for it.
#pragma once

#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/hosted_double.h"
#include "tests/support/uverbs_client.h"
#include "verbs/uverbs/uverbs_node.h"

namespace urxe::test {

inline const wire::IpAddress kFirstGid = *wire::IpAddress::parse("fe80::1");
inline const wire::IpAddress kSecondGid = wire::IpAddress::from_v4(0x0A000001);

inline verbs::DeviceConfig test_config() {
  verbs::DeviceConfig config;
  config.name = "rxe0";
  config.netdev = "lo";
  config.ifindex = 1;
  config.active_mtu = 4096;
  config.addresses = {kFirstGid, kSecondGid};
  config.guid = 0x505400FFFE880002;
  return config;
}

struct UverbsSetup {
  verbs::DeviceConfig config = test_config();
  SourceDouble source{config.addresses};
  verbs::UverbsNode node{config, source};

  [[nodiscard]] emulator::Device::Census census() { return source.device().access()->census(); }
};

// The census of a device on which nothing was created.
inline const emulator::Device::Census kNothing{};

// Both ways in which write() commands come, one after the other.
inline Front either_front() { return GENERATE(Front::write, Front::ioctl); }

}  // namespace urxe::test
