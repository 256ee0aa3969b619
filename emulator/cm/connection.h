// One end of a communication: its state, and what a MAD about it needs (IBTA 12.9).
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/address_vector.h"
#include "emulator/cm/event.h"
#include "emulator/qp_attributes.h"
#include "emulator/timers.h"
#include "net/wire/cm.h"
#include "net/wire/path.h"
#include "net/wire/time.h"

namespace urxe::emulator {

// IBTA 12.9.5, as far as they differ here: a REQ or REP that came is in the state in which a
// duplicate is answered with MRA, since that is what Linux's rdma_cm does at once.
enum class CmState : std::uint8_t {
  idle,
  request_sent,
  request_acknowledged,  // the peer sent MRA
  request_received,
  reply_sent,
  reply_acknowledged,
  reply_received,
  established,
  disconnect_sent,
  disconnect_received,
  time_wait,
  resolution_sent,
  resolution_received,
};

// What a queue pair needs to become what the connection agreed on.
struct QpSetup {
  QpAttributes attributes;
  AttributeMask mask;
};

// A MAD that is sent again until it is answered.
struct PendingMad {
  wire::CmMessage message;
  Time first_sent{};
  Duration timeout{};
  std::uint32_t retries_left = 0;
};

// Owner: the connection manager. Not thread-safe.
struct Connection final : Timed {
  wire::CommId id;
  wire::CommId remote_id;  // 0 while it is not known
  CmState state = CmState::idle;
  bool released = false;  // the user has forgotten it: no events, and gone when it comes to rest
  ListenerId listener;    // whose backlog it counts against, until the user takes it; else 0
  wire::ServiceId service;
  wire::Path path;       // from us to the peer: of MADs
  AddressVector vector;  // the same, of data
  std::uint64_t transaction = 0;
  std::optional<PendingMad> pending;

  // Of the connection's two queue pairs.
  QpType type = QpType::rc;
  wire::Guid remote_guid = 0;
  wire::Qpn local_qpn;
  wire::Qpn remote_qpn;
  wire::Psn receive_psn;
  wire::Psn send_psn;
  std::uint8_t path_mtu = 0;             // ib_mtu
  std::uint8_t responder_resources = 0;  // READs and atomics that the peer may have outstanding
  std::uint8_t initiator_depth = 0;      // and we
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  std::uint8_t ack_timeout = 0;  // 4.096 us * 2^n

  bool answers_probes = false;  // the peer did at least once
  std::uint32_t unanswered_probes = 0;

  Duration response_timeout{};  // how long the peer may take for an answer
  std::uint32_t max_retries = 0;

  // As ib_cm_init_qp_attr of Linux (drivers/infiniband/core/cm.c); nothing if the state has none.
  [[nodiscard]] std::optional<QpSetup> qp_setup(QpState target) const;

 private:
  [[nodiscard]] QpSetup setup_of_init() const;
  [[nodiscard]] QpSetup setup_of_ready_to_receive() const;
  [[nodiscard]] QpSetup setup_of_ready_to_send() const;
};

// 4.096 us * 2^exponent as Linux rounds it, in whole milliseconds.
[[nodiscard]] Duration cm_timeout(unsigned exponent);
// The ACK timeout of a path whose packets live 4.096 us * 2^life_time: Linux's cm_ack_timeout.
[[nodiscard]] std::uint8_t cm_ack_timeout(unsigned ack_delay, unsigned life_time);

}  // namespace urxe::emulator
