#include "emulator/multicast_table.h"

#include <algorithm>

#include <fmt/core.h>

namespace urxe::emulator {
namespace {

auto find_member(std::vector<Use<QueuePair>>& members, const QueuePair& qp) {
  return std::find_if(members.begin(), members.end(),
                      [&qp](const Use<QueuePair>& member) { return member.get() == &qp; });
}

}  // namespace

Result<bool> MulticastTable::attach(QueuePair& qp, const wire::IpAddress& group) {
  if (qp.type() != QpType::ud) {
    return fail(Failure::invalid,
                fmt::format("QP {:#x} is not of type UD: only these take multicast packets",
                            qp.qpn().value()));
  }
  if (!group.is_multicast()) {
    return fail(Failure::invalid, fmt::format("{} is not a multicast address", group.to_string()));
  }
  const auto found = groups_.find(group);
  if (found == groups_.end()) {
    if (groups_.size() >= max_groups_) {
      return fail(Failure::no_memory, "all multicast groups are in use");
    }
    groups_[group].emplace_back(qp);
    return true;
  }
  auto& members = found->second;
  if (find_member(members, qp) != members.end()) return false;
  if (members.size() >= max_members_) {
    return fail(Failure::no_memory, fmt::format("group {} has {} queue pairs, no more are allowed",
                                                group.to_string(), members.size()));
  }
  members.emplace_back(qp);
  return false;
}

Result<bool> MulticastTable::detach(QueuePair& qp, const wire::IpAddress& group) {
  const auto found = groups_.find(group);
  const bool is_member =
      found != groups_.end() && find_member(found->second, qp) != found->second.end();
  if (!is_member) {
    return fail(Failure::invalid,
                fmt::format("QP {:#x} is not attached to {}", qp.qpn().value(), group.to_string()));
  }
  found->second.erase(find_member(found->second, qp));
  if (!found->second.empty()) return false;
  groups_.erase(found);
  return true;
}

}  // namespace urxe::emulator
