// Entry points that work on descriptors.
#include <climits>

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verbs/preload/descriptor_table.h"
#include "verbs/preload/entry_points.h"
#include "verbs/preload/guest.h"
#include "verbs/preload/libc.h"
#include "verbs/preload/opened.h"
#include "verbs/preload/quiet.h"

namespace urxe::verbs {
namespace {

// Commands that the kernel answers for every file, without asking its driver.
bool is_for_any_file(unsigned long request) {
  return request == FIOCLEX || request == FIONCLEX || request == FIONBIO || request == FIOASYNC;
}

// Calls `act` on the file behind `fd`. When that fails, it may be that `fd` was closed behind our
// back and is something else now; then it is `native`'s.
template <typename Result, typename Act, typename Native>
[[gnu::noinline]] Result call_file(int fd, Act act, Native native) {
  const auto reference = descriptors.find(fd);
  if (!reference || reference.is_private()) return native();
  const int saved_errno = errno;
  EmulatedFile* const file = reference.file();
  const Result result = file != nullptr ? act(*file) : Result{-EIO};
  if (result >= 0) {
    errno = saved_errno;
    return result;
  }
  if (reference.is_open_on(fd)) {
    errno = static_cast<int>(-result);
    return -1;
  }
  if (descriptors.is_own_process()) descriptors.remove(fd);
  errno = saved_errno;
  return native();
}

// Out of the table before the number is free and can be given to somebody else.
[[gnu::noinline]] int close_ours(int fd) {
  const NotCancelled not_cancelled;
  if (!descriptors.is_own_process()) return libc::close(fd);
  if (descriptors.find(fd).is_private()) {
    errno = EBADF;
    return -1;
  }
  descriptors.remove(fd);
  return libc::close(fd);
}

template <typename Close>
[[gnu::noinline]] int close_around_ours(unsigned first, unsigned last, Close close) {
  const NotCancelled not_cancelled;
  std::uint64_t begin = first;
  while (begin <= last) {
    const std::uint64_t ours = descriptors.next(begin, last);
    if (ours > last) break;
    const int fd = static_cast<int>(ours);
    if (!descriptors.find(fd).is_private()) {
      descriptors.remove(fd);
      continue;
    }
    if (ours > begin && close(static_cast<unsigned>(begin), static_cast<unsigned>(ours - 1)) != 0) {
      return -1;
    }
    begin = ours + 1;
  }
  return begin <= last ? close(static_cast<unsigned>(begin), last) : 0;
}

// Copies of a descriptor are made by `native`, which returns the new one.
template <typename Native>
[[gnu::noinline]] int duplicate_ours(int from, Native native) {
  const NotCancelled not_cancelled;
  const int to = native();
  if (to >= 0 && descriptors.is_own_process()) descriptors.copy(from, to);
  return to;
}

template <typename Native>
int duplicate(int from, Native native) {
  if (descriptors.holds(from)) [[unlikely]]
    return duplicate_ours(from, native);
  return opened(native());
}

// dup2 and dup3 close what was open on `to`.
template <typename Native>
[[gnu::noinline]] int duplicate_over_ours(int from, int to, Native native) {
  const NotCancelled not_cancelled;
  const bool own = descriptors.is_own_process();
  if (own && from != to && !descriptors.move_away(to)) {
    errno = EMFILE;
    return -1;
  }
  const int result = native();
  if (result >= 0 && own && from != to) descriptors.copy(from, to);
  return result;
}

template <typename Native>
int duplicate_over(int from, int to, Native native) {
  if (descriptors.holds(from) || descriptors.holds(to)) [[unlikely]] {
    return duplicate_over_ours(from, to, native);
  }
  return native();
}

template <typename Native>
int control(int fd, int command, Native native) {
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return duplicate(fd, native);
  return native();
}

}  // namespace
}  // namespace urxe::verbs

using namespace urxe::verbs;

ssize_t on_write(int fd, const void* data, std::size_t size) {
  if (!descriptors.holds(fd)) [[likely]]
    return libc::write(fd, data, size);
  pthread_testcancel();
  return call_file<ssize_t>(
      fd, [=](EmulatedFile& file) { return file.write(data, size); },
      [=] { return libc::write(fd, data, size); });
}

int on_ioctl(int fd, unsigned long request, void* argument) {
  if (!descriptors.holds(fd) || is_for_any_file(request)) [[likely]] {
    return libc::ioctl(fd, request, argument);
  }
  return call_file<int>(
      fd, [=](EmulatedFile& file) { return file.ioctl(request, argument); },
      [=] { return libc::ioctl(fd, request, argument); });
}

int on_close(int fd) {
  if (descriptors.holds(fd)) [[unlikely]]
    return close_ours(fd);
  return libc::close(fd);
}

int on_close_range(unsigned first, unsigned last, int flags) {
  const bool closes = (static_cast<unsigned>(flags) & CLOSE_RANGE_CLOEXEC) == 0;
  if (!closes || descriptors.next(first, last) > last || !descriptors.is_own_process()) [[likely]] {
    return libc::close_range(first, last, flags);
  }
  return close_around_ours(
      first, last, [=](unsigned from, unsigned to) { return libc::close_range(from, to, flags); });
}

void on_closefrom(int first) {
  const unsigned from = first < 0 ? 0 : static_cast<unsigned>(first);
  if (descriptors.next(from, INT_MAX) > INT_MAX || !descriptors.is_own_process()) [[likely]] {
    return libc::closefrom(first);
  }
  close_around_ours(from, UINT_MAX,
                    [](unsigned begin, unsigned end) { return libc::close_range(begin, end, 0); });
}

int on_dup(int fd) {
  return duplicate(fd, [=] { return libc::dup(fd); });
}

int on_dup2(int from, int to) {
  return duplicate_over(from, to, [=] { return libc::dup2(from, to); });
}

int on_dup3(int from, int to, int flags) {
  return duplicate_over(from, to, [=] { return libc::dup3(from, to, flags); });
}

int on_fcntl(int fd, int command, void* argument) {
  return control(fd, command, [=] { return libc::fcntl(fd, command, argument); });
}

int on_fcntl64(int fd, int command, void* argument) {
  return control(fd, command, [=] { return libc::fcntl64(fd, command, argument); });
}

int on_socket(int domain, int type, int protocol) {
  // If it could be opened, libibverbs would believe that what it lists is all there is.
  if (domain == AF_NETLINK && protocol == NETLINK_RDMA && Guest::has_devices()) [[unlikely]] {
    errno = EPROTONOSUPPORT;
    return -1;
  }
  return libc::socket(domain, type, protocol);
}
