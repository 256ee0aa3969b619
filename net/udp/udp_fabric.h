// A device's way to a real network: RoCEv2 in UDP datagrams to port 4791.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/epoll.h>
#include <tl/expected.hpp>

#include "net/descriptor.h"
#include "net/error.h"
#include "net/fabric.h"
#include "net/udp/held_requests.h"
#include "net/udp/icrc_checker.h"
#include "net/udp/mad_router.h"
#include "net/udp/mailbox.h"
#include "net/udp/options.h"
#include "net/udp/outbox.h"
#include "net/udp/reader.h"
#include "net/udp/sender.h"
#include "net/udp/slot.h"
#include "net/udp/steering.h"

namespace urxe::net {

struct UdpCounters {
  std::uint64_t sent_packets = 0;      // taken by the kernel
  std::uint64_t received_packets = 0;  // given to the receiver
  std::uint64_t send_errors = 0;       // packets that the kernel refused
  std::uint64_t receive_drops = 0;     // datagrams that found the socket's buffer full
  std::uint64_t malformed = 0;         // too short for a RoCEv2 packet, or impossible addresses
  std::uint64_t handed_over = 0;       // packets given to the process whose they are
  std::uint64_t taken_over = 0;        // packets that another process gave to us
  std::uint64_t hand_over_drops = 0;   // packets whose owner did not keep up
  std::uint64_t ownerless = 0;         // packets for queue pair numbers that no process has
  std::uint64_t refused_letters = 0;   // what other users wrote into our mailboxes
};

// Owner: whoever runs the device, under the device's lock.
//
// All processes of one user share an address and its port 4791. What a process receives and what is
// another's, by the slot in its QPN, it hands over; see slot.h, steering.h and mailbox.h.
class UdpFabric final : public Fabric {
 public:
  // Opens sockets for all addresses and claims a slot. Changes nothing on failure.
  [[nodiscard]] static tl::expected<std::unique_ptr<UdpFabric>, Error> open(
      const UdpOptions& options);

  // The smallest receive buffer of its sockets, in bytes as the kernel counts, overhead included.
  [[nodiscard]] int receive_buffer() const;

  // Which queue pair numbers are ours: one slot from the start.
  struct ClaimedSlot {
    Slot slot;
    std::uint32_t id = 0;
    Mailbox mailbox;
  };
  [[nodiscard]] const std::vector<ClaimedSlot>& slots() const { return slots_; }
  // One more. Fails with EADDRINUSE when all are taken.
  [[nodiscard]] tl::expected<Slot, Error> claim_slot();

  // The interface got another address. Does nothing for one that is known: the socket of an address
  // that went away stays, and works again when it comes back.
  [[nodiscard]] tl::expected<void, Error> add_address(const LocalAddress& local);

  // Who tells apart the packets to QPN 1; nullptr: the lowest slot that is in use has them all.
  void set_mad_router(MadRouter* router) { mad_router_ = router; }
  // Claims a name, so that a MadRouter of any process can send packets here. Returns 0 or an errno:
  // EADDRINUSE if another process has it.
  [[nodiscard]] int claim_name(const std::string& name);
  void release_name(const std::string& name);

  [[nodiscard]] UdpCounters counters() const;
  // One of them by its name; nothing if there is no such.
  [[nodiscard]] std::optional<std::uint64_t> counter(std::string_view name) const;

  wire::MutableBytes reserve() override { return sender_.reserve(now_); }
  void commit(Time now, const wire::Outbound& packet) override { sender_.commit(now, packet); }
  bool flush(Time now) override;
  ReceiveResult receive(Time now, Receiver& receiver, std::size_t budget) override;
  [[nodiscard]] Time next_deadline() const override { return steering_.next_deadline(); }
  void wait_for(std::vector<pollfd>& descriptors) const override;
  int join(const wire::IpAddress& group) override;
  int leave(const wire::IpAddress& group) override;

 private:
  struct Name {
    std::string name;
    std::uint32_t id = 0;
    Mailbox mailbox;
  };
  // What a packet of a datagram is to us.
  struct Destination {
    enum class Kind : std::uint8_t { malformed, probe, ours, management, others } kind;
    Slot slot{};
    friend bool operator==(const Destination&, const Destination&) = default;
  };

  UdpFabric(const UdpOptions& options, bool can_segment);

  [[nodiscard]] tl::expected<void, Error> add(const LocalAddress& local, Descriptor socket);
  // Adds a source to what is waited for, under an id of its own. Returns 0 or an errno.
  [[nodiscard]] int watch(const Descriptor& source, std::uint32_t id,
                          std::uint32_t events = EPOLLIN) const;
  [[nodiscard]] bool owns(Slot slot) const;
  [[nodiscard]] bool owns(const std::string& mailbox) const;
  [[nodiscard]] bool is_ours(const wire::IpAddress& destination) const;

  // Reads what epoll says is readable.
  std::size_t read_ready(Time now, Receiver& receiver, std::size_t budget);
  std::size_t read(Time now, Receiver& receiver, std::uint32_t id, std::size_t budget);
  std::size_t read_socket(Time now, Receiver& receiver, ReceiveSocket& socket, std::size_t budget);
  std::size_t read_mailbox(Time now, Receiver& receiver, Mailbox& mailbox, std::size_t budget);
  [[nodiscard]] Mailbox* find_mailbox(std::uint32_t id);

  // Gives each packet of a datagram to whose it is.
  void sort(Time now, Receiver& receiver, const Datagram& datagram, bool is_group);
  // Hands over the packet at `at`, and those that follow it to the same owner; returns where they
  // end.
  std::size_t hand_over_from(const Datagram& datagram, std::size_t at,
                             const Destination& destination);
  void answer_probe(const wire::Path& path, wire::Bytes packet);
  void take_over(Time now, Receiver& receiver, const Datagram& datagram);
  [[nodiscard]] Destination destination_of(wire::Bytes packet) const;
  void deliver(Time now, Receiver& receiver, const wire::Path& path, wire::Bytes packet);
  // False: it stays here.
  [[nodiscard]] bool route_management(const Datagram& packet);
  void look_at_held(Time now, Receiver& receiver);
  [[nodiscard]] bool hand_to_lowest(const Datagram& packet);
  // Puts a datagram of `packets` packets into the outbox.
  void hand_over(const std::string& name, const Datagram& datagram, std::uint64_t packets);
  void post_all();
  void note_posted(const Outbox::Entry& entry, int error);

  // Where others have last_id_.
  static constexpr std::uint32_t kTimerId = ~0U;        // of held_
  static constexpr std::uint32_t kManagerId = ~0U - 1;  // of error queues

  UdpOptions options_;
  Descriptor epoll_;  // what wait_for gives: readable when any of the sockets is
  std::vector<std::unique_ptr<ReceiveSocket>> sockets_;  // of our addresses, then of groups
  std::vector<ClaimedSlot> slots_;
  std::vector<Name> names_;
  std::uint32_t last_id_ = 0;
  MadRouter* mad_router_ = nullptr;
  Steering steering_;
  Sender sender_;
  Reader reader_;
  IcrcChecker icrc_checker_;
  Outbox outbox_;
  HeldRequests held_;
  UdpCounters counters_;
  // Packets mostly come to one socket: it is read without asking first which are readable, but for
  // every kShortLooks-th time.
  static constexpr std::uint32_t kShortLooks = 8;
  std::uint32_t busy_id_ = 0;  // 0: none
  std::uint32_t short_looks_ = 0;
  Time now_{};  // of the last call: reserve has no clock
};

}  // namespace urxe::net
