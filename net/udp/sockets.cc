#include "net/udp/sockets.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <random>

#include <fmt/core.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/udp/port_holder.h"
#include "net/udp/socket_address.h"
#include "net/udp/steering.h"
#include "net/wire/path.h"

namespace urxe::net {
namespace {

// RFC 6335's dynamic ports, which RoCEv2 asks for, and how many of them are tried.
constexpr std::uint16_t kDynamicPorts = 0xC000;
constexpr int kManagerPorts = 16;
constexpr int kErrorBuffer = 64 * 1024;  // bytes

bool means_unreachable(const sock_extended_err& error) {
  const bool from_network =
      error.ee_origin == SO_EE_ORIGIN_ICMP || error.ee_origin == SO_EE_ORIGIN_ICMP6;
  return from_network && (error.ee_errno == ECONNREFUSED || error.ee_errno == EHOSTUNREACH ||
                          error.ee_errno == ENETUNREACH);
}

// What the kernel lacks shows where it matters; the rest is done without.
bool set(int socket, int level, int option, int value) {
  return setsockopt(socket, level, option, &value, sizeof(value)) == 0;
}

void set_path_options(int socket, const LocalAddress& local) {
  if (local.address.is_v4()) {
    set(socket, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    set(socket, IPPROTO_IP, IP_TTL, wire::kDefaultHopLimit);
    set(socket, IPPROTO_IP, IP_MULTICAST_TTL, wire::kDefaultHopLimit);
    set(socket, IPPROTO_IP, IP_MULTICAST_LOOP, 1);
    ip_mreqn from{};
    from.imr_ifindex = static_cast<int>(local.interface);
    setsockopt(socket, IPPROTO_IP, IP_MULTICAST_IF, &from, sizeof(from));
  } else {
    set(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    set(socket, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
    set(socket, IPPROTO_IPV6, IPV6_UNICAST_HOPS, wire::kDefaultHopLimit);
    set(socket, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, wire::kDefaultHopLimit);
    set(socket, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1);
    set(socket, IPPROTO_IPV6, IPV6_MULTICAST_IF, static_cast<int>(local.interface));
  }
}

void set_receive_options(int socket, const wire::IpAddress& address, const UdpOptions& options) {
  if (!set(socket, SOL_SOCKET, SO_RCVBUFFORCE, options.receive_buffer)) {
    set(socket, SOL_SOCKET, SO_RCVBUF, options.receive_buffer);
  }
  set(socket, SOL_SOCKET, SO_RXQ_OVFL, 1);
  if (options.coalesced_reception) set(socket, IPPROTO_UDP, UDP_GRO, 1);
  if (address.is_v4()) {
    set(socket, IPPROTO_IP, IP_RECVTOS, 1);
    set(socket, IPPROTO_IP, IP_RECVTTL, 1);
    set(socket, IPPROTO_IP, IP_MULTICAST_ALL, 0);
  } else {
    set(socket, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
    set(socket, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
    set(socket, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
    set(socket, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);  // RoCEv2 senders leave the checksum out
  }
}

int open_socket(const wire::IpAddress& address) {
  const int family = address.is_v4() ? AF_INET : AF_INET6;
  const int number = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP);
  if (number >= 0 && !address.is_v4()) set(number, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  return number;
}

int bind_to(int socket, const LocalAddress& local, std::uint16_t port) {
  SocketAddress address;
  const socklen_t size = to_socket_address(local.address, port, local.interface, address);
  return bind(socket, &address.any, size) == 0 ? 0 : errno;
}

std::string why_in_use(const wire::IpAddress& address) {
  const auto holder = find_port_holder(address, wire::kRoceUdpPort);
  if (!holder) return "it is in use by a program that does not share it";
  if (holder->kernel) {
    return "the kernel's own RoCE device (rxe) has it; remove that with 'rdma link delete'";
  }
  if (holder->user != geteuid()) {
    return fmt::format(
        "user {} has it, and Linux lets only processes of one user share a port; run as that user, "
        "or use another address",
        holder->user);
  }
  return "a program of yours that does not share it (not urxe) has it";
}

std::string why_not_bound(const wire::IpAddress& address, int code) {
  switch (code) {
    case EADDRINUSE:
      return why_in_use(address);
    case EADDRNOTAVAIL:
      return "no interface of this network namespace has that address";
    case EACCES:
    case EPERM:
      return "a security policy of this machine forbids it";
    default:
      return std::strerror(code);
  }
}

Error cannot_open(const wire::IpAddress& address, int code) {
  return {code, fmt::format("UDP port {} at {} cannot be opened: {}", wire::kRoceUdpPort,
                            address.to_string(), why_not_bound(address, code))};
}

}  // namespace

tl::expected<Descriptor, Error> open_receiver(const LocalAddress& local,
                                              const UdpOptions& options) {
  Descriptor socket(open_socket(local.address), options.keep_descriptor);
  if (!socket.is_open()) return tl::unexpected(cannot_open(local.address, errno));
  const int number = socket.number();
  set(number, SOL_SOCKET, SO_REUSEPORT, 1);
  set(number, SOL_SOCKET, SO_SNDBUF, options.send_buffer);
  set_path_options(number, local);
  set_receive_options(number, local.address, options);
  if (const int failed = bind_to(number, local, wire::kRoceUdpPort); failed != 0) {
    return tl::unexpected(cannot_open(local.address, failed));
  }
  return socket;
}

Descriptor open_sender(const LocalAddress& local, std::uint16_t source_port,
                       const UdpOptions& options) {
  Descriptor socket(open_socket(local.address), options.keep_descriptor);
  if (!socket.is_open()) return {};
  const int number = socket.number();
  set(number, SOL_SOCKET, SO_REUSEPORT, 1);
  set(number, SOL_SOCKET, SO_SNDBUF, options.send_buffer);
  set(number, SOL_SOCKET, SO_RCVBUF, 0);  // the least that there is
  set_path_options(number, local);
  if (refuse_all(number) != 0 || bind_to(number, local, source_port) != 0) return {};
  return socket;
}

Descriptor open_manager(const LocalAddress& local, std::uint16_t& source_port,
                        const UdpOptions& options) {
  std::random_device random;
  for (int tried = 0; tried < kManagerPorts; ++tried) {
    source_port = static_cast<std::uint16_t>(random() | kDynamicPorts);
    Descriptor socket(open_socket(local.address), options.keep_descriptor);
    if (!socket.is_open()) return {};
    const int number = socket.number();
    set(number, SOL_SOCKET, SO_RCVBUF, kErrorBuffer);
    set_path_options(number, local);
    const bool v4 = local.address.is_v4();
    if (!set(number, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_RECVERR : IPV6_RECVERR, 1)) return {};
    if (refuse_all(number) != 0) return {};
    if (bind_to(number, local, source_port) == 0) return socket;
  }
  return {};
}

std::optional<wire::IpAddress> take_unreachable(int socket) {
  while (true) {
    SocketAddress destination{};
    alignas(cmsghdr) std::array<char, 256> control;
    msghdr message{};
    message.msg_name = &destination;
    message.msg_namelen = sizeof(destination);
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (recvmsg(socket, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
      // The kernel notes an error after it queued it: taken from the queue in between, the note
      // would stay, and the socket be ready for nothing until something is sent.
      int noted = 0;
      socklen_t size = sizeof(noted);
      getsockopt(socket, SOL_SOCKET, SO_ERROR, &noted, &size);
      return std::nullopt;
    }
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
      sock_extended_err error{};
      std::memcpy(&error, CMSG_DATA(part), sizeof(error));
      if (means_unreachable(error)) return address_of(destination);
    }
  }
}

tl::expected<Descriptor, int> open_group(const LocalAddress& group, const UdpOptions& options) {
  Descriptor socket(open_socket(group.address), options.keep_descriptor);
  if (!socket.is_open()) return tl::unexpected(errno);
  const int number = socket.number();
  // Every socket of a group's address gets a copy, whoever it belongs to.
  set(number, SOL_SOCKET, SO_REUSEADDR, 1);
  set_receive_options(number, group.address, options);
  if (const int failed = bind_to(number, group, wire::kRoceUdpPort); failed != 0) {
    return tl::unexpected(failed);
  }
  group_req request{};
  request.gr_interface = group.interface;
  SocketAddress address;
  const socklen_t size = to_socket_address(group.address, 0, group.interface, address);
  std::memcpy(&request.gr_group, &address, size);
  const int level = group.address.is_v4() ? IPPROTO_IP : IPPROTO_IPV6;
  if (setsockopt(number, level, MCAST_JOIN_GROUP, &request, sizeof(request)) != 0) {
    return tl::unexpected(errno);
  }
  return socket;
}

bool can_segment(int socket) { return set(socket, IPPROTO_UDP, UDP_SEGMENT, 0); }

int receive_buffer_of(int socket) {
  int size = 0;
  socklen_t length = sizeof(size);
  getsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, &length);
  return size;
}

}  // namespace urxe::net
