#include "verbs/runtime/control_socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace urxe::verbs {
namespace {

using emulator::AsyncEventType;

constexpr int kRequestsAtOnce = 16;

struct NamedEvent {
  std::string_view name;
  AsyncEventType type;
};
constexpr std::array kEvents{
    NamedEvent{"device_fatal", AsyncEventType::device_fatal},
    NamedEvent{"port_active", AsyncEventType::port_active},
    NamedEvent{"port_error", AsyncEventType::port_error},
    NamedEvent{"gid_change", AsyncEventType::gid_change},
    NamedEvent{"lid_change", AsyncEventType::lid_change},
    NamedEvent{"pkey_change", AsyncEventType::pkey_change},
    NamedEvent{"sm_change", AsyncEventType::sm_change},
    NamedEvent{"client_reregister", AsyncEventType::client_reregister},
};

// A message with who sent it.
struct Letter {
  std::array<char, 256> text{};
  sockaddr_un from{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control{};
  iovec piece{};
  msghdr header{};

  ssize_t receive(int socket) {
    piece = {.iov_base = text.data(), .iov_len = text.size()};
    header.msg_name = &from;
    header.msg_namelen = sizeof(from);
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    return recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  }
  [[nodiscard]] bool is_allowed() {
    const cmsghdr* const part = CMSG_FIRSTHDR(&header);
    if (part == nullptr || part->cmsg_type != SCM_CREDENTIALS) return false;
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(part), sizeof(sender));
    return sender.uid == geteuid() || sender.uid == 0;
  }
};

struct Reply {
  std::string answer;
  std::function<void()> raise;
};

Reply reply_to(std::string_view request, const ControlSocket::Prepare& prepare) {
  const std::string_view device = request.substr(0, request.find(' '));
  const std::string_view name = request.substr(std::min(device.size() + 1, request.size()));
  const auto event = event_by_name(name);
  if (!event) return {fmt::format("there is no event '{}'", name), {}};
  auto raise = prepare(device, *event);
  if (!raise) return {fmt::format("device '{}' is not open here", device), {}};
  return {"ok", std::move(raise)};
}

}  // namespace

std::optional<AsyncEventType> event_by_name(std::string_view name) {
  for (const NamedEvent& event : kEvents) {
    if (event.name == name) return event.type;
  }
  return std::nullopt;
}

int ControlSocket::open() {
  const int number = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (number < 0) return errno;
  socket_.emplace(number);
  const int on = 1;
  setsockopt(socket_->number(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
  const std::string name = fmt::format("urxe-control-{}", getpid());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);  // abstract: a zero byte first
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(socket_->number(), reinterpret_cast<const sockaddr*>(&address), size) == 0) return 0;
  const int failed = errno;
  socket_.reset();
  return failed;
}

void ControlSocket::serve(const Prepare& prepare) {
  for (int i = 0; i < kRequestsAtOnce && socket_ && serve_one(prepare); ++i) {
  }
}

bool ControlSocket::serve_one(const Prepare& prepare) {
  Letter letter;
  const ssize_t size = letter.receive(socket_->number());
  if (size < 0) return errno == EINTR;
  if (!letter.is_allowed()) return true;
  const Reply reply = reply_to({letter.text.data(), static_cast<std::size_t>(size)}, prepare);
  // Who does not listen to the answer does not get it.
  sendto(socket_->number(), reply.answer.data(), reply.answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
         reinterpret_cast<const sockaddr*>(&letter.from), letter.header.msg_namelen);
  if (reply.raise) reply.raise();
  return true;
}

}  // namespace urxe::verbs
