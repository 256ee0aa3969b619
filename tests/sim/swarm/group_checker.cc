#include "tests/sim/swarm/group_checker.h"

namespace urxe::swarm {

bool GroupChecker::attach(const wire::IpAddress& group, const Endpoint& endpoint) {
  Members& members = groups_[group];
  const bool begins = members.empty();
  members.insert(&endpoint);
  return begins;
}

bool GroupChecker::detach(const wire::IpAddress& group, const Endpoint& endpoint) {
  Members& members = groups_[group];
  return members.erase(&endpoint) != 0 && members.empty();
}

std::vector<wire::IpAddress> GroupChecker::groups_of(const Endpoint& endpoint) const {
  std::vector<wire::IpAddress> groups;
  for (const auto& [group, members] : groups_) {
    if (members.contains(&endpoint)) groups.push_back(group);
  }
  return groups;
}

const GroupChecker::Members& GroupChecker::members(const wire::IpAddress& group) const {
  static const Members kNobody;
  const auto found = groups_.find(group);
  return found == groups_.end() ? kNobody : found->second;
}

void GroupChecker::on_arrival(const wire::IpAddress& group, std::uint64_t id, Members able) {
  packet_ = {.id = id, .may = members(group), .must = std::move(able)};
}

void GroupChecker::on_delivery(const Endpoint& endpoint, std::optional<std::uint64_t> id) {
  const bool its_turn = packet_ && id.value_or(packet_->id) == packet_->id;
  if (!its_turn || packet_->may.erase(&endpoint) == 0) {
    if (!id) return;  // not stored, so perhaps no multicast packet
    findings_.add("{}: multicast message {} came to a queue pair that is not attached, or twice",
                  name_, *id);
    return;
  }
  packet_->must.erase(&endpoint);
  ++deliveries_;
}

void GroupChecker::on_handled() {
  if (packet_ && !packet_->must.empty()) {
    findings_.add("{}: multicast message {} did not come to {} of the attached queue pairs", name_,
                  packet_->id, packet_->must.size());
  }
  packet_.reset();
}

}  // namespace urxe::swarm
