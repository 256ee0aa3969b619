#include "tests/compat/checker/channel.h"

#include <chrono>
#include <thread>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/compat/checker/check.h"
#include "tests/compat/checker/patience.h"

namespace checker {
namespace {

int prepared(int socket) {
  const int yes = 1;
  const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return socket;
}

int try_to_connect(const addrinfo& address) {
  const int fd = socket(address.ai_family, address.ai_socktype, address.ai_protocol);
  if (fd < 0) fail_with_errno("socket");
  if (connect(fd, address.ai_addr, address.ai_addrlen) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace

Channel::~Channel() {
  if (socket_ >= 0) close(socket_);
}

void Channel::send(const void* data, std::size_t size) const {
  if (::send(socket_, data, size, MSG_NOSIGNAL) != static_cast<ssize_t>(size))
    fail("the peer is gone");
}

void Channel::receive(void* data, std::size_t size) const {
  const ssize_t got = recv(socket_, data, size, MSG_WAITALL);
  if (got < 0) fail_with_errno("waiting for the peer");
  if (got != static_cast<ssize_t>(size)) fail("the peer has ended");
}

void Channel::meet(std::uint32_t where) {
  const std::uint32_t theirs = exchange(where);
  if (theirs != where) fail("the peer is at step %u, this end at %u", theirs, where);
}

int listen_on(std::uint16_t port) {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail_with_errno("socket");
  const int yes = 1;
  const int no = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    fail_with_errno("bind");
  if (listen(fd, 64) != 0) fail_with_errno("listen");
  return prepared(fd);
}

Channel accept_from(int listener) {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) fail_with_errno("accept");
  return Channel(prepared(fd));
}

Channel connect_to(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    fail("%s: no such host", host.c_str());
  const Deadline deadline;
  int fd = -1;
  while ((fd = try_to_connect(*found)) < 0) {
    if (deadline.passed()) fail("%s:%u does not listen", host.c_str(), port);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  freeaddrinfo(found);
  return Channel(prepared(fd));
}

}  // namespace checker
