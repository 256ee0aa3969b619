// Whether somebody captures packets on this machine.
#pragma once

#include <chrono>

#include "net/descriptor.h"
#include "net/wire/time.h"

namespace urxe::net {

// Looks for packet sockets that take every protocol, as those of tcpdump and Wireshark do, in this
// network namespace. Cheap enough to be asked for every batch: it looks once a second.
class CaptureWatch {
 public:
  explicit CaptureWatch(KeepDescriptor keep);
  [[nodiscard]] bool somebody_captures(Time now);

 private:
  [[nodiscard]] bool look() const;

  static constexpr Duration kInterval = std::chrono::seconds(1);

  Descriptor file_;  // /proc/net/packet; closed if there is none
  Time next_look_ = Time::min();
  bool found_ = false;
};

}  // namespace urxe::net
