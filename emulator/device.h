// The RDMA device: a sans-IO state machine. Nothing in here knows a socket, a clock or a thread.
//
// How to drive it, one call at a time:
//   1  input: handle_packet, handle_timer, ring_doorbell, modify, create ...
//   2  poll_transmit until it has nothing more
//   3  completions went to their sinks; take poll_completion_event, poll_async_event,
//   take_sentences 4  call handle_timer when next_deadline has come
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/completion_queue.h"
#include "emulator/engine.h"
#include "emulator/error.h"
#include "emulator/gsi_port.h"
#include "emulator/multicast_table.h"
#include "emulator/owned_set.h"
#include "emulator/qp_table.h"
#include "emulator/queue_pair.h"
#include "emulator/receive_queue.h"
#include "net/wire/path.h"
#include "net/wire/time.h"

namespace urxe::emulator {

// Objects are owned by the device; who creates one keeps a pointer until destroying it. Destroying
// fails while another object needs it.
//
// Not thread-safe: one lock per device is the caller's.
class Device {
 public:
  // `memory` outlives the device. `qpns`: the queue pair numbers that this process may give out.
  Device(const DeviceOptions& options, ProgramMemory& memory, QpnRange qpns);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const DeviceOptions& options() const { return engine_.options; }
  [[nodiscard]] const Counters& counters() const { return engine_.counters; }
  [[nodiscard]] const GidTable& gids() const { return engine_.gids; }
  void assign_gids(std::vector<wire::IpAddress> gids) { engine_.gids.assign(std::move(gids)); }
  // An event of the port or of the whole device.
  void report(AsyncEventType type);
  // More queue pair numbers (another process slot was claimed).
  void add_qpns(QpnRange qpns) { qps_.add(qpns); }

  [[nodiscard]] const KeyTable& keys() const { return engine_.keys; }

  // --- objects

  Result<ProtectionDomain*> create_pd();
  Result<void> destroy(ProtectionDomain& pd);

  Result<MemoryRegion*> register_region(ProtectionDomain& pd, const RegionSpec& spec) {
    return engine_.keys.register_region(pd, spec);
  }
  Result<void> reregister(MemoryRegion& region, ProtectionDomain* pd,
                          const std::optional<RegionSpec>& where, std::optional<Access> access) {
    return engine_.keys.reregister(region, pd, where, access);
  }
  Result<void> destroy(MemoryRegion& region) { return engine_.keys.deregister(region); }

  Result<MemoryWindow*> create_window(ProtectionDomain& pd, WindowType type) {
    return engine_.keys.create_window(pd, type);
  }
  void destroy(MemoryWindow& window) { engine_.keys.destroy_window(window); }

  // The interface carries larger packets than before, or only smaller ones: new paths and new
  // datagrams go by it. A connection keeps the path MTU that it was given.
  void set_port_mtu(Mtu mtu) { engine_.options.port_mtu = mtu; }

  Result<CompletionQueue*> create_cq(CompletionSink& sink);
  Result<void> destroy(CompletionQueue& cq);

  Result<SharedReceiveQueue*> create_srq(ProtectionDomain& pd, ReceiveSource& source);
  Result<void> destroy(SharedReceiveQueue& srq);

  Result<AddressHandle*> create_ah(ProtectionDomain& pd, const AddressVector& vector);
  void destroy(AddressHandle& handle) { engine_.address_handles.destroy(handle); }

  Result<QueuePair*> create_qp(ProtectionDomain& pd, const QueuePairSpec& spec);
  Result<void> destroy(QueuePair& qp);

  // Multicast, for UD. True: the packets of `group` are wanted from now on, or, when detaching, no
  // more: the fabric must be told.
  Result<bool> attach(QueuePair& qp, const wire::IpAddress& group) {
    return multicast_.attach(qp, group);
  }
  Result<bool> detach(QueuePair& qp, const wire::IpAddress& group) {
    return multicast_.detach(qp, group);
  }

  // --- inputs

  void handle_packet(Time now, const wire::Inbound& inbound);
  void handle_timer(Time now);
  [[nodiscard]] Time next_deadline() {
    return std::min(engine_.timers.next(), gsi_.cm().next_deadline());
  }
  // Posting a receive is no call into the device. This finds what was posted on queue pairs in
  // error, and flushes it; to be called when a program looks for completions.
  void flush_posted_receives();
  // The packet just handled asks for memory that later requests may change: send before handling
  // more.
  [[nodiscard]] bool must_transmit_now() const { return must_transmit_now_; }

  // Connections. A MAD that came for queue pair 1 is its input, its MADs leave with poll_transmit,
  // and its timers are among the device's.
  [[nodiscard]] ConnectionManager& cm() { return gsi_.cm(); }
  [[nodiscard]] const ConnectionManager& cm() const { return gsi_.cm(); }

  // --- outputs

  // Writes the next packet into `slot` (net::kMaxPacketSize bytes).
  [[nodiscard]] std::optional<wire::Outbound> poll_transmit(Time now, wire::MutableBytes slot);
  [[nodiscard]] bool has_output() const {
    return !engine_.transmitters.empty() || gsi_.cm().has_output();
  }
  // While it is on, one request may leave before the acknowledgements that wait. A peer that polls
  // for a message has it earlier then; one that sleeps is woken twice.
  void send_requests_first(bool on) { engine_.requests_first = on; }
  [[nodiscard]] bool has_events() const { return !engine_.events.empty(); }
  [[nodiscard]] CompletionQueue* poll_completion_event() {
    return engine_.events.poll_completion_event();
  }
  [[nodiscard]] std::optional<AsyncEvent> poll_async_event() {
    return engine_.events.poll_async_event();
  }
  // Sentences that explain errors gather only if somebody listens.
  void listen_to_sentences(bool on) { engine_.explanations.listen(on); }
  [[nodiscard]] std::vector<std::string> take_sentences() { return engine_.explanations.take(); }

  // --- what exists, for limits and leak checks
  struct Census {
    std::size_t pds, regions, windows, cqs, srqs, ahs, qps;
    std::size_t connections, listeners;
    friend bool operator==(const Census&, const Census&) = default;
  };
  [[nodiscard]] Census census() const;

 private:
  [[nodiscard]] Result<void> check(const QueuePairSpec& spec) const;
  void handle_multicast(Time now, const wire::Packet& packet, const wire::Inbound& inbound);

  OwnedSet<ProtectionDomain> pds_;  // first: memory regions in the engine use them
  Engine engine_;
  OwnedSet<CompletionQueue> cqs_;
  OwnedSet<SharedReceiveQueue> srqs_;
  QpTable qps_;
  MulticastTable multicast_;
  GsiPort gsi_;
  std::uint32_t next_srq_number_ = 1;
  std::uint32_t quantum_used_ = 0;
  bool must_transmit_now_ = false;
};

}  // namespace urxe::emulator
