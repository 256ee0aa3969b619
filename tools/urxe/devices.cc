#include "tools/urxe/devices.h"

#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "verbs/config/device_config.h"
#include "verbs/config/environment.h"
#include "verbs/config/port_status.h"

namespace urxe::tools {
namespace {

// What keeps the path MTU from being larger; empty at the maximum.
std::string limit_of(const verbs::DeviceConfig& device) {
  constexpr unsigned kLargest = 4096;
  constexpr unsigned kHeaders = 80;
  if (device.active_mtu == kLargest) return {};
  return fmt::format("{} has MTU {}; path MTU {} needs {}", device.netdev, device.netdev_mtu,
                     2 * device.active_mtu, 2 * device.active_mtu + kHeaders);
}

const char* state_of(const verbs::DeviceConfig& device) {
  return verbs::port_status(device).state == verbs::PortState::active ? "ACTIVE" : "DOWN";
}

nlohmann::json to_json(const verbs::DeviceConfig& device) {
  nlohmann::json gids = nlohmann::json::array();
  for (std::size_t i = 0; i < device.addresses.size(); ++i) {
    gids.push_back({{"index", i}, {"gid", device.addresses[i].to_string()}, {"type", "RoCE v2"}});
  }
  return {{"name", device.name},
          {"interface", device.netdev},
          {"state", state_of(device)},
          {"interface_mtu", device.netdev_mtu},
          {"active_mtu", device.active_mtu},
          {"mtu_limited_by", limit_of(device)},
          {"node_guid", fmt::format("{:016x}", device.guid)},
          {"node", "/dev/infiniband/" + device.uverbs_name()},
          {"gids", gids}};
}

void print(const verbs::DeviceConfig& device) {
  fmt::print("{:<8} on {:<12} {:<7} active MTU {}", device.name, device.netdev, state_of(device),
             device.active_mtu);
  const std::string limit = limit_of(device);
  fmt::print("{}\n", limit.empty() ? "" : " (" + limit + ")");
  for (std::size_t i = 0; i < device.addresses.size(); ++i) {
    fmt::print("         GID {:<4} {:<39}  RoCE v2\n", i, device.addresses[i].to_string());
  }
}

}  // namespace

int show_devices(const DevicesOptions& options) {
  auto environment = verbs::read_environment([](const char* name) { return std::getenv(name); });
  if (environment && !options.devices.empty()) {
    environment->devices = fmt::format("{}", fmt::join(options.devices, ","));
  }
  const auto devices = environment ? verbs::find_devices(*environment)
                                   : tl::expected<std::vector<verbs::DeviceConfig>, std::string>(
                                         tl::unexpected(environment.error()));
  if (!devices) {
    fmt::print(stderr, "urxe: {}\n", devices.error());
    return 1;
  }
  nlohmann::json all = nlohmann::json::array();
  for (const verbs::DeviceConfig& device : *devices) {
    if (options.json) {
      all.push_back(to_json(device));
    } else {
      print(device);
    }
  }
  if (options.json) fmt::print("{}\n", all.dump(2));
  return 0;
}

}  // namespace urxe::tools
