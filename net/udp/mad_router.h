// Whose a management datagram is.
#pragma once

#include <optional>
#include <string>

#include "net/wire/path.h"

namespace urxe::net {

// All processes on an address share QPN 1, so the packets to it say by their contents whose they
// are: by communication or service ids. Whoever runs the connection manager knows how.
class MadRouter {
 public:
  virtual ~MadRouter() = default;
  // The mailbox of the owner: mailbox_of(slot), or mailbox_of_name() of a claimed name.
  // Nothing: this process keeps the packet. An ICRC that is wrong has been sorted out already.
  virtual std::optional<std::string> owner_of(const wire::Inbound& packet) = 0;
};

}  // namespace urxe::net
