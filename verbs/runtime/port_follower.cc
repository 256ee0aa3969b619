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

// The device's interface; nothing if it is gone. The error: nobody can say.
using Found = tl::expected<std::optional<Interface>, std::string>;

Found interface_of(const DeviceConfig& config) {
  auto all = list_interfaces();
  if (!all) return tl::unexpected(all.error());
  const auto found = std::find_if(all->begin(), all->end(), [&](const Interface& interface) {
    return interface.index == config.ifindex;
  });
  return found == all->end() ? std::nullopt : std::optional(std::move(*found));
}

std::vector<wire::IpAddress> addresses_of(const DeviceConfig& config, const Found& interface) {
  if (config.fixed_addresses || !interface) return config.addresses;
  return *interface ? (*interface)->addresses : std::vector<wire::IpAddress>{};
}

}  // namespace

std::vector<wire::IpAddress> present_addresses(const DeviceConfig& config) {
  if (config.fixed_addresses) return config.addresses;
  return addresses_of(config, interface_of(config));
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
    : config_(config), fabric_(fabric) {
  const Sight sight = look();
  state_ = sight.state;
  exists_ = sight.exists;
  link_address_ = sight.link_address;
}

PortFollower::Sight PortFollower::look() const {
  const PortStatus status = port_status(config_);
  const Found interface = interface_of(config_);
  return {.state = status.state,
          .active_mtu = status.active_mtu,
          .addresses = addresses_of(config_, interface),
          .exists = !interface || interface->has_value(),
          .link_address = interface && *interface ? (*interface)->mac : link_address_};
}

PortFollower::News PortFollower::compare(const Sight& sight) {
  const News news{.is_gone = exists_ && !sight.exists,
                  .has_new_link_address = sight.link_address != link_address_};
  exists_ = sight.exists;
  link_address_ = sight.link_address;
  return news;
}

PortFollower::News PortFollower::apply(const Sight& sight, emulator::Device& device) {
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
  follow_addresses(sight.addresses, device);
  return compare(sight);
}

void PortFollower::follow_addresses(const std::vector<wire::IpAddress>& present,
                                    emulator::Device& device) {
  std::vector<wire::IpAddress> gids = device.gids().gids();
  bool changed = false;
  for (wire::IpAddress& gid : gids) {
    if (gid.is_unspecified() || holds(present, gid)) continue;
    gid = {};
    changed = true;
  }
  for (const wire::IpAddress& address : present) {
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
