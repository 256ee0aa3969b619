#include "net/sim/switch.h"

#include <utility>

#include "net/wire/frame.h"

namespace urxe::net {

void Switch::take(Time now, SimPacket packet) {
  const auto frame = wire::parse_frame(packet);
  if (!frame) {
    ++unroutable_;
    return;
  }
  const wire::Path path = frame->path;
  if (path.destination.is_multicast()) {
    for (const wire::IpAddress& member : groups_.members(path.destination)) {
      const auto port = ports_.find(member);
      if (port != ports_.end() && member != path.source) port->second->offer(now, packet);
    }
    return;
  }
  const auto port = ports_.find(path.destination);
  if (port == ports_.end()) {
    ++unroutable_;
    return;
  }
  port->second->offer(now, std::move(packet));
}

}  // namespace urxe::net
