// What changes about a port while it exists.
#pragma once

#include <cstdint>
#include <string>

#include "verbs/config/device_config.h"

namespace urxe::verbs {

// enum ib_port_state and enum ib_port_phys_state of the kernel, as far as rxe shows them.
enum class PortState : std::uint8_t { down = 1, active = 4 };
enum class PhysicalState : std::uint8_t { polling = 2, disabled = 3, link_up = 5 };
// enum ib_port_width and enum ib_port_speed.
enum class LinkWidth : std::uint8_t { x1 = 1, x4 = 2 };
enum class LinkSpeed : std::uint8_t { sdr = 1, ddr = 2, fdr10 = 8, edr = 32 };

struct LinkRate {
  LinkWidth width = LinkWidth::x1;
  LinkSpeed speed = LinkSpeed::sdr;
  friend bool operator==(const LinkRate&, const LinkRate&) = default;
};

struct PortStatus {
  PortState state = PortState::down;
  PhysicalState physical = PhysicalState::disabled;
  LinkRate rate;
  unsigned active_mtu = 0;  // the largest path MTU; that of the configuration if nobody tells
};

// Asks the kernel about the device's interface.
[[nodiscard]] PortStatus port_status(const DeviceConfig& device);

// How rxe expresses the speed of an Ethernet link; 0 or less is unknown.
[[nodiscard]] LinkRate rate_of(long megabits_per_second);

// "10 Gb/sec (1X FDR10)"
[[nodiscard]] std::string to_string(LinkRate rate);

}  // namespace urxe::verbs
