// Who has UDP port 4791 when we cannot have it.
#pragma once

#include <cstdint>
#include <optional>

#include <sys/types.h>

#include "net/wire/address.h"

namespace urxe::net {

struct PortHolder {
  bool kernel = false;  // the kernel's own socket: its rxe, as a rule
  uid_t user = 0;       // else: whose socket it is
};

// Looks in /proc/net/udp and udp6 for a socket that receives what is sent to this address and port.
[[nodiscard]] std::optional<PortHolder> find_port_holder(const wire::IpAddress& address,
                                                         std::uint16_t port);

}  // namespace urxe::net
