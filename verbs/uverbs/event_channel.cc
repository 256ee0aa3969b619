#include "verbs/uverbs/event_channel.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace urxe::verbs::uverbs {

tl::expected<EventChannel::Opened, int> EventChannel::open() {
  std::array<int, 2> pair;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    return tl::unexpected(errno);
  }
  const auto [program_fd, ours] = pair;
  const int theirs = fcntl(program_fd, F_DUPFD_CLOEXEC, 0);
  struct stat identity {};
  if (theirs < 0 || fstat(program_fd, &identity) != 0) {
    const int error = errno;
    ::close(program_fd);
    ::close(ours);
    if (theirs >= 0) ::close(theirs);
    return tl::unexpected(error);
  }
  return Opened{std::make_shared<EventChannel>(ours, theirs, program_fd, identity), program_fd};
}

EventChannel::EventChannel(int ours, int theirs, int program_fd, const struct stat& identity)
    : writer_(ours),
      reader_(theirs),
      program_fd_(program_fd),
      device_(identity.st_dev),
      inode_(identity.st_ino) {}

bool EventChannel::is(int fd) const {
  struct stat status {};
  return fd >= 0 && fstat(fd, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

// Programs seldom duplicate it, so the number that it had tells nearly always.
bool EventChannel::is_abandoned() const {
  if (reader_.number() < 0) return true;
  if (is(program_fd_)) return false;
  DIR* const descriptors = opendir("/proc/self/fd");
  if (descriptors == nullptr) return true;
  bool found = false;
  while (const dirent* entry = readdir(descriptors)) {
    const std::string_view name = entry->d_name;
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    found = found || (fd != reader_.number() && is(fd));
  }
  closedir(descriptors);
  return !found;
}

void EventChannel::close() {
  writer_.close();
  reader_.close();
  backlog_.clear();
}

std::uint64_t EventChannel::Event::element() const {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

bool EventChannel::send(const Event& event) const {
  return ::send(writer_.number(), event.bytes.data(), event.size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

bool EventChannel::receive(Event& event) const {
  const ssize_t size = recv(reader_.number(), event.bytes.data(), event.bytes.size(), MSG_DONTWAIT);
  event.size = size > 0 ? static_cast<std::size_t>(size) : 0;
  return size > 0;
}

void EventChannel::report(std::span<const std::byte> bytes) {
  if (writer_.number() < 0) return;
  Event event{.bytes = {}, .size = std::min(bytes.size(), sizeof(Event::bytes))};
  std::copy_n(bytes.begin(), event.size, event.bytes.begin());
  if (is_behind() || !send(event)) backlog_.push_back(event);
}

void EventChannel::catch_up() {
  while (is_behind() && send(backlog_.front())) backlog_.pop_front();
}

std::uint32_t EventChannel::retract(std::uint64_t element) {
  std::uint32_t retracted = 0;
  std::deque<Event> kept;
  for (Event event; receive(event);) {
    if (event.element() == element) {
      ++retracted;
    } else {
      kept.push_back(event);
    }
  }
  for (const Event& event : backlog_) {
    if (event.element() == element) {
      ++retracted;
    } else {
      kept.push_back(event);
    }
  }
  backlog_ = std::move(kept);
  catch_up();
  return retracted;
}

}  // namespace urxe::verbs::uverbs
