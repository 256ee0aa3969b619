// Communication management (IBTA 12): connections and service resolution by MADs on queue pair 1.
// On the wire it does what Linux does (drivers/infiniband/core/cm.c and cma.c).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "emulator/cm/connection.h"
#include "emulator/cm/event.h"
#include "emulator/cm/listeners.h"
#include "emulator/error.h"
#include "emulator/gid_table.h"
#include "emulator/options.h"
#include "emulator/qp_table.h"
#include "emulator/timers.h"
#include "net/wire/cm.h"
#include "net/wire/path.h"
#include "net/wire/time.h"

namespace urxe::emulator {

// A communication id is a process slot of ten bits, that of the device's queue pair numbers, above
// a number.
inline constexpr unsigned kCommIdIndexBits = 22;
[[nodiscard]] constexpr std::uint32_t slot_of(wire::CommId id) {
  return id.value() >> kCommIdIndexBits;
}

// What an end says about its queue pair. `private_data` is borrowed for the call.
struct QpOffer {
  wire::Qpn qpn;
  wire::Psn starting_psn;  // with which the peer is to begin
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  bool flow_control = false;
  bool srq = false;
  std::uint32_t ece_vendor = 0;  // enhanced connection establishment: carried, not understood
  std::uint32_t ece_modifier = 0;
  wire::Bytes private_data;
};

struct ConnectSpec {
  wire::ServiceId service;
  AddressVector vector;  // how packets get to the peer
  QpType type = QpType::rc;
  Mtu path_mtu = Mtu::bytes1024;
  std::uint8_t packet_life_time = 18;  // 4.096 us * 2^n
  QpOffer offer;
};

struct ResolveSpec {
  wire::ServiceId service;
  AddressVector vector;
  wire::Bytes private_data;
};

struct ResolveAnswer {
  wire::SidrStatus status = wire::SidrStatus::success;
  wire::Qpn qpn;
  wire::QKey qkey;
  wire::Bytes private_data;
};

// Messages by attribute, REQ first: what sysfs shows.
struct CmCounters {
  using Row = std::array<std::uint64_t, wire::kCmAttributes>;
  Row sent{};
  Row sent_again{};
  Row received{};
  Row received_again{};
  std::uint64_t malformed = 0;  // MADs that are no CM message, or of a peer that is not asked
  std::uint64_t overflows = 0;  // answers that were not sent, because too many waited
};

// Owner: the device. Not thread-safe. Handles of connections are their local communication ids: the
// upper bits are those of the device's queue pair numbers, so that a MAD shows whose it is.
class ConnectionManager {
 public:
  // `gids` outlives this.
  ConnectionManager(const GidTable& gids, QpnRange qpns, const DeviceOptions& options);

  // --- commands

  ListenerId listen(const ListenSpec& spec) { return listeners_.add(spec); }
  // Requests that the user has not taken stay; the user releases them.
  void stop_listening(ListenerId id) { listeners_.remove(id); }
  // The user has taken note of a request: the listener's backlog has room again.
  void taken(wire::CommId id);

  Result<wire::CommId> connect(Time now, const ConnectSpec& spec);
  // Answers a REQ with a REP.
  Result<void> accept(Time now, wire::CommId id, const QpOffer& offer);
  // Answers a REP with a RTU.
  Result<void> confirm(Time now, wire::CommId id);
  // Answers a REQ or a REP with a REJ.
  Result<void> reject(Time now, wire::CommId id, wire::RejectReason reason, wire::Bytes data);
  // Asks for the end, or takes note of it. Fails if the connection is not established.
  Result<void> disconnect(Time now, wire::CommId id);
  // The queue pair received a message: the RTU need not come any more.
  Result<void> note_established(Time now, wire::CommId id);

  Result<wire::CommId> resolve(Time now, const ResolveSpec& spec);
  Result<void> answer(Time now, wire::CommId id, const ResolveAnswer& answer);

  // The user is done with it, whatever its state: the peer is told, events do not come any more.
  void release(Time now, wire::CommId id);
  // The process ends: every peer is told once.
  void release_all(Time now);

  [[nodiscard]] Result<QpSetup> qp_setup(wire::CommId id, QpState target) const;
  [[nodiscard]] const Connection* find(wire::CommId id) const;

  // --- inputs

  // `path` is the packet's.
  void handle_mad(Time now, wire::Bytes mad, const wire::Path& path);
  // The network says that nobody receives at `destination`. What waits for an answer from there is
  // repeated sooner, and given up soon: kPatience after it was sent first. Nothing else changes.
  void handle_unreachable(Time now, const wire::IpAddress& destination);
  void handle_timer(Time now);
  [[nodiscard]] Time next_deadline() { return timers_.next(); }

  // --- outputs

