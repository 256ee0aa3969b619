// Which queue pairs get the packets of which multicast group (IBTA 10.5).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "emulator/error.h"
#include "emulator/queue_pair.h"
#include "emulator/use_count.h"
#include "net/wire/address.h"

namespace urxe::emulator {

// Owner: the device. Not thread-safe.
class MulticastTable {
 public:
  // At most so many groups, and so many queue pairs in each.
  MulticastTable(std::uint32_t max_groups, std::uint32_t max_members)
      : max_groups_(max_groups), max_members_(max_members) {}

  // True: the group has its first member, and its packets are wanted from now on. Attaching twice
  // changes nothing. Only for UD queue pairs; an attached one cannot be destroyed (IBA o10-2.2.3).
  Result<bool> attach(QueuePair& qp, const wire::IpAddress& group);
  // True: the group has no member any more.
  Result<bool> detach(QueuePair& qp, const wire::IpAddress& group);

  // Calls `visit` for each member. False if there is none.
  template <typename Visit>
  bool for_each(const wire::IpAddress& group, Visit visit) const {
    const auto found = groups_.find(group);
    if (found == groups_.end()) return false;
    for (const Use<QueuePair>& member : found->second) visit(*member);
    return true;
  }
  void clear() { groups_.clear(); }

 private:
  std::uint32_t max_groups_;
  std::uint32_t max_members_;
  std::map<wire::IpAddress, std::vector<Use<QueuePair>>> groups_;  // none of them empty
};

}  // namespace urxe::emulator
