// Whether the peer of a connection still lives. A process that is killed sends no DREQ, and with
// Linux a kernel sends it in its place; here nobody is left to do so. So who has a connection asks
// now and then.
//
// The question is the RTU once more, whose repetition means nothing to a peer that lives (Linux
// counts it). Between devices of ours it is answered:
//  * by a peer that has the connection with an MRA, which in that state means nothing to Linux
//  either;
//  * by any process at the peer's address, if the peer is gone, with a REJ (invalid communication
//    id).
// Silence means something only of a peer that has answered before.
#include "emulator/cm/manager.h"

namespace urxe::emulator {

void ConnectionManager::establish(Time now, Connection& connection) {
  stop_waiting(connection);
  connection.state = CmState::established;
  // The first question comes soon: silence means something only after an answer.
  constexpr int kSooner = 10;
  if (probe_interval_ > Duration{}) timers_.set(connection, now + probe_interval_ / kSooner);
}

void ConnectionManager::probe_peer(Time now, Connection& connection) {
  if (connection.answers_probes && connection.unanswered_probes >= max_probes_) {
    return lose_peer(now, connection);
  }
  ++connection.unanswered_probes;
  send_body(connection, wire::CmRtu{.local_id = connection.id, .remote_id = connection.remote_id});
  timers_.set(connection, now + probe_interval_);
}

void ConnectionManager::note_alive(Connection& connection) {
  connection.answers_probes = true;
  connection.unanswered_probes = 0;
}

void ConnectionManager::handle_probe(const Incoming& in, Connection& connection) {
  note_repetition(in);
  if (probe_interval_ == Duration{}) return;
  send_body(connection, wire::CmMra{.local_id = connection.id,
                                    .remote_id = connection.remote_id,
                                    .subject = wire::CmSubject::rep});
}

// As if its DREQ, or its DREP, had come.
void ConnectionManager::lose_peer(Time now, Connection& connection) {
  if (connection.state == CmState::established) {
    stop_waiting(connection);
    connection.state = CmState::disconnect_received;
    publish(CmEventKind::disconnect_requested, connection);
  } else if (connection.state == CmState::disconnect_sent) {
    publish(CmEventKind::disconnected, connection);
    enter_time_wait(now, connection);
  }
}

}  // namespace urxe::emulator
