// The connection manager's answers to messages. Nothing here trusts a sender: a message that does
// not fit the communication that it names is counted and forgotten.
#include <algorithm>

#include "emulator/cm/fields.h"
#include "emulator/cm/manager.h"

namespace urxe::emulator {
namespace {

// How long a peer is asked to wait while the user thinks about its request: Linux's
// CMA_CM_MRA_SETTING.
constexpr std::uint8_t kThinkingTime = 24;

// Whether data can go back to the sender of a REQ, by what it says of itself.
bool leads_somewhere(const wire::CmPath& path) {
  const bool nowhere =
      path.local_gid.is_unspecified() || path.local_gid == wire::IpAddress::from_v4(0);
  return !nowhere && path.local_gid.is_v4() == path.remote_gid.is_v4();
}

}  // namespace

void ConnectionManager::handle_mad(Time now, wire::Bytes mad, const wire::Path& path) {
  const auto message = wire::parse_cm(mad);
  if (!message) {
    ++counters_.malformed;
    return;
  }
  ++counters_.received[cm_index(message->attribute())];
  const Incoming in{.now = now, .path = path, .message = *message};
  std::visit([&](const auto& body) { handle(in, body); }, message->body);
}

void ConnectionManager::note_repetition(const Incoming& in) {
  ++counters_.received_again[cm_index(in.message.attribute())];
}

Connection* ConnectionManager::acquire(const Incoming& in, wire::CommId id,
                                       wire::CommId remote_id) {
  const auto found = connections_.find(id.value());
  if (found == connections_.end()) return nullptr;
  Connection& connection = *found->second;
  // Who resolves a service never learns our id.
  if (connection.state == CmState::resolution_received) return nullptr;
  if (connection.path.destination != in.path.source || connection.remote_id != remote_id) {
    return nullptr;
  }
  return &connection;
}

ConnectionManager::RemoteKey ConnectionManager::key_of_id(const Connection& connection) {
  return {connection.path.destination, connection.remote_guid, connection.remote_id.value()};
}

ConnectionManager::RemoteKey ConnectionManager::key_of_qpn(const Connection& connection) {
  return {connection.path.destination, connection.remote_guid, connection.remote_qpn.value()};
}

ConnectionManager::SidrKey ConnectionManager::key_of_resolution(const Connection& connection) {
  return {connection.path.destination, connection.remote_id.value()};
}

// --- REQ

// `id` is by what name the peer called us, if it did.
void ConnectionManager::refuse(const Incoming& in, wire::CommId id, wire::CommId remote_id,
                               wire::RejectReason reason, wire::CmSubject subject) {
  wire::Path back = in.path;
  std::swap(back.source, back.destination);
  back.source_port = source_port_of(0, wire::kGsiQpn, wire::kGsiQpn);
  back.hop_limit = wire::kDefaultHopLimit;
  send(back, {.transaction = in.message.transaction,
              .body = wire::CmRej{
                  .local_id = id, .remote_id = remote_id, .subject = subject, .reason = reason}});
}

void ConnectionManager::handle_repeated(const Incoming& in, Connection& connection) {
  note_repetition(in);
  if (connection.state != CmState::request_received) return;  // the REP is on its way, or will be
  send_body(connection, wire::CmMra{.local_id = connection.id,
                                    .remote_id = connection.remote_id,
                                    .subject = wire::CmSubject::req,
                                    .service_timeout = kThinkingTime});
}

// A new request for a queue pair that a connection here still has: the peer has forgotten that one
// (IBTA 12.9.8.3.1).
bool ConnectionManager::end_stale(const Incoming& in, const RemoteKey& key) {
  const auto stale = by_remote_qpn_.find(key);
  if (stale == by_remote_qpn_.end()) return false;
  Connection& connection = *stale->second;
  if (connection.state == CmState::established) send_disconnect(in.now, connection);
  return true;
}

// Both keys are free: the callers have looked.
void ConnectionManager::join_remote(Connection& connection) {
  by_remote_id_.emplace(key_of_id(connection), &connection);
  by_remote_qpn_.emplace(key_of_qpn(connection), &connection);
}

Connection* ConnectionManager::create_requested(const Incoming& in, const wire::CmReq& req,
                                                ListenerId listener) {
  const auto source = gids_.index_of(in.path.destination);
  const auto data_source = gids_.index_of(req.primary.remote_gid);
  if (!source || !data_source || !leads_somewhere(req.primary)) return nullptr;
  // Linux looks for the P_Key together with the path's addresses.
  if (!wire::in_default_partition(req.pkey)) return nullptr;
  Connection& connection = create();
  connection.listener = listener;
  AddressVector vector{.destination = in.path.source,
                       .flow_label = req.primary.flow_label,
                       .source_gid_index = static_cast<std::uint8_t>(*source),
                       .hop_limit = wire::kDefaultHopLimit,
                       .traffic_class = req.primary.traffic_class,
                       .global = true,
                       .service_level = req.primary.service_level};
  if (!set_path(connection, vector)) {
    connection.listener = {};
    erase(connection);
    return nullptr;
  }
  connection.vector.destination = req.primary.local_gid;
  connection.vector.source_gid_index = static_cast<std::uint8_t>(*data_source);
  return &connection;
}

void ConnectionManager::handle(const Incoming& in, const wire::CmReq& req) {
  if (req.local_id == wire::CommId{}) {
    ++counters_.malformed;
    return;
  }
  const RemoteKey id_key{in.path.source, req.local_guid, req.local_id.value()};
  if (const auto known = by_remote_id_.find(id_key); known != by_remote_id_.end()) {
    return handle_repeated(in, *known->second);
  }
  const auto refuse_it = [&](wire::RejectReason reason) {
    refuse(in, {}, req.local_id, reason, wire::CmSubject::req);
  };
  if (end_stale(in, {in.path.source, req.local_guid, req.local_qpn.value()})) {
    return refuse_it(wire::RejectReason::stale_connection);
  }
  if (req.transport != wire::CmTransport::rc && req.transport != wire::CmTransport::uc) {
    return refuse_it(wire::RejectReason::invalid_transport_type);
  }
  const QpType type = req.transport == wire::CmTransport::uc ? QpType::uc : QpType::rc;
  const auto listener = listeners_.claim(req.service, type, req.private_data);
  if (!listener) {
    // A full backlog is not for ever: the peer asks again.
    if (listener.error() == ListenerTable::Miss::backlog_is_full) return;
    return refuse_it(listener.error() == ListenerTable::Miss::no_such_service
                         ? wire::RejectReason::invalid_service_id
                         : wire::RejectReason::consumer_defined);
  }
  Connection* created = create_requested(in, req, *listener);
  if (created == nullptr) {
    listeners_.release(*listener);
    return refuse_it(wire::RejectReason::invalid_gid);
  }
  Connection& connection = *created;
  connection.state = CmState::request_received;
  connection.remote_id = req.local_id;
  connection.transaction = in.message.transaction;
  connection.service = req.service;
  connection.type = type;
  connection.remote_guid = req.local_guid;
  connection.remote_qpn = req.local_qpn;
  connection.send_psn = req.starting_psn;
  connection.path_mtu = req.path_mtu;
  connection.responder_resources = req.initiator_depth;
  connection.initiator_depth = req.responder_resources;
  connection.retry_count = req.retry_count;
  connection.rnr_retry_count = req.rnr_retry_count;
  const unsigned life_time = req.primary.ack_timeout > 0 ? req.primary.ack_timeout - 1U : 0U;
  connection.ack_timeout = cm_ack_timeout(kLocalAckDelay, life_time);
  connection.response_timeout = cm_timeout(req.local_response_timeout);
  connection.max_retries = req.max_cm_retries;
  join_remote(connection);
  publish(CmEventKind::request_received, connection, in.message, *listener, connection.path);
}

// --- answers to a REQ

void ConnectionManager::handle(const Incoming& in, const wire::CmMra& mra) {
  if (mra.subject > wire::CmSubject::other) return;
  const bool about_req = mra.subject == wire::CmSubject::req;
  Connection* connection = acquire(in, mra.remote_id, about_req ? wire::CommId{} : mra.local_id);
  if (connection == nullptr) return;
  switch (connection->state) {
    case CmState::request_sent:
      if (!about_req) return;
      connection->state = CmState::request_acknowledged;
      break;
    case CmState::reply_sent:
      if (mra.subject != wire::CmSubject::rep) return;
      connection->state = CmState::reply_acknowledged;
      break;
    case CmState::request_acknowledged:
    case CmState::reply_acknowledged:
      return note_repetition(in);
    case CmState::established:
      return note_alive(*connection);
    default:
      return;
  }
  connection->pending->timeout =
      cm_timeout(mra.service_timeout) + cm_timeout(connection->ack_timeout);
  timers_.set(*connection, in.now + connection->pending->timeout);
}

Connection* ConnectionManager::acquire_rejected(const Incoming& in, const wire::CmRej& rej) {
  if (rej.reason == wire::RejectReason::timeout) {
    const auto guid = wire::load_be<wire::Guid>(rej.info, 0);
    const auto found = by_remote_id_.find({in.path.source, guid, rej.local_id.value()});
    return found == by_remote_id_.end() ? nullptr : found->second;
  }
  if (rej.subject == wire::CmSubject::req) return acquire(in, rej.remote_id, wire::CommId{});
  return acquire(in, rej.remote_id, rej.local_id);
}

void ConnectionManager::handle(const Incoming& in, const wire::CmRej& rej) {
  Connection* found = acquire_rejected(in, rej);
  if (found == nullptr) return;
  Connection& connection = *found;
  const bool may_have_asked =
      connection.state == CmState::established || connection.state == CmState::disconnect_sent;
  if (may_have_asked && rej.reason == wire::RejectReason::invalid_comm_id &&
      rej.subject == wire::CmSubject::other) {
    return lose_peer(in.now, connection);
  }
  const bool stale = rej.reason == wire::RejectReason::stale_connection;
  switch (connection.state) {
    case CmState::request_received:
    case CmState::request_sent:
    case CmState::request_acknowledged:
    case CmState::reply_sent:
    case CmState::reply_acknowledged:
      publish(CmEventKind::rejected, connection, in.message);
      give_back_backlog(connection);
      return stale ? enter_time_wait(in.now, connection) : set_idle(connection);
    case CmState::disconnect_sent:
    case CmState::reply_received:
    case CmState::established:
      publish(CmEventKind::rejected, connection, in.message);
      return enter_time_wait(in.now, connection);
    default:
      return;
  }
}

void ConnectionManager::accept_reply(const Incoming& in, Connection& connection,
                                     const wire::CmRep& rep) {
  // The answer to another request of ours.
  if (by_remote_id_.contains({in.path.source, rep.local_guid, rep.local_id.value()})) return;
  if (end_stale(in, {in.path.source, rep.local_guid, rep.local_qpn.value()})) {
    return refuse(in, rep.remote_id, rep.local_id, wire::RejectReason::stale_connection,
                  wire::CmSubject::rep);
  }
  connection.remote_id = rep.local_id;
  connection.remote_guid = rep.local_guid;
  connection.remote_qpn = rep.local_qpn;
  join_remote(connection);
  stop_waiting(connection);
  connection.state = CmState::reply_received;
  connection.responder_resources = rep.initiator_depth;
  connection.initiator_depth = rep.responder_resources;
  connection.send_psn = rep.starting_psn;
  connection.rnr_retry_count = rep.rnr_retry_count;
  connection.ack_timeout = cm_ack_timeout(
      rep.target_ack_delay, connection.ack_timeout > 0 ? connection.ack_timeout - 1U : 0U);
  publish(CmEventKind::reply_received, connection, in.message);
}

void ConnectionManager::handle(const Incoming& in, const wire::CmRep& rep) {
  if (rep.local_id == wire::CommId{}) {
    ++counters_.malformed;
    return;
  }
  if (Connection* waiting = acquire(in, rep.remote_id, wire::CommId{})) {
    const bool asked =
        waiting->state == CmState::request_sent || waiting->state == CmState::request_acknowledged;
    if (asked) accept_reply(in, *waiting, rep);
    return;
  }
  Connection* connection = acquire(in, rep.remote_id, rep.local_id);
  if (connection == nullptr) {
    // Linux lets the sender time out, in a minute. Who asked may have died meanwhile.
    if (find(rep.remote_id) == nullptr) {
      refuse(in, rep.remote_id, rep.local_id, wire::RejectReason::invalid_comm_id,
             wire::CmSubject::rep);
    }
    return;
  }
  note_repetition(in);
  if (connection->state == CmState::established) {
    send_body(*connection,
              wire::CmRtu{.local_id = connection->id, .remote_id = connection->remote_id});
  } else if (connection->state == CmState::reply_received) {
    send_body(*connection, wire::CmMra{.local_id = connection->id,
                                       .remote_id = connection->remote_id,
                                       .subject = wire::CmSubject::rep,
                                       .service_timeout = kThinkingTime});
  }
}

void ConnectionManager::handle(const Incoming& in, const wire::CmRtu& rtu) {
  Connection* connection = acquire(in, rtu.remote_id, rtu.local_id);
  if (connection == nullptr) {
    // The peer of a connection that died here asks whether we live.
    if (find(rtu.remote_id) == nullptr && probe_interval_ > Duration{}) {
      refuse(in, rtu.remote_id, rtu.local_id, wire::RejectReason::invalid_comm_id,
             wire::CmSubject::other);
    }
    return;
  }
  if (connection->state == CmState::established) return handle_probe(in, *connection);
  if (connection->state != CmState::reply_sent &&
      connection->state != CmState::reply_acknowledged) {
    return note_repetition(in);
  }
  establish(in.now, *connection);
  publish(CmEventKind::established, *connection, in.message);
}

// --- the end

void ConnectionManager::handle(const Incoming& in, const wire::CmDreq& dreq) {
  Connection* connection = acquire(in, dreq.remote_id, dreq.local_id);
  if (connection == nullptr) {
    // Nobody knows it any more: agree, so that the peer stops asking.
    note_repetition(in);
    wire::Path back = in.path;
    std::swap(back.source, back.destination);
    back.source_port = source_port_of(0, wire::kGsiQpn, wire::kGsiQpn);
    back.hop_limit = wire::kDefaultHopLimit;
    return send(back,
                {.transaction = in.message.transaction,
                 .body = wire::CmDrep{.local_id = dreq.remote_id, .remote_id = dreq.local_id}});
  }
  if (connection->local_qpn != dreq.remote_qpn) return;
  const auto agree = [&] {
    send(connection->path,
         {.transaction = in.message.transaction,
          .body = wire::CmDrep{.local_id = connection->id, .remote_id = connection->remote_id}});
  };
  switch (connection->state) {
    case CmState::reply_sent:
    case CmState::reply_acknowledged:
    case CmState::disconnect_sent:
    case CmState::established:
      stop_waiting(*connection);
      connection->state = CmState::disconnect_received;
      // Linux leaves the answer to the user. A user that has crashed, or is slow, would keep the
      // peer waiting for a minute, and there is nothing that it could say but yes.
      agree();
      if (connection->released) return erase(*connection);
      return publish(CmEventKind::disconnect_requested, *connection, in.message);
    // Also after the time wait, which is shorter than the time after which a DREQ comes again.
    case CmState::disconnect_received:
    case CmState::time_wait:
    case CmState::idle:
      note_repetition(in);
      return agree();
    default:
      return note_repetition(in);
  }
}

void ConnectionManager::handle(const Incoming& in, const wire::CmDrep& drep) {
  Connection* connection = acquire(in, drep.remote_id, drep.local_id);
  if (connection == nullptr) return;
  if (connection->state != CmState::disconnect_sent &&
      connection->state != CmState::disconnect_received) {
    return;
  }
  publish(CmEventKind::disconnected, *connection, in.message);
  enter_time_wait(in.now, *connection);
}

// --- service resolution

void ConnectionManager::handle(const Incoming& in, const wire::CmSidrReq& req) {
  const SidrKey key{in.path.source, req.request_id.value()};
  if (by_request_.contains(key)) return note_repetition(in);
  const auto listener = listeners_.claim(req.service, QpType::ud, req.private_data);
  if (!listener && listener.error() == ListenerTable::Miss::backlog_is_full) return;
  const auto source = gids_.index_of(in.path.destination);
  if (!source) {
    if (listener) listeners_.release(*listener);
    return;
  }
  Connection& connection = create();
  connection.type = QpType::ud;
  connection.service = req.service;
  connection.remote_id = req.request_id;
  connection.transaction = in.message.transaction;
  const bool reachable =
      set_path(connection, {.destination = in.path.source,
                            .source_gid_index = static_cast<std::uint8_t>(*source),
                            .traffic_class = in.path.traffic_class,
                            .global = true})
          .has_value();
  if (listener && reachable) {
    connection.listener = *listener;
    connection.state = CmState::resolution_received;
    by_request_.emplace(key, &connection);
    return publish(CmEventKind::resolution_requested, connection, in.message, *listener,
                   connection.path);
  }
  if (listener) listeners_.release(*listener);
  if (reachable) {
    const bool unknown = !listener && listener.error() == ListenerTable::Miss::no_such_service;
    send_body(connection, wire::CmSidrRep{.request_id = req.request_id,
                                          .status = unknown ? wire::SidrStatus::unsupported
                                                            : wire::SidrStatus::rejected,
                                          .service = req.service});
  }
  erase(connection);
}

void ConnectionManager::handle(const Incoming& in, const wire::CmSidrRep& rep) {
  Connection* connection = acquire(in, rep.request_id, wire::CommId{});
  if (connection == nullptr || connection->state != CmState::resolution_sent) return;
  publish(CmEventKind::resolved, *connection, in.message);
  set_idle(*connection);
}

}  // namespace urxe::emulator
