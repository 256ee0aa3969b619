#include "verbs/rdma_cm/socket_address.h"

#include <algorithm>
#include <cstring>

#include <endian.h>
#include <netinet/in.h>

#include "verbs/abi/rdma_cm_abi.h"

namespace urxe::verbs::rdma_cm {
namespace {

template <typename T>
T copy_of(const void* address) {
  T copy;
  std::memcpy(&copy, address, sizeof(copy));
  return copy;
}

wire::IpAddress ip_of(const std::uint8_t (&bytes)[16]) {
  return wire::IpAddress::from_bytes(wire::Bytes(bytes));
}

SocketAddress load_v4(const sockaddr_in& in) {
  return {.family = AF_INET,
          .ip = wire::IpAddress::from_v4(ntohl(in.sin_addr.s_addr)),
          .port = ntohs(in.sin_port)};
}

SocketAddress load_v6(const sockaddr_in6& in) {
  return {.family = AF_INET6,
          .ip = ip_of(in.sin6_addr.s6_addr),
          .port = ntohs(in.sin6_port),
          .scope = in.sin6_scope_id,
          .flow_info = ntohl(in.sin6_flowinfo)};
}

SocketAddress load_ib(const abi::SocketAddressIb& in) {
  return {.family = abi::kAfIb,
          .ip = ip_of(in.address),
          .flow_info = ntohl(in.flow_info),
          .pkey = ntohs(in.pkey),
          .service = be64toh(in.service),
          .service_mask = be64toh(in.service_mask)};
}

}  // namespace

std::optional<SocketAddress> SocketAddress::load(const void* address, std::size_t size) {
  if (size < sizeof(sa_family_t)) return std::nullopt;
  const auto family = copy_of<sa_family_t>(address);
  if (family == AF_INET && size >= sizeof(sockaddr_in)) {
    return load_v4(copy_of<sockaddr_in>(address));
  }
  if (family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
    return load_v6(copy_of<sockaddr_in6>(address));
  }
  if (family == abi::kAfIb && size >= sizeof(abi::SocketAddressIb)) {
    return load_ib(copy_of<abi::SocketAddressIb>(address));
  }
  return std::nullopt;
}

SocketAddress SocketAddress::any(sa_family_t family) {
  SocketAddress address{.family = family};
  if (family == AF_INET) address.ip = wire::IpAddress::from_v4(0);
  return address;
}

SocketAddress SocketAddress::of(const wire::IpAddress& ip, std::uint16_t port, sa_family_t family) {
  return {.family = family, .ip = ip, .port = port};
}

std::size_t SocketAddress::size() const {
  switch (family) {
    case AF_INET:
      return sizeof(sockaddr_in);
    case AF_INET6:
      return sizeof(sockaddr_in6);
    case abi::kAfIb:
      return sizeof(abi::SocketAddressIb);
    default:
      return 0;
  }
}

void SocketAddress::store(void* address) const {
  if (family == AF_INET) {
    sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_port = htons(port);
    out.sin_addr.s_addr = htonl(ip.v4());
    std::memcpy(address, &out, sizeof(out));
  } else if (family == AF_INET6) {
    sockaddr_in6 out{};
    out.sin6_family = AF_INET6;
    out.sin6_port = htons(port);
    out.sin6_flowinfo = htonl(flow_info);
    out.sin6_scope_id = scope;
    std::copy(ip.bytes().begin(), ip.bytes().end(), out.sin6_addr.s6_addr);
    std::memcpy(address, &out, sizeof(out));
  } else if (family == abi::kAfIb) {
    abi::SocketAddressIb out{};
    out.family = abi::kAfIb;
    out.pkey = htons(pkey);
    out.flow_info = htonl(flow_info);
    out.service = htobe64(service);
    out.service_mask = htobe64(service_mask);
    std::copy(ip.bytes().begin(), ip.bytes().end(), out.address);
    std::memcpy(address, &out, sizeof(out));
  }
}

bool SocketAddress::is_ib() const { return family == abi::kAfIb; }

bool SocketAddress::is_unspecified() const {
  if (family != AF_INET) return ip.is_unspecified();
  return ip.v4() >> 24 == 0;  // the whole of 0.0.0.0/8
}

std::uint16_t SocketAddress::any_port() const {
  return is_ib() ? static_cast<std::uint16_t>(service & service_mask) : port;
}

void SocketAddress::set_port(std::uint16_t number) {
  if (!is_ib()) {
    port = number;
    return;
  }
  service = (service & service_mask & ~std::uint64_t{0xFFFF}) | number;
  service_mask = ~std::uint64_t{0};
}

}  // namespace urxe::verbs::rdma_cm
