// What the halves of a queue pair (requester, completer, responder) share.
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/completion_queue.h"
#include "emulator/engine.h"
#include "emulator/qp_attributes.h"
#include "emulator/receive_queue.h"
#include "emulator/scatter_gather.h"
#include "net/wire/path.h"

namespace urxe::emulator {

// Why the queue pair must leave its state. A half sets it; the queue pair acts on it at the end of
// the entry point, so that no half runs on behind the other's back.
enum class Collapse : std::uint8_t {
  none,
  send_queue,    // UC, UD: a local error; receiving goes on (SQE)
  by_requester,  // a send request completed in error
  by_responder,  // a request of the peer was refused: plus an asynchronous event
};

struct QpContext {
  QpContext(Engine& device_engine, ProtectionDomain& protection_domain, QpType qp_type,
            wire::Qpn number, CompletionQueue& for_sends, CompletionQueue& for_receives,
            ReceiveQueue& receives)
      : engine(device_engine),
        pd(protection_domain),
        type(qp_type),
        qpn(number),
        send_cq(for_sends),
        receive_cq(for_receives),
        receive_queue(receives) {}

  Engine& engine;
  Use<ProtectionDomain> pd;
  QpType type;
  wire::Qpn qpn;
  bool signal_all = false;  // every send request makes a completion
  bool shares_receives = false;
  Use<CompletionQueue> send_cq;
  Use<CompletionQueue> receive_cq;
  Use<ReceiveQueue> receive_queue;

  QpAttributes attributes;
  wire::Path path;          // RC, UC: from RTR on
  std::uint32_t mtu = 256;  // bytes of payload in a full packet
  Collapse collapse = Collapse::none;
  AsyncEventType collapse_event{};  // with by_responder

  [[nodiscard]] SgePosition::Memory memory() const {
    return {.keys = engine.keys, .program = engine.memory, .pd = *pd};
  }
  [[nodiscard]] bool is_reliable() const { return type == QpType::rc; }
  [[nodiscard]] bool is_connected() const { return type == QpType::rc || type == QpType::uc; }
};

// A code for what went wrong, in a completion's vendor_err: it tells apart what one status lumps
// together. docs/errors.md lists them.
enum class VendorError : std::uint32_t {
  none = 0,
  malformed_request = 1,
  opcode_not_for_this_type = 2,
  message_too_long = 3,
  atomic_needs_eight_bytes = 4,
  reads_not_enabled = 5,
  bad_local_key = 6,
  local_out_of_bounds = 7,
  local_no_permission = 8,
  local_other_domain = 9,
  memory_gone = 10,
  bad_address_handle = 11,
  receive_too_short = 12,
  bind_refused = 13,
  invalidate_refused = 14,
  nak_received = 15,
  no_answer = 16,
  bad_response_length = 17,
  response_without_request = 18,
  flushed_by_error = 19,
};

[[nodiscard]] VendorError vendor_error_of(MemoryFault fault);

}  // namespace urxe::emulator
