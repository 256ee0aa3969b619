#include "verbs/runtime/mad_router.h"

#include <variant>

#include <fmt/core.h>

#include "emulator/cm/manager.h"
#include "net/udp/mailbox.h"
#include "net/wire/packet.h"

namespace urxe::verbs {
namespace {

std::optional<std::string> mailbox_of(wire::CommId id) {
  if (id == wire::CommId{}) return std::nullopt;  // the sender does not know by what name
  return net::mailbox_of(net::Slot{emulator::slot_of(id)});
}

// Where a message goes by what it says.
class Owner {
 public:
  explicit Owner(const wire::IpAddress& destination) : destination_(destination) {}

  std::optional<std::string> operator()(const wire::CmReq& req) const {
    return mailbox_of(req.service);
  }
  std::optional<std::string> operator()(const wire::CmSidrReq& req) const {
    return mailbox_of(req.service);
  }
  std::optional<std::string> operator()(const wire::CmSidrRep& rep) const {
    return verbs::mailbox_of(rep.request_id);
  }
  template <typename Answer>
  std::optional<std::string> operator()(const Answer& answer) const {
    return verbs::mailbox_of(answer.remote_id);
  }

 private:
  [[nodiscard]] std::optional<std::string> mailbox_of(wire::ServiceId service) const {
    return net::mailbox_of_name(service_name(service, destination_));
  }

  const wire::IpAddress& destination_;
};

}  // namespace

std::string service_name(wire::ServiceId service, const wire::IpAddress& address) {
  return fmt::format("cm/{:016x}/{}", service.value, address.to_string());
}

std::optional<std::string> CmMadRouter::owner_of(const wire::Inbound& packet) {
  const auto parsed = wire::parse_packet(packet.bytes);
  if (!parsed) return std::nullopt;
  const auto message = wire::parse_cm(parsed->payload);
  if (!message) return std::nullopt;
  return std::visit(Owner(packet.path.destination), message->body);
}

}  // namespace urxe::verbs