  [[nodiscard]] bool has_output() const { return !outbox_.empty(); }
  // Writes the next MAD (kMadSize bytes) and returns its path, valid until the next call.
  [[nodiscard]] const wire::Path* poll_transmit(wire::MutableBytes mad);
  [[nodiscard]] bool has_events() const { return !events_.empty(); }
  [[nodiscard]] std::optional<CmEvent> poll_event();

  [[nodiscard]] const CmCounters& counters() const { return counters_; }
  // What exists, released connections included: for leak checks.
  [[nodiscard]] std::size_t connections() const { return connections_.size(); }
  [[nodiscard]] std::size_t listeners() const { return listeners_.size(); }

 private:
  // A server that is started at the same time is there by then. An address that nobody has is
  // known after three seconds, as long as the kernel asks for its link address.
  static constexpr Duration kPatience = std::chrono::milliseconds(2500);
  static constexpr Duration kSoonerRetry = std::chrono::milliseconds(500);

  // Who sent a REQ: its address, GUID, and communication id or queue pair.
  using RemoteKey = std::tuple<wire::IpAddress, wire::Guid, std::uint32_t>;
  // Who sent a SIDR_REQ: its address and request id.
  using SidrKey = std::pair<wire::IpAddress, std::uint32_t>;
  struct Outgoing {
    wire::Path path;
    wire::CmMessage message;
  };
  struct Incoming {
    Time now;
    const wire::Path& path;  // as it came
    const wire::CmMessage& message;
  };

  // manager.cc
  Connection& create();
  Result<Connection*> lookup(wire::CommId id);
  Result<void> set_path(Connection& connection, const AddressVector& vector);
  void erase(Connection& connection);
  void set_idle(Connection& connection);
  void enter_time_wait(Time now, Connection& connection);
  void forget_remote(const Connection& connection);
  void handle_expiry(Time now, Connection& connection);
  void send_disconnect(Time now, Connection& connection);
  void send_reject(Connection& connection, wire::RejectReason reason, wire::Bytes info,
                   wire::Bytes data);
  void give_back_backlog(Connection& connection);

  // liveness.cc
  void establish(Time now, Connection& connection);
  void probe_peer(Time now, Connection& connection);
  void lose_peer(Time now, Connection& connection);
  void handle_probe(const Incoming& in, Connection& connection);
  void note_alive(Connection& connection);

  // Sending.
  void send(const wire::Path& path, const wire::CmMessage& message);
  void send_body(const Connection& connection, wire::CmBody body);
  // Sends, and sends again until `stop_waiting`.
  void send_pending(Time now, Connection& connection, wire::CmMessage message);
  void stop_waiting(Connection& connection);
  void publish(CmEventKind kind, const Connection& connection, const wire::CmMessage& message = {},
               ListenerId listener = {}, const wire::Path& path = {});

  // manager_messages.cc
  void handle(const Incoming& in, const wire::CmReq& req);
  void handle(const Incoming& in, const wire::CmMra& mra);
  void handle(const Incoming& in, const wire::CmRej& rej);
  void handle(const Incoming& in, const wire::CmRep& rep);
  void handle(const Incoming& in, const wire::CmRtu& rtu);
  void handle(const Incoming& in, const wire::CmDreq& dreq);
  void handle(const Incoming& in, const wire::CmDrep& drep);
  void handle(const Incoming& in, const wire::CmSidrReq& req);
  void handle(const Incoming& in, const wire::CmSidrRep& rep);
  // The connection that a message is about, if the message is its peer's.
  Connection* acquire(const Incoming& in, wire::CommId id, wire::CommId remote_id);
  Connection* acquire_rejected(const Incoming& in, const wire::CmRej& rej);
  void handle_repeated(const Incoming& in, Connection& connection);
  Connection* create_requested(const Incoming& in, const wire::CmReq& req, ListenerId listener);
  void refuse(const Incoming& in, wire::CommId id, wire::CommId remote_id,
              wire::RejectReason reason, wire::CmSubject subject);
  void note_repetition(const Incoming& in);
  void join_remote(Connection& connection);
  bool end_stale(const Incoming& in, const RemoteKey& key);
  void accept_reply(const Incoming& in, Connection& connection, const wire::CmRep& rep);
  static RemoteKey key_of_id(const Connection& connection);
  static RemoteKey key_of_qpn(const Connection& connection);
  static SidrKey key_of_resolution(const Connection& connection);

  const GidTable& gids_;
  const wire::Guid guid_;
  const Duration probe_interval_;
  const std::uint32_t max_probes_;
  std::uint32_t id_prefix_;
  std::uint32_t next_id_;
  ListenerTable listeners_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Connection>> connections_;  // by local id
  std::map<RemoteKey, Connection*> by_remote_id_;
  std::map<RemoteKey, Connection*> by_remote_qpn_;
  std::map<SidrKey, Connection*> by_request_;
  TimerQueue timers_;
  std::deque<Outgoing> outbox_;
  wire::Path sent_path_;
  std::deque<CmEvent> events_;
  CmCounters counters_;
};

}  // namespace urxe::emulator
