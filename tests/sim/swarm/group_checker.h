// Watches who of a device gets which multicast packets.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "net/wire/address.h"
#include "tests/sim/swarm/findings.h"

namespace urxe::swarm {

class Endpoint;

// Each packet that the network hands to the device goes to the queue pairs that are attached to its
// group, once to each, and to nobody else; those that can take it must get it.
class GroupChecker {
 public:
  using Members = std::set<const Endpoint*>;

  GroupChecker(Findings& findings, std::string name)
      : findings_(findings), name_(std::move(name)) {}

  // Both say whether the device should have said that the group begins, or ends, for it.
  bool attach(const wire::IpAddress& group, const Endpoint& endpoint);
  bool detach(const wire::IpAddress& group, const Endpoint& endpoint);
  [[nodiscard]] bool is_attached(const wire::IpAddress& group, const Endpoint& endpoint) const {
    return members(group).contains(&endpoint);
  }
  [[nodiscard]] std::vector<wire::IpAddress> groups_of(const Endpoint& endpoint) const;
  [[nodiscard]] const Members& members(const wire::IpAddress& group) const;

  // Message `id` comes, right as it was sent; `able` of the members can take it.
  void on_arrival(const wire::IpAddress& group, std::uint64_t id, Members able);
  // The queue pair used a receive: for message `id`, or for one that it could not store.
  void on_delivery(const Endpoint& endpoint, std::optional<std::uint64_t> id);
  // The device is done with the packet.
  void on_handled();
  [[nodiscard]] std::uint64_t deliveries() const { return deliveries_; }

 private:
  struct Packet {
    std::uint64_t id = 0;
    Members may;   // get it, and did not yet
    Members must;  // likewise
  };

  Findings& findings_;
  std::string name_;
  std::map<wire::IpAddress, Members> groups_;
  std::optional<Packet> packet_;  // that the device is at
  std::uint64_t deliveries_ = 0;
};

}  // namespace urxe::swarm
