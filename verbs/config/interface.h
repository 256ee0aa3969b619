// The network interfaces that a RoCE device can stand on.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "net/wire/address.h"

namespace urxe::verbs {

using MacAddress = std::array<std::uint8_t, 6>;

// One interface as it was when it was asked for.
struct Interface {
  std::string name;
  unsigned index = 0;
  unsigned mtu = 0;
  bool up = false;
  bool running = false;  // has a carrier
  bool loopback = false;
  MacAddress mac{};  // zeros if it has none
  // Those that a socket can be bound to now: no multicast, nothing tentative.
  std::vector<wire::IpAddress> addresses;
};

// The interfaces of this network namespace in the order of their index; or why they cannot be had.
[[nodiscard]] tl::expected<std::vector<Interface>, std::string> list_interfaces();

// Whether `text`, the contents of /proc/net/if_inet6, names `address` on the interface `index` as
// one that duplicate address detection has not passed yet.
[[nodiscard]] bool is_tentative(std::string_view text, unsigned index,
                                const wire::IpAddress& address);

// The whole of a small file; nothing if it cannot be read.
[[nodiscard]] std::optional<std::string> read_small_file(const std::string& path);

}  // namespace urxe::verbs
