#include "emulator/cm/manager.h"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "emulator/assert.h"
#include "emulator/cm/fields.h"

namespace urxe::emulator {
namespace {

constexpr unsigned kQpnIndexBits = 14;
constexpr std::uint32_t kCommIdIndexMask = (1U << kCommIdIndexBits) - 1;

// Linux's CMA_CM_RESPONSE_TIMEOUT and CMA_MAX_CM_RETRIES.
constexpr std::uint8_t kResponseTimeout = 20;
constexpr std::uint8_t kMaxRetries = 15;
// What a path crosses routers for.
constexpr std::uint16_t kPermissiveLid = 0xFFFF;
// Answers to strangers beyond that are left to the strangers' retries.
constexpr std::size_t kMaxOutbox = 16384;

std::uint8_t at_most_seven(std::uint8_t count) { return std::min<std::uint8_t>(count, 7); }

Error wrong_state(const Connection& connection, const char* command) {
  return {Failure::invalid,
          fmt::format("communication {:#x} is in state {}, which takes no {}",
                      connection.id.value(), static_cast<int>(connection.state), command)};
}

}  // namespace

ConnectionManager::ConnectionManager(const GidTable& gids, QpnRange qpns,
                                     const DeviceOptions& options)
    : gids_(gids),
      guid_(options.node_guid),
      probe_interval_(options.cm_probe_interval),
      max_probes_(options.max_cm_probes),
      id_prefix_(qpns.first.value() >> kQpnIndexBits << kCommIdIndexBits),
      next_id_(options.seed & kCommIdIndexMask) {}

// --- the table of connections

Connection& ConnectionManager::create() {
  // Ids are given out in turn, so that messages of a connection that is gone find nobody.
  do {
    next_id_ = (next_id_ + 1) & kCommIdIndexMask;
  } while (next_id_ == 0 || connections_.contains(id_prefix_ | next_id_));
  auto connection = std::make_unique<Connection>();
  connection->id = wire::CommId{id_prefix_ | next_id_};
  connection->transaction = connection->id.value();
  return *connections_.emplace(connection->id.value(), std::move(connection)).first->second;
}

const Connection* ConnectionManager::find(wire::CommId id) const {
  const auto found = connections_.find(id.value());
  return found == connections_.end() ? nullptr : found->second.get();
}

Result<Connection*> ConnectionManager::lookup(wire::CommId id) {
  const auto found = connections_.find(id.value());
  if (found == connections_.end() || found->second->released) {
    return fail(Failure::not_found, fmt::format("there is no communication {:#x}", id.value()));
  }
  return found->second.get();
}

Result<void> ConnectionManager::set_path(Connection& connection, const AddressVector& vector) {
  auto path = gids_.path_of(vector, wire::kGsiQpn, wire::kGsiQpn);
  if (!path) return tl::unexpected(path.error());
  connection.path = *path;
  connection.vector = vector;
  return {};
}

void ConnectionManager::forget_remote(const Connection& connection) {
  if (const auto id = by_remote_id_.find(key_of_id(connection));
      id != by_remote_id_.end() && id->second == &connection) {
    by_remote_id_.erase(id);
  }
  if (const auto qpn = by_remote_qpn_.find(key_of_qpn(connection));
      qpn != by_remote_qpn_.end() && qpn->second == &connection) {
    by_remote_qpn_.erase(qpn);
  }
  if (const auto request = by_request_.find(key_of_resolution(connection));
      request != by_request_.end() && request->second == &connection) {
    by_request_.erase(request);
  }
}

void ConnectionManager::give_back_backlog(Connection& connection) {
  listeners_.release(connection.listener);
  connection.listener = {};
}

void ConnectionManager::erase(Connection& connection) {
  give_back_backlog(connection);
  forget_remote(connection);
  timers_.forget(connection);
  connections_.erase(connection.id.value());
}

// It rests: as it was before, but for the id. A released one goes.
void ConnectionManager::set_idle(Connection& connection) {
  stop_waiting(connection);
  forget_remote(connection);
  connection.state = CmState::idle;
  if (connection.released) erase(connection);
}

void ConnectionManager::enter_time_wait(Time now, Connection& connection) {
  stop_waiting(connection);
  forget_remote(connection);
  connection.state = CmState::time_wait;
  if (connection.released) return erase(connection);
  timers_.set(connection, now + cm_timeout(connection.ack_timeout));
}

// --- sending

void ConnectionManager::send(const wire::Path& path, const wire::CmMessage& message) {
  if (outbox_.size() >= kMaxOutbox) {
    ++counters_.overflows;
    return;
  }
  ++counters_.sent[cm_index(message.attribute())];
  outbox_.push_back({path, message});
}

void ConnectionManager::send_body(const Connection& connection, wire::CmBody body) {
  send(connection.path, {.transaction = connection.transaction, .body = std::move(body)});
}

void ConnectionManager::send_pending(Time now, Connection& connection, wire::CmMessage message) {
  send(connection.path, message);
  connection.pending = PendingMad{.message = std::move(message),
                                  .first_sent = now,
                                  .timeout = connection.response_timeout,
                                  .retries_left = connection.max_retries};
  timers_.set(connection, now + connection.response_timeout);
}

void ConnectionManager::stop_waiting(Connection& connection) {
  connection.pending.reset();
  timers_.forget(connection);
}

void ConnectionManager::publish(CmEventKind kind, const Connection& connection,
                                const wire::CmMessage& message, ListenerId listener,
                                const wire::Path& path) {
  if (connection.released) return;
  events_.push_back(
      {.kind = kind, .id = connection.id, .listener = listener, .message = message, .path = path});
}

std::optional<CmEvent> ConnectionManager::poll_event() {
  if (events_.empty()) return std::nullopt;
  CmEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

const wire::Path* ConnectionManager::poll_transmit(wire::MutableBytes mad) {
  if (outbox_.empty()) return nullptr;
  wire::serialize_cm(outbox_.front().message, mad);
  sent_path_ = outbox_.front().path;
  outbox_.pop_front();
  return &sent_path_;
}

// --- connecting

void ConnectionManager::taken(wire::CommId id) {
  if (const auto found = lookup(id)) give_back_backlog(**found);
}

Result<wire::CommId> ConnectionManager::connect(Time now, const ConnectSpec& spec) {
  wire::CmReq req;
  if (auto copied = copy_private(spec.offer.private_data, req.private_data); !copied) {
    return tl::unexpected(copied.error());
  }
  Connection& connection = create();
  if (auto path = set_path(connection, spec.vector); !path) {
    erase(connection);
    return tl::unexpected(path.error());
  }
  const QpOffer& offer = spec.offer;
  connection.service = spec.service;
  connection.type = spec.type;
  connection.local_qpn = offer.qpn;
  connection.receive_psn = offer.starting_psn;
  connection.path_mtu = static_cast<std::uint8_t>(spec.path_mtu);
  connection.responder_resources = offer.responder_resources;
  connection.initiator_depth = offer.initiator_depth;
  connection.retry_count = at_most_seven(offer.retry_count);
  connection.ack_timeout = cm_ack_timeout(kLocalAckDelay, spec.packet_life_time);
  connection.response_timeout =
      2 * cm_timeout(spec.packet_life_time) + cm_timeout(kResponseTimeout);
  connection.max_retries = kMaxRetries;

  req.local_id = connection.id;
  req.vendor_id = offer.ece_vendor;
  req.service = spec.service;
  req.local_guid = guid_;
  req.local_qpn = offer.qpn;
  req.responder_resources = offer.responder_resources;
  req.initiator_depth = offer.initiator_depth;
  req.remote_response_timeout = req.local_response_timeout = kResponseTimeout;
  req.transport = spec.type == QpType::uc ? wire::CmTransport::uc : wire::CmTransport::rc;
  req.flow_control = offer.flow_control;
  req.starting_psn = offer.starting_psn;
  req.retry_count = connection.retry_count;
  req.rnr_retry_count = at_most_seven(offer.rnr_retry_count);
  req.path_mtu = connection.path_mtu;
  req.max_cm_retries = kMaxRetries;
  req.srq = offer.srq;
  req.primary = {.local_lid = kPermissiveLid,
                 .remote_lid = kPermissiveLid,
                 .local_gid = connection.path.source,
                 .remote_gid = connection.path.destination,
                 .flow_label = connection.path.flow_label,
                 .traffic_class = connection.path.traffic_class,
                 .hop_limit = connection.path.hop_limit,
                 .ack_timeout = connection.ack_timeout};
  connection.state = CmState::request_sent;
  send_pending(now, connection,
               {.transaction = connection.transaction,
                .attribute_modifier = offer.ece_modifier,
                .body = req});
  return connection.id;
}

Result<void> ConnectionManager::accept(Time now, wire::CommId id, const QpOffer& offer) {
  const auto found = lookup(id);
  if (!found) return tl::unexpected(found.error());
  Connection& connection = **found;
  if (connection.state != CmState::request_received) {
    return tl::unexpected(wrong_state(connection, "accept"));
  }
  wire::CmRep rep;
  if (auto copied = copy_private(offer.private_data, rep.private_data); !copied) return copied;
  give_back_backlog(connection);
  connection.local_qpn = offer.qpn;
  connection.receive_psn = offer.starting_psn;
  connection.responder_resources = offer.responder_resources;
  connection.initiator_depth = offer.initiator_depth;

  rep.local_id = connection.id;
  rep.remote_id = connection.remote_id;
  rep.local_qpn = offer.qpn;
  rep.vendor_id = offer.ece_vendor;
  rep.starting_psn = offer.starting_psn;
  rep.responder_resources = offer.responder_resources;
  rep.initiator_depth = offer.initiator_depth;
  rep.target_ack_delay = kLocalAckDelay;
  rep.flow_control = offer.flow_control;
  rep.rnr_retry_count = at_most_seven(offer.rnr_retry_count);
  rep.srq = offer.srq;
  rep.local_guid = guid_;
  connection.state = CmState::reply_sent;
  send_pending(now, connection,
               {.transaction = connection.transaction,
                .attribute_modifier = offer.ece_modifier,
                .body = rep});
  return {};
}

Result<void> ConnectionManager::confirm(Time now, wire::CommId id) {
  const auto found = lookup(id);
  if (!found) return tl::unexpected(found.error());
  Connection& connection = **found;
  if (connection.state != CmState::reply_received) {
    return tl::unexpected(wrong_state(connection, "RTU"));
  }
  establish(now, connection);
  send_body(connection, wire::CmRtu{.local_id = connection.id, .remote_id = connection.remote_id});
  return {};
}

Result<void> ConnectionManager::note_established(Time now, wire::CommId id) {
  const auto found = lookup(id);
  if (!found) return tl::unexpected(found.error());
  Connection& connection = **found;
  if (connection.state != CmState::reply_sent && connection.state != CmState::reply_acknowledged) {
    return tl::unexpected(wrong_state(connection, "event of an established communication"));
  }
  establish(now, connection);
  publish(CmEventKind::established, connection);
  return {};
}

// --- refusing and ending

void ConnectionManager::send_reject(Connection& connection, wire::RejectReason reason,
                                    wire::Bytes info, wire::Bytes data) {
  wire::CmRej rej{.local_id = connection.id, .remote_id = connection.remote_id, .reason = reason};
  switch (connection.state) {
    case CmState::request_received:
      rej.subject = wire::CmSubject::req;
      break;
    case CmState::reply_received:
      rej.subject = wire::CmSubject::rep;
      break;
    default:
      rej.subject = wire::CmSubject::other;
  }
  rej.info_length = static_cast<std::uint8_t>(info.size());
  std::copy(info.begin(), info.end(), rej.info.begin());
  std::copy(data.begin(), data.end(), rej.private_data.begin());
  send_body(connection, rej);
}

Result<void> ConnectionManager::reject(Time now, wire::CommId id, wire::RejectReason reason,
                                       wire::Bytes data) {
  const auto found = lookup(id);
  if (!found) return tl::unexpected(found.error());
  Connection& connection = **found;
  wire::CmRej limits;
  if (auto copied = copy_private(data, limits.private_data); !copied) return copied;
  switch (connection.state) {
    case CmState::request_received:
    case CmState::reply_received:
    case CmState::request_sent:
    case CmState::request_acknowledged:
      send_reject(connection, reason, {}, data);
      give_back_backlog(connection);
      set_idle(connection);
      return {};
    case CmState::reply_sent:
    case CmState::reply_acknowledged:
      send_reject(connection, reason, {}, data);
      enter_time_wait(now, connection);
      return {};
    default:
      return tl::unexpected(wrong_state(connection, "reject"));
  }
}

void ConnectionManager::send_disconnect(Time now, Connection& connection) {
  connection.state = CmState::disconnect_sent;
  send_pending(now, connection,
               {.transaction = connection.transaction,
                .body = wire::CmDreq{.local_id = connection.id,
                                     .remote_id = connection.remote_id,
                                     .remote_qpn = connection.remote_qpn}});
}

Result<void> ConnectionManager::disconnect(Time now, wire::CommId id) {
  const auto found = lookup(id);
  if (!found) return tl::unexpected(found.error());
  Connection& connection = **found;
  if (connection.state == CmState::established) {
    send_disconnect(now, connection);
    return {};
  }
  if (connection.state == CmState::disconnect_received) {  // the DREP was sent at once
    enter_time_wait(now, connection);
    return {};
  }
  return tl::unexpected(wrong_state(connection, "disconnect"));
}

void ConnectionManager::release(Time now, wire::CommId id) {
  const auto found = lookup(id);
  if (!found) return;
  Connection& connection = **found;
  connection.released = true;
  std::erase_if(events_, [id](const CmEvent& event) { return event.id == id; });
  switch (connection.state) {
    // Linux sends one DREQ and forgets. Here it is sent until the peer has answered: a peer that
    // missed it would wait for ever.
    case CmState::established:
      return send_disconnect(now, connection);
    case CmState::disconnect_sent:
      return;
    case CmState::request_sent:
    case CmState::request_acknowledged: {
      std::array<std::uint8_t, sizeof(wire::Guid)> guid{};
      wire::store_be(wire::MutableBytes(guid), 0, guid_);
      send_reject(connection, wire::RejectReason::timeout, guid, {});
      break;
    }
    case CmState::request_received:
    case CmState::reply_sent:
    case CmState::reply_acknowledged:
    case CmState::reply_received:
      send_reject(connection, wire::RejectReason::consumer_defined, {}, {});
      break;
    case CmState::resolution_received:
      send_body(connection, wire::CmSidrRep{.request_id = connection.remote_id,
                                            .status = wire::SidrStatus::rejected,
                                            .service = connection.service});
      break;
    case CmState::idle:
    case CmState::disconnect_received:
    case CmState::time_wait:
    case CmState::resolution_sent:
      break;
  }
  erase(connection);
}

void ConnectionManager::release_all(Time now) {
  std::vector<wire::CommId> ids;
  for (const auto& [id, connection] : connections_) ids.push_back(connection->id);
  for (const wire::CommId id : ids) release(now, id);
}

// --- service resolution

Result<wire::CommId> ConnectionManager::resolve(Time now, const ResolveSpec& spec) {
  wire::CmSidrReq req;
  if (auto copied = copy_private(spec.private_data, req.private_data); !copied) {
    return tl::unexpected(copied.error());
  }
  Connection& connection = create();
  if (auto path = set_path(connection, spec.vector); !path) {
    erase(connection);
    return tl::unexpected(path.error());
  }
  connection.type = QpType::ud;
  connection.service = spec.service;
  connection.response_timeout = cm_timeout(kResponseTimeout);
  connection.max_retries = kMaxRetries;
  connection.state = CmState::resolution_sent;
  req.request_id = connection.id;
  req.service = spec.service;
  send_pending(now, connection, {.transaction = connection.transaction, .body = req});
  return connection.id;
}

Result<void> ConnectionManager::answer(Time, wire::CommId id, const ResolveAnswer& answer) {
  const auto found = lookup(id);
  if (!found) return tl::unexpected(found.error());
  Connection& connection = **found;
  if (connection.state != CmState::resolution_received) {
    return tl::unexpected(wrong_state(connection, "SIDR_REP"));
  }
  wire::CmSidrRep rep{.request_id = connection.remote_id,
                      .status = answer.status,
                      .qpn = answer.qpn,
                      .service = connection.service,
                      .qkey = answer.qkey};
  if (auto copied = copy_private(answer.private_data, rep.private_data); !copied) return copied;
  give_back_backlog(connection);
  send_body(connection, rep);
  set_idle(connection);
  return {};
}

Result<QpSetup> ConnectionManager::qp_setup(wire::CommId id, QpState target) const {
  const Connection* connection = find(id);
  if (connection == nullptr || connection->released) {
    return fail(Failure::not_found, fmt::format("there is no communication {:#x}", id.value()));
  }
  const auto setup = connection->qp_setup(target);
  if (!setup) return tl::unexpected(wrong_state(*connection, "question about its queue pair"));
  return *setup;
}

// --- time

void ConnectionManager::handle_timer(Time now) {
  while (Timed* timed = timers_.pop_due(now)) {
    auto& connection = static_cast<Connection&>(*timed);
    if (connection.pending && connection.pending->retries_left > 0) {
      --connection.pending->retries_left;
      ++counters_.sent_again[cm_index(connection.pending->message.attribute())];
      send(connection.path, connection.pending->message);
      timers_.set(connection, now + connection.pending->timeout);
      continue;
    }
    handle_expiry(now, connection);
  }
}

void ConnectionManager::handle_unreachable(Time now, const wire::IpAddress& destination) {
  std::vector<Connection*> given_up;
  for (const auto& [id, connection] : connections_) {
    if (!connection->pending || connection->path.destination != destination) continue;
    if (now - connection->pending->first_sent >= kPatience) {
      given_up.push_back(connection.get());
    } else {
      timers_.set(*connection, std::min(connection->deadline(), now + kSoonerRetry));
    }
  }
  for (Connection* connection : given_up) handle_expiry(now, *connection);
}

void ConnectionManager::handle_expiry(Time now, Connection& connection) {
  switch (connection.state) {
    case CmState::request_sent:
    case CmState::request_acknowledged:
      publish(CmEventKind::request_timed_out, connection);
      return set_idle(connection);
    case CmState::reply_sent:
    case CmState::reply_acknowledged:
      publish(CmEventKind::reply_timed_out, connection);
      return set_idle(connection);
    case CmState::disconnect_sent:
      publish(CmEventKind::disconnect_timed_out, connection);
      return enter_time_wait(now, connection);
    case CmState::resolution_sent:
      publish(CmEventKind::resolution_timed_out, connection);
      return set_idle(connection);
    case CmState::time_wait:
      publish(CmEventKind::time_wait_ended, connection);
      return set_idle(connection);
    case CmState::established:
      return probe_peer(now, connection);
    default:
      URXE_ASSERT(!connection.pending);
  }
}

}  // namespace urxe::emulator
