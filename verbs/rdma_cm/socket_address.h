// Addresses as programs give them to rdma_cm.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <sys/socket.h>

#include "net/wire/address.h"
#include "net/wire/cm.h"

namespace urxe::verbs::rdma_cm {

// AF_INET, AF_INET6, or AF_IB, which names a GID and a service id.
struct SocketAddress {
  sa_family_t family = 0;  // 0: none
  wire::IpAddress ip;      // IPv4 addresses mapped, also of AF_INET
  std::uint16_t port = 0;
  std::uint32_t scope = 0;  // interface index of a link-local address
  std::uint32_t flow_info = 0;
  std::uint16_t pkey = 0;          // AF_IB only, as the next two
  std::uint64_t service = 0;       // service id
  std::uint64_t service_mask = 0;  // which of its bits are given

  // Nothing if the family is unknown or `size` too small for it.
  static std::optional<SocketAddress> load(const void* address, std::size_t size);
  static SocketAddress any(sa_family_t family);
  static SocketAddress of(const wire::IpAddress& ip, std::uint16_t port, sa_family_t family);
  // As the kernel's rdma_addr_size; 0 for no address.
  [[nodiscard]] std::size_t size() const;
  // Writes size() bytes.
  void store(void* address) const;

  [[nodiscard]] bool is_ib() const;
  [[nodiscard]] bool is_unspecified() const;
  [[nodiscard]] bool is_loopback() const { return ip.is_loopback(); }
  // Of AF_IB: the part of the service id that stands for a port.
  [[nodiscard]] std::uint16_t any_port() const;
  void set_port(std::uint16_t number);

  friend bool operator==(const SocketAddress&, const SocketAddress&) = default;
};

}  // namespace urxe::verbs::rdma_cm
