#include "net/udp/capture_watch.h"

#include <array>
#include <cstdio>
#include <string_view>

#include <fcntl.h>
#include <net/ethernet.h>
#include <unistd.h>

namespace urxe::net {
namespace {

// "sk RefCnt Type Proto Iface R ...": bound to every protocol, and running.
bool is_capture(const char* line) {
  unsigned protocol = 0;
  unsigned running = 0;
  return std::sscanf(line, "%*s %*u %*u %x %*d %u", &protocol, &running) == 2 &&
         protocol == ETH_P_ALL && running == 1;
}

}  // namespace

CaptureWatch::CaptureWatch(KeepDescriptor keep)
    : file_(open("/proc/thread-self/net/packet", O_RDONLY | O_CLOEXEC), keep) {}

bool CaptureWatch::somebody_captures(Time now) {
  if (now < next_look_) return found_;
  next_look_ = now + kInterval;
  return found_ = look();
}

bool CaptureWatch::look() const {
  std::array<char, 4096> text{};  // one page: the kernel gives no more at once
  const ssize_t size = pread(file_.number(), text.data(), text.size() - 1, 0);
  if (size <= 0) return false;
  const std::string_view lines(text.data(), static_cast<std::size_t>(size));
  for (std::size_t at = lines.find('\n'); at != std::string_view::npos && at + 1 < lines.size();
       at = lines.find('\n', at + 1)) {
    if (is_capture(text.data() + at + 1)) return true;
  }
  return false;
}

}  // namespace urxe::net
