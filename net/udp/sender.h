// The way out: packets are collected in one buffer and given to the kernel in as few calls as
// possible.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "net/descriptor.h"
#include "net/fabric.h"
#include "net/udp/capture_watch.h"
#include "net/udp/options.h"
#include "net/udp/slot.h"
#include "net/udp/socket_address.h"
#include "net/wire/icrc.h"

namespace urxe::net {

// An address of ours and its sockets.
struct SendAddress {
  LocalAddress local;
  // The socket on port 4791: sends where no other source port can be had.
  const Descriptor* receiver = nullptr;

  // Sockets by source port. A path's source port spreads flows over a network's links, and needs a
  // socket that is bound to it. There are kPorts at most: the first path of each gets the source
  // port that it asks for, later ones share it. A path always leaves by one port, so its packets
  // stay in order.
  static constexpr std::size_t kPorts = 16;
  struct PortSocket {
    bool tried = false;
    std::uint16_t port = 0;
    Descriptor socket;
  };
  std::array<PortSocket, kPorts> ports;
  // By it leave packets to queue pair 1, whatever their path: see open_manager.
  PortSocket manager;
};

struct SendCounters {
  std::uint64_t packets = 0;  // taken by the kernel
  std::uint64_t errors = 0;   // packets that it refused
  int last_error = 0;         // the errno
};

// Owner: a UdpFabric.
//
// Packets lie one after the other in a buffer. A run of packets of one path and one size (the last
// may be smaller) is one message to the kernel, which splits it (UDP_SEGMENT) and numbers the
// packets 0, 1, 2 ... in the IPv4 identification, which the ICRC covers.
class Sender {
 public:
  // `can_segment`: whether the kernel splits.
  Sender(const UdpOptions& options, bool can_segment);

  // `receiver` is the address's socket on port 4791, and outlives this.
  void add(const LocalAddress& local, const Descriptor& receiver);

  [[nodiscard]] wire::MutableBytes reserve(Time now);
  void commit(Time now, const wire::Outbound& packet);
  // False: some of it waits for a writable socket.
  bool flush(Time now);

  // Who is told of a socket whose error queue is to be watched, when it is opened.
  using OnManager = std::function<void(const Descriptor&)>;
  void set_on_manager(OnManager on_manager) { on_manager_ = std::move(on_manager); }
  // Takes a destination that management packets did not reach; nothing if there is none.
  [[nodiscard]] std::optional<wire::IpAddress> take_unreachable();

  // The socket that is full; -1 if none is.
  [[nodiscard]] int full_socket() const;
  [[nodiscard]] const SendCounters& counters() const { return counters_; }

 private:
  struct Run {
    wire::Path path;  // with the source port that it leaves by
    std::uint16_t wanted_port;
    Slot peer_slot;
    const Descriptor* socket;
    unsigned interface;
    std::size_t begin;
    std::size_t size;
    std::size_t segment_size;
    std::uint32_t count;
    wire::IcrcSeed seed;  // for packets of segment_size
    bool is_management = false;
    bool was_split = false;
    bool was_retried = false;
  };
  // One message to the kernel.
  struct Message {
    SocketAddress address;
    iovec bytes;
    alignas(8) std::array<char, 96> control;
  };

  [[nodiscard]] bool is_time_to_send() const;
  [[nodiscard]] bool extends_last(const wire::Outbound& packet, std::size_t size,
                                  wire::Qpn qpn) const;
  bool start_run(const wire::Outbound& packet, std::size_t size, wire::Qpn qpn);
  [[nodiscard]] SendAddress* find(const wire::IpAddress& source);
  [[nodiscard]] std::pair<const Descriptor*, std::uint16_t> socket_for(SendAddress& address,
                                                                       std::uint16_t wanted_port);
  [[nodiscard]] std::pair<const Descriptor*, std::uint16_t> manager_of(SendAddress& address,
                                                                       std::uint16_t wanted_port);
  void write_icrc(const wire::Outbound& packet);
  void send();
  bool send_some();
  void fill(mmsghdr& header, Message& message, const Run& run);
  // What to do about the first run that was not sent. False: wait.
  bool handle_refusal(int code);
  void split_first();
  void drop_first(int code);
  void explain(const Run& run, int code) const;

  UdpOptions options_;
  OnManager on_manager_;
  CaptureWatch captures_;
  bool can_segment_;
  bool segments_ = false;  // now
  std::vector<std::unique_ptr<SendAddress>> addresses_;
  std::unique_ptr<std::uint8_t[]> buffer_;
  std::size_t used_ = 0;
  std::size_t reserved_at_ = 0;
  std::vector<Run> runs_;
  std::size_t sent_ = 0;  // of runs_
  bool full_ = false;
  SendCounters counters_;
  std::vector<Message> messages_;
  std::vector<mmsghdr> headers_;
};

}  // namespace urxe::net
