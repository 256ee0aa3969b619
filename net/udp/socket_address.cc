#include "net/udp/socket_address.h"

#include <algorithm>

#include <arpa/inet.h>

namespace urxe::net {

socklen_t to_socket_address(const wire::IpAddress& address, std::uint16_t port, unsigned interface,
                            SocketAddress& out) {
  if (address.is_v4()) {
    out.v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    out.v4.sin_addr.s_addr = htonl(address.v4());
    return sizeof(out.v4);
  }
  out.v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
  std::copy(address.bytes().begin(), address.bytes().end(), out.v6.sin6_addr.s6_addr);
  if (address.is_link_local() || address.is_multicast()) out.v6.sin6_scope_id = interface;
  return sizeof(out.v6);
}

wire::IpAddress address_of(const SocketAddress& address) {
  if (address.any.sa_family == AF_INET) {
    return wire::IpAddress::from_v4(ntohl(address.v4.sin_addr.s_addr));
  }
  return wire::IpAddress::from_bytes(address.v6.sin6_addr.s6_addr);
}

std::uint16_t port_of(const SocketAddress& address) {
  return ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
}

}  // namespace urxe::net
