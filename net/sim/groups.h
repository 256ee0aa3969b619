// Who listens to which multicast address.
#pragma once

#include <map>
#include <set>

#include "net/wire/address.h"

namespace urxe::net {

class Groups {
 public:
  void join(const wire::IpAddress& group, const wire::IpAddress& member) {
    members_[group].insert(member);
  }
  // False if it was no member.
  bool leave(const wire::IpAddress& group, const wire::IpAddress& member) {
    const auto found = members_.find(group);
    return found != members_.end() && found->second.erase(member) != 0;
  }
  [[nodiscard]] const std::set<wire::IpAddress>& members(const wire::IpAddress& group) const {
    static const std::set<wire::IpAddress> kNobody;
    const auto found = members_.find(group);
    return found == members_.end() ? kNobody : found->second;
  }

 private:
  std::map<wire::IpAddress, std::set<wire::IpAddress>> members_;
};

}  // namespace urxe::net
