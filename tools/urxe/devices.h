// `urxe devices`: the devices that a program would see.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace urxe::tools {

struct DevicesOptions {
  std::vector<std::string> devices;  // NAME=NETDEV[/ADDRESS]; empty: $URXE_DEVICES or the default
  bool json = false;
};

// Returns the exit status.
int show_devices(const DevicesOptions& options);

}  // namespace urxe::tools
