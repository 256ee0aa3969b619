// Which RDMA devices exist.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>
#include <tl/expected.hpp>

#include "net/wire/address.h"
#include "verbs/config/interface.h"

namespace urxe::verbs {

// The one port of every device.
inline constexpr unsigned kPort = 1;
// The size of a port's GID table, as rxe's.
inline constexpr std::size_t kGidTableSize = 1024;

// One device. It does not change while the process lives, but for its addresses (see PortStatus).
struct DeviceConfig {
  std::string name;    // rxe0; begins with "rxe", or libibverbs finds no provider for it
  std::string netdev;  // eth0
  unsigned ifindex = 0;
  unsigned netdev_mtu = 0;
  unsigned active_mtu = 0;  // the largest path MTU: 256, 512, 1024, 2048 or 4096
  bool loopback = false;
  // The GID table, by index: IPv6 link-local, IPv4, other IPv6. Never empty.
  std::vector<wire::IpAddress> addresses;
  bool fixed_addresses = false;  // the user named the address: others do not count
  std::uint64_t guid = 0;        // node GUID and system image GUID, as a number: 0x505400fffe880002
  unsigned uverbs_number = 0;    // N of /dev/infiniband/uverbsN

  [[nodiscard]] std::string uverbs_name() const { return "uverbs" + std::to_string(uverbs_number); }
  [[nodiscard]] dev_t uverbs_device() const;
  friend bool operator==(const DeviceConfig&, const DeviceConfig&) = default;
};

// What `/dev/infiniband/rdma_cm` shows as its st_rdev.
[[nodiscard]] dev_t rdma_cm_device();

// Devices of the kernel that stay visible beside ours.
struct RealDevices {
  std::vector<std::string> names;  // mlx5_0
  unsigned next_uverbs = 0;        // above every number in use
};

// Chooses the devices. `request` is the value of URXE_DEVICES, if it is set:
// "NAME=NETDEV[/ADDRESS]" and commas between. Without it, or if it is empty, there is a device for
// each interface that is up and has an address, or, if there is no such, one for lo. The error is a
// sentence for the user.
[[nodiscard]] tl::expected<std::vector<DeviceConfig>, std::string> choose_devices(
    std::optional<std::string_view> request, const std::vector<Interface>& interfaces,
    const RealDevices& real, std::uint64_t loopback_guid);

// The largest path MTU that fits into packets of `netdev_mtu` bytes, as rxe counts.
[[nodiscard]] unsigned active_mtu(unsigned netdev_mtu);

// The modified EUI-64 of a MAC address.
[[nodiscard]] std::uint64_t guid_of(const MacAddress& mac);

// A GUID for devices on lo, which has no MAC address: the same for all processes of this host and
// network namespace.
[[nodiscard]] std::uint64_t made_up_guid();

}  // namespace urxe::verbs
