// Hears from the kernel that something changed about network interfaces.
#pragma once

#include <optional>

#include "verbs/preload/private_descriptor.h"

namespace urxe::verbs {

// A netlink socket (rtnetlink(7)) in the groups for links and addresses. Nothing is read from it
// but that something changed: what, the interfaces are asked. It is silent while nothing changes.
//
// Owner: the progress thread. In a forked child: close().
class LinkWatch {
 public:
  // 0 or an errno.
  int open();
  void close() { socket_.reset(); }
  // -1 if it is not open, as poll(2) likes it.
  [[nodiscard]] int descriptor() const { return socket_ ? socket_->number() : -1; }
  // Takes all that has come. Whether there was anything, or something was lost.
  [[nodiscard]] bool take_changes();

 private:
  std::optional<PrivateDescriptor> socket_;
};

}  // namespace urxe::verbs
