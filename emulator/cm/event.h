// What communication management tells its user.
#pragma once

#include <cstdint>

#include "net/wire/cm.h"
#include "net/wire/path.h"

namespace urxe::emulator {

using ListenerId = wire::Number<struct ListenerIdTag, std::uint32_t, 32>;

enum class CmEventKind : std::uint8_t {
  request_received,      // CmReq: a new connection wants accept or reject
  reply_received,        // CmRep: confirm or reject
  established,           // RTU, or what was taken for one
  rejected,              // CmRej
  disconnect_requested,  // DREQ, which was agreed to
  disconnected,          // DREP: the peer agreed
  request_timed_out,     // nobody answered a REQ
  reply_timed_out,       // nobody answered a REP
  disconnect_timed_out,  // nobody answered a DREQ
  time_wait_ended,
  resolution_requested,  // CmSidrReq: wants answer
  resolved,              // CmSidrRep
  resolution_timed_out,
};

struct CmEvent {
  CmEventKind kind{};
  wire::CommId id;
  ListenerId listener;      // of request_received and resolution_requested
  wire::CmMessage message;  // what came; a time-out has none
  wire::Path path;          // of request_received and resolution_requested: from us to the peer
};

}  // namespace urxe::emulator
