#include "verbs/rdma_cm/event_channel.h"

#include <cerrno>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace urxe::verbs::rdma_cm {
namespace {

// The kernel's name of a socket, the same for all of its descriptors.
std::optional<std::uint64_t> cookie_of(int fd) {
  std::uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return std::nullopt;
  return cookie;
}

}  // namespace

tl::expected<EventChannel::Opened, int> EventChannel::open(bool non_blocking) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return tl::unexpected(errno);
  // A second descriptor of the program's end: the byte must be taken away again, and the program
  // may do with its own what it likes.
  const int again = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
  const int failed = errno;
  if (again < 0) {
    close(ends[0]);
    close(ends[1]);
    return tl::unexpected(failed);
  }
  if (non_blocking) fcntl(ends[0], F_SETFL, O_RDWR | O_NONBLOCK);
  return Opened{.channel = std::make_shared<EventChannel>(again, ends[1]), .fd = ends[0]};
}

EventChannel::EventChannel(int program_end, int our_end)
    : program_end_(program_end), our_end_(our_end) {}

void EventChannel::show_state() {
  if (shown_ == !events_.empty()) return;
  char byte = 0;
  if (shown_) {
    static_cast<void>(recv(program_end_.number(), &byte, 1, MSG_DONTWAIT));
  } else {
    static_cast<void>(send(our_end_.number(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL));
  }
  shown_ = !shown_;
}

void EventChannel::push(QueuedEvent event) {
  const Identifier* const id = event.id.get();
  by_id_[id].push_back(events_.insert(events_.end(), std::move(event)));
  show_state();
}

QueuedEvent EventChannel::pop() {
  // The first of all is the first of its identifier.
  const auto places = by_id_.find(events_.front().id.get());
  places->second.pop_front();
  if (places->second.empty()) by_id_.erase(places);
  QueuedEvent event = std::move(events_.front());
  events_.pop_front();
  show_state();
  return event;
}

std::vector<QueuedEvent> EventChannel::extract(
    const Identifier& id, const std::function<bool(const QueuedEvent&)>& wanted) {
  const auto places = by_id_.find(&id);
  if (places == by_id_.end()) return {};
  std::vector<QueuedEvent> taken;
  std::deque<Place> kept;
  for (const Place place : places->second) {
    if (wanted && !wanted(*place)) {
      kept.push_back(place);
      continue;
    }
    taken.push_back(std::move(*place));
    events_.erase(place);
  }
  if (kept.empty()) {
    by_id_.erase(places);
  } else {
    places->second = std::move(kept);
  }
  show_state();
  return taken;
}

int EventChannel::wait() {
  char byte = 0;
  const auto got = recv(program_end_.number(), &byte, 1, MSG_PEEK);
  if (got > 0) return 0;
  return got == 0 ? -EBADF : -errno;
}

bool EventChannel::is_behind(int fd) const {
  const auto cookie = cookie_of(fd);
  return cookie && cookie == cookie_of(program_end_.number());
}

void EventChannel::abandon() {
  program_end_.close();
  our_end_.close();
}

}  // namespace urxe::verbs::rdma_cm
