// Addresses as the socket calls take them.
#pragma once

#include <cstdint>

#include <netinet/in.h>
#include <sys/socket.h>

#include "net/wire/address.h"

namespace urxe::net {

// A sockaddr_in or a sockaddr_in6.
union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

// Writes the address and returns its length. `interface` is the scope of IPv6 addresses that need
// one (link-local ones, and groups).
socklen_t to_socket_address(const wire::IpAddress& address, std::uint16_t port, unsigned interface,
                            SocketAddress& out);

[[nodiscard]] wire::IpAddress address_of(const SocketAddress& address);
[[nodiscard]] std::uint16_t port_of(const SocketAddress& address);

}  // namespace urxe::net
