// A device's way to the simulated network.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "net/fabric.h"
#include "net/sim/groups.h"
#include "net/sim/link.h"
#include "net/wire/address.h"
#include "net/wire/icrc.h"

namespace urxe::net {

struct NodeSpec {
  wire::IpAddress address;
  std::size_t receive_buffer = 4 * 1024 * 1024;  // bytes that wait to be received
};

struct NodeCounters {
  std::uint64_t sent_packets = 0;
  std::uint64_t received_packets = 0;  // handed to the receiver
  std::uint64_t icrc_errors = 0;       // of those
  std::uint64_t overruns = 0;          // came while the receive buffer was full
  std::uint64_t strays = 0;            // not RoCE, or not for this node
};

// Told that packets wait, or that more may be sent.
class Wakeable {
 public:
  virtual void wake(Time now) = 0;

 protected:
  ~Wakeable() = default;
};

// Sees every packet that a node puts into the network: how runs are captured and checked.
class Observer {
 public:
  virtual void on_sent(Time now, const wire::IpAddress& node, wire::Bytes ip_packet) = 0;

 protected:
  ~Observer() = default;
};

// A node's end of the network: what it received and could not take yet, and its cable.
//
// Owner: a network. Not thread-safe.
class SimNode final : public PacketSink {
 public:
  SimNode(const NodeSpec& spec, Groups& groups) : spec_(spec), groups_(groups) {}

  [[nodiscard]] const wire::IpAddress& address() const { return spec_.address; }
  [[nodiscard]] const NodeCounters& counters() const { return counters_; }
  [[nodiscard]] std::size_t waiting() const { return inbox_.size(); }
  // Only once it is connected.
  [[nodiscard]] Link& uplink() const { return *uplink_; }
  // Who is told that something happened; nullptr for nobody.
  void set_listener(Wakeable* listener) { listener_ = listener; }

  void take(Time now, SimPacket packet) override;

 private:
  friend class SimFabric;
  friend class Network;
  [[nodiscard]] bool is_for_us(const wire::IpAddress& destination) const;

  NodeSpec spec_;
  Groups& groups_;
  NodeCounters counters_;
  Link* uplink_ = nullptr;
  Wakeable* listener_ = nullptr;
  Observer* observer_ = nullptr;
  std::deque<SimPacket> inbox_;
  std::size_t inbox_bytes_ = 0;
};

// Packets get real IP and UDP headers and a real ICRC, which is checked on reception, so what a
// fault injector does to a packet has the effect that it has on a cable.
class SimFabric final : public Fabric {
 public:
  // `node` outlives this.
  explicit SimFabric(SimNode& node) : node_(node) {}

  wire::MutableBytes reserve() override;
  void commit(Time now, const wire::Outbound& packet) override;
  bool flush(Time now) override;
  ReceiveResult receive(Time now, Receiver& receiver, std::size_t budget) override;
  [[nodiscard]] Time next_deadline() const override;
  void wait_for(std::vector<pollfd>& /*descriptors*/) const override {}  // virtual time has none
  int join(const wire::IpAddress& group) override;
  int leave(const wire::IpAddress& group) override;

 private:
  // The longest IP packet: what must fit into the cable's queue before a slot is given out.
  static constexpr std::size_t kMaxIpPacket = wire::kIpv6Size + wire::kUdpSize + kMaxPacketSize;

  void hand_over(Time now, const SimPacket& packet, Receiver& receiver);

  SimNode& node_;
  // The slot. The headers come before it once the path is known.
  std::array<std::uint8_t, kMaxPacketSize> slot_;
  Time now_{};  // of the last call: reserve has no clock
  bool waits_for_room_ = false;
};

}  // namespace urxe::net
