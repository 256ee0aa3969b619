// A queue pair of the swarm with its memory, what was posted to it, and the checks of its
// completions.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "emulator/device.h"
#include "net/random.h"
#include "tests/sim/swarm/machine.h"
#include "tests/sim/swarm/message.h"
#include "tests/sim/swarm/plan.h"
#include "tests/sim/swarm/receive_pool.h"
#include "tests/sim/swarm/wire_watcher.h"

namespace urxe::swarm {

// Multicast groups of UD ends.
inline constexpr std::size_t kGroups = 3;
[[nodiscard]] wire::IpAddress group_address(std::uint64_t number);

class Endpoint {
 public:
  Endpoint(Shared& shared, Machine& machine, const ConnectionPlan& connection, const EndPlan& plan,
           std::string name);

  void set_peer(Endpoint& peer) { peer_ = &peer; }
  [[nodiscard]] Endpoint& peer() const { return *peer_; }
  [[nodiscard]] Machine& machine() const { return machine_; }
  [[nodiscard]] emulator::QpType type() const { return connection_.type; }
  [[nodiscard]] emulator::QueuePair& qp() const { return *qp_; }
  [[nodiscard]] emulator::QpState state() const { return qp_->state(); }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Flow* flow() const { return flow_.get(); }

  void create_qp();
  // Forgets what a RESET makes the device forget, then destroys the queue pair.
  void destroy_qp();
  void destroy_rest();
  // RESET to RTS. Both ends were reset before.
  void bring_up(wire::Psn send_psn, wire::Psn receive_psn);
  void reset();
  void fail();
  void drain();
  // UC and UD: from SQE back to RTS. RC: nothing.
  void recover();

  void post_requests(net::Random& dice);
  void post_receives(net::Random& dice, std::size_t count);
  void bind(net::Random& dice);
  void invalidate(net::Random& dice);
  void change_region(net::Random& dice);
  // Takes some of the pages of this end's memory away, or of its device's counters; if some are
  // gone, brings them back.
  void change_pages(net::Random& dice);
  // Of what was taken away before this end was connected, requests may fail too.
  void note_holes();
  // UD: attaches to a multicast group, or detaches.
  void change_group(net::Random& dice);
  // UD: a datagram that comes now would be received, also if `others` come to the same queue.
  [[nodiscard]] bool can_take(std::size_t others) const;
  // A response to a request from here leaves the peer.
  void on_response_leaves(const wire::Packet& packet);
  // So that the run can come to rest: registers what is gone, posts all receives.
  void make_ready(net::Random& dice);

  void on_completion(const emulator::Completion& completion);
  [[nodiscard]] std::string describe() const;
  // Nothing is under way any more.
  void check_at_rest();

 private:
  struct Posted {
    Message* message;
    bool signalled;
    std::size_t slot;
  };
  enum class WindowState : std::uint8_t { unbound, binding, bound, leaving };
  struct Draft;

  // Regions, in this order.
  enum Part : std::size_t { kTarget, kSource, kLocal, kParts };

  void post_one(net::Random& dice);
  void submit(Draft& draft, net::Random& dice);
  [[nodiscard]] std::optional<std::size_t> free_slot();
  [[nodiscard]] std::uint64_t slot_address(std::size_t slot) const;
  [[nodiscard]] emulator::WorkOpcode draw_opcode(net::Random& dice) const;
  void fill_draft(Draft& draft, net::Random& dice);
  void give_bytes(Draft& draft, net::Random& dice, std::size_t size);
  void post_local(Draft& draft, net::Random& dice);
  void fill_send(Draft& draft, net::Random& dice);
  void fill_write(Draft& draft, net::Random& dice);
  void fill_read(Draft& draft, net::Random& dice);
  void fill_atomic(Draft& draft, net::Random& dice);
  void fill_atomic_write(Draft& draft, net::Random& dice);
  void fill_flush(Draft& draft, net::Random& dice);
  void fill_datagram(Draft& draft, net::Random& dice);
  void address_datagram(Draft& draft, const wire::IpAddress& to, wire::Qpn qpn);
  void spoil(Draft& draft, net::Random& dice);
  void spoil_remote(Draft& draft, net::Random& dice);
  void spoil_flush(Draft& draft, net::Random& dice);
  void leave_bounds(Draft& draft, const Area& part);
  void note_memory_change();
  void note_expectations(Draft& draft);
  [[nodiscard]] std::size_t draw_size(net::Random& dice, std::size_t limit) const;
  [[nodiscard]] bool peer_allows(emulator::WorkOpcode opcode) const;

  void trim();
  void on_sent(const emulator::Completion& completion);
  void on_received(const emulator::Completion& completion);
  void check_sent(const Posted& posted, const emulator::Completion& completion);
  void check_done(Message& message);
  void check_atomic(const Message& message);
  void check_flushed(const Message& flush, const char* when);
  void check_failure(const Message& message, emulator::CompletionStatus status);
  [[nodiscard]] bool may_fail_with(emulator::CompletionStatus status) const;
  void note_window(const Message& message);
  void check_delivery(const emulator::Completion& completion, std::uint64_t address);
  void check_refused_receive(emulator::CompletionStatus status, const ReceivePool::Slot& slot);
  [[nodiscard]] Message* message_for(const emulator::Completion& completion, std::uint64_t address);
  void forget_epoch();

  Shared& shared_;
  Machine& machine_;
  const ConnectionPlan& connection_;
  const EndPlan& plan_;
  std::string name_;
  std::uint32_t mtu_;
  Endpoint* peer_ = nullptr;

  std::map<wire::IpAddress, emulator::AddressHandle*> handles_;  // UD
  test::SendDouble sends_;
  emulator::QueuePair* qp_ = nullptr;
  std::unique_ptr<ReceivePool> own_receives_;
  ReceivePool* receives_;
  std::array<Area, kParts> parts_;
  emulator::MemoryWindow* window_ = nullptr;
  WindowState window_state_ = WindowState::unbound;
  std::uint32_t window_key_ = 0;
  std::size_t window_size_ = 0;

  std::deque<Posted> posted_;
  std::vector<bool> slot_used_;
  std::deque<Message*> incoming_;        // takes a receive here, and did not yet
  std::vector<Message*> heard_of_;       // UC: all that the peer ever sent
  std::unique_ptr<Flow> flow_;           // of requests from here
  std::vector<const Message*> placed_;   // RC: requests that write, as they were posted
  std::vector<const Message*> flushes_;  // RC: likewise

  // Since the queue pair was connected.
  bool failed_ = false;          // a request completed in error
  bool may_collapse_ = false;    // the peer sent, or this end's program did, what ends it
  bool peer_was_lost_ = false;   // the peer was reset or put in error
  bool memory_changed_ = false;  // regions or windows of either end
};

}  // namespace urxe::swarm
