// The names that fault rules have for opcodes and classes of opcodes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "net/faults/rule.h"

namespace urxe::net {

// Takes an opcode's name ("SEND_MIDDLE", "RC_SEND_MIDDLE", "RDMA_READ_REQUEST"), a class of opcodes
// ("WRITE", "READ_RESPONSE", "REQUEST"), what an acknowledgement says ("ACK", "NAK", "RNR"), or an
// opcode's number ("0x0c"). Without a service's name, all services are meant. Case does not matter.
[[nodiscard]] std::optional<OpcodeSet> find_opcodes(std::string_view name);

// The names of the classes, for messages.
[[nodiscard]] std::string opcode_class_names();

}  // namespace urxe::net
