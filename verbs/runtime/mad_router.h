// Whose the connection manager's messages are, among the processes that share an address.
#pragma once

#include <optional>
#include <string>

#include "net/udp/mad_router.h"
#include "net/wire/cm.h"

namespace urxe::verbs {

// What a process claims that listens to a service on an address of its device: requests for it are
// handed over to that process.
[[nodiscard]] std::string service_name(wire::ServiceId service, const wire::IpAddress& address);

// Answers go to the process in whose slot the communication id is that they name; requests to who
// has claimed the service. Not thread-safe, and without state.
class CmMadRouter final : public net::MadRouter {
 public:
  std::optional<std::string> owner_of(const wire::Inbound& packet) override;
};

}  // namespace urxe::verbs
