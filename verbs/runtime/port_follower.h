// Lets a device's port follow the network interface on which it stands.
#pragma once

#include <vector>

#include "emulator/device.h"
#include "net/udp/udp_fabric.h"
#include "verbs/config/device_config.h"
#include "verbs/config/interface.h"
#include "verbs/config/port_status.h"

namespace urxe::verbs {

// The addresses that the device's interface has at this moment and that may be used; those of the
// configuration if the user named them, or if the interfaces cannot be asked.
[[nodiscard]] std::vector<wire::IpAddress> present_addresses(const DeviceConfig& config);

// The GID table to begin with: that of the configuration, without addresses that are not among
// `present`.
[[nodiscard]] std::vector<wire::IpAddress> first_gids(const DeviceConfig& config,
                                                      const std::vector<wire::IpAddress>& present);

// Owner: the running device.
class PortFollower {
 public:
  // Both outlive it. What the interface is now is where it starts from.
  PortFollower(const DeviceConfig& config, net::UdpFabric& fabric);

  [[nodiscard]] const DeviceConfig& config() const { return config_; }

  // The interface at this moment. Needs no lock.
  struct Sight {
    PortState state = PortState::down;
    unsigned active_mtu = 0;
    std::vector<wire::IpAddress> addresses;
    bool exists = true;
    MacAddress link_address{};
  };
  [[nodiscard]] Sight look() const;

  // What the device's users are to hear besides the events of its port.
  struct News {
    bool is_gone = false;  // the interface, and it does not come back: another has another index
    bool has_new_link_address = false;
  };

  // Brings the device in step, with its lock held: PORT_ACTIVE or PORT_ERR if the state changed;
  // another MTU of the port; GID_CHANGE and a new table if addresses came or went. A GID keeps its
  // index while its address is there; the index of one that went is free for another. A queue pair
  // keeps its path: what it sends from an address that is gone, or in packets that have become too
  // long, the kernel refuses, and it shows as loss.
  News apply(const Sight& sight, emulator::Device& device);

 private:
  News compare(const Sight& sight);
  void follow_addresses(const std::vector<wire::IpAddress>& present, emulator::Device& device);
  bool add(const wire::IpAddress& address, std::vector<wire::IpAddress>& gids);

  const DeviceConfig& config_;
  net::UdpFabric& fabric_;
  PortState state_ = PortState::down;
  bool exists_ = true;
  MacAddress link_address_{};
};

}  // namespace urxe::verbs
