// A switch: takes a packet from any cable and queues it at the port that leads to its destination.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "net/sim/groups.h"
#include "net/sim/link.h"
#include "net/wire/address.h"

namespace urxe::net {

// Owner: a network. Not thread-safe.
class Switch final : public PacketSink {
 public:
  explicit Switch(const Groups& groups) : groups_(groups) {}

  // Packets to `address` leave through `port`.
  void add_port(const wire::IpAddress& address, Link& port) { ports_[address] = &port; }
  [[nodiscard]] const Link& port(const wire::IpAddress& address) const {
    return *ports_.at(address);
  }
  // Packets to addresses behind no port.
  [[nodiscard]] std::uint64_t unroutable() const { return unroutable_; }

  void take(Time now, SimPacket packet) override;

 private:
  std::map<wire::IpAddress, Link*> ports_;
  const Groups& groups_;
  std::uint64_t unroutable_ = 0;
};

}  // namespace urxe::net
