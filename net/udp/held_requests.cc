#include "net/udp/held_requests.h"

#include <sys/timerfd.h>

namespace urxe::net {
namespace {

constexpr long kPauseNanoseconds = 10'000'000;  // between two looks

}  // namespace

HeldRequests::HeldRequests(KeepDescriptor keep)
    : timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), keep) {}

bool HeldRequests::hold(Time now, const std::string& name, const Datagram& packet) {
  if (!timer_.is_open() || requests_.size() >= kMost) return false;
  requests_.push_back({.name = name,
                       .path = packet.path,
                       .bytes = {packet.bytes.begin(), packet.bytes.end()},
                       .until = now + kGrace});
  if (requests_.size() == 1) set_timer();
  return true;
}

// Setting it anew also makes it unreadable.
void HeldRequests::set_timer() const {
  itimerspec next{};
  if (!requests_.empty()) next.it_value.tv_nsec = kPauseNanoseconds;
  timerfd_settime(timer_.number(), 0, &next, nullptr);
}

}  // namespace urxe::net
