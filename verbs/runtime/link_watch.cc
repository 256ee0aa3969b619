#include "verbs/runtime/link_watch.h"

#include <array>
#include <cerrno>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

namespace urxe::verbs {

int LinkWatch::open() {
  const int number = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  if (number < 0) return errno;
  socket_.emplace(number);
  sockaddr_nl name{};
  name.nl_family = AF_NETLINK;
  name.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  const auto* const address = reinterpret_cast<const sockaddr*>(&name);
  if (bind(socket_->number(), address, sizeof(name)) == 0) return 0;
  const int failed = errno;
  socket_.reset();
  return failed;
}

bool LinkWatch::take_changes() {
  bool changed = false;
  std::array<char, 8192> ignored;
  while (socket_) {
    const ssize_t got = recv(socket_->number(), ignored.data(), ignored.size(), MSG_DONTWAIT);
    if (got > 0 || (got < 0 && errno == ENOBUFS)) {  // more came than it could hold
      changed = true;
    } else if (got == 0 || errno != EINTR) {
      break;
    }
  }
  return changed;
}

}  // namespace urxe::verbs
