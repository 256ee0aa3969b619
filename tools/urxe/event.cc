#include "tools/urxe/event.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace urxe::tools {
namespace {

constexpr timeval kPatience{.tv_sec = 5, .tv_usec = 0};

// The answer, or a sentence about why there is none. The names are those of control_socket.h.
std::string ask(int socket, const EventOptions& options) {
  sockaddr_un own{};
  own.sun_family = AF_UNIX;
  // Without a path the kernel chooses an abstract name.
  bind(socket, reinterpret_cast<const sockaddr*>(&own), sizeof(own.sun_family));
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
  const std::string name = fmt::format("urxe-control-{}", options.pid);
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  name.copy(to.sun_path + 1, sizeof(to.sun_path) - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const std::string request = options.device + ' ' + options.event;
  if (sendto(socket, request.data(), request.size(), MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&to), size) < 0) {
    return fmt::format("process {} has no emulated device open in this network namespace: {}",
                       options.pid, std::strerror(errno));
  }
  std::array<char, 256> answer{};
  const ssize_t got = recv(socket, answer.data(), answer.size(), 0);
  if (got < 0) return "the program does not answer: is it another user's?";
  return {answer.data(), static_cast<std::size_t>(got)};
}

}  // namespace

int raise_event(const EventOptions& options) {
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) {
    fmt::print(stderr, "urxe: no socket: {}\n", std::strerror(errno));
    return 1;
  }
  const std::string answer = ask(socket, options);
  close(socket);
  if (answer == "ok") return 0;
  fmt::print(stderr, "urxe: {}\n", answer);
  return 1;
}

}  // namespace urxe::tools
