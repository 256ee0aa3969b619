#include "verbs/runtime/port_follower.h"

#include <algorithm>

#include <fmt/core.h>

#include "verbs/config/interface.h"
#include "verbs/runtime/log.h"

namespace urxe::verbs {
namespace {

bool holds(const std::vector<wire::IpAddress>& all, const wire::IpAddress& address) {
  return std::find(all.begin(), all.end(), address) != all.end();
}

}  // namespace

std::vector<wire::IpAddress> present_addresses(const DeviceConfig& config) {
  if (config.fixed_addresses) return config.addresses;
  const auto interfaces = list_interfaces();
  if (!interfaces) return config.addresses;
  for (const Interface& interface : *interfaces) {
    if (interface.index == config.ifindex) return interface.addresses;
  }
  return {};
}

std::vector<wire::IpAddress> first_gids(const DeviceConfig& config,
                                        const std::vector<wire::IpAddress>& present) {
  std::vector<wire::IpAddress> gids = config.addresses;
  for (wire::IpAddress& gid : gids) {
    if (!holds(present, gid)) gid = {};
  }
  return gids;
}

PortFollower::PortFollower(const DeviceConfig& config, net::UdpFabric& fabric)
    : config_(config), fabric_(fabric), state_(port_status(config).state) {}

PortFollower::Sight PortFollower::look() const {
  const PortStatus status = port_status(config_);
  return {.state = status.state,
          .active_mtu = status.active_mtu,
          .addresses = present_addresses(config_)};
}

void PortFollower::apply(const Sight& sight, emulator::Device& device) {
  if (sight.state != state_) {
    state_ = sight.state;
    device.report(state_ == PortState::active ? emulator::AsyncEventType::port_active
                                              : emulator::AsyncEventType::port_error);
  }
  if (const auto mtu = emulator::mtu_within(sight.active_mtu); mtu != device.options().port_mtu) {
    log(LogLevel::info,
        fmt::format("{}: the largest path MTU is {} now", config_.name, emulator::bytes_of(mtu)));
    device.set_port_mtu(mtu);
  }
  std::vector<wire::IpAddress> gids = device.gids().gids();
  bool changed = false;
  for (wire::IpAddress& gid : gids) {
    if (gid.is_unspecified() || holds(sight.addresses, gid)) continue;
    gid = {};
    changed = true;
  }
  for (const wire::IpAddress& address : sight.addresses) {
    if (!holds(gids, address)) changed = add(address, gids) || changed;
  }
  if (!changed) return;
  device.assign_gids(std::move(gids));
  device.report(emulator::AsyncEventType::gid_change);
}

bool PortFollower::add(const wire::IpAddress& address, std::vector<wire::IpAddress>& gids) {
  auto free = std::find(gids.begin(), gids.end(), wire::IpAddress{});
  if (free == gids.end() && gids.size() >= kGidTableSize) return false;
  const auto added = fabric_.add_address({.address = address, .interface = config_.ifindex});
  if (!added) {
    log(LogLevel::info, fmt::format("{}: new address {}: {}", config_.name, address.to_string(),
                                    added.error().sentence));
    return false;
  }
  if (free == gids.end()) free = gids.insert(free, wire::IpAddress{});
  *free = address;
  return true;
}

}  // namespace urxe::verbs
