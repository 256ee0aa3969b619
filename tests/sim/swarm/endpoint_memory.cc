// What programs of the swarm do to their memory and their multicast groups while others use them.
#include "tests/sim/swarm/endpoint.h"

namespace urxe::swarm {

using namespace emulator;

namespace {

constexpr std::uint32_t kFirstGroup = 0xEF000001;  // 239.0.0.1

}  // namespace

wire::IpAddress group_address(std::uint64_t number) {
  return wire::IpAddress::from_v4(kFirstGroup + static_cast<std::uint32_t>(number));
}

// --- memory

// Requests of both ends may fail because of it.
void Endpoint::note_memory_change() {
  memory_changed_ = may_collapse_ = true;
  peer_->memory_changed_ = peer_->may_collapse_ = true;
}

void Endpoint::change_region(net::Random& dice) {
  Area& part = parts_.at(dice.below(kParts));
  note_memory_change();
  if (part.region == nullptr) {
    machine_.register_area(part);
  } else if (!machine_.deregister_area(part) && window_state_ == WindowState::unbound) {
    shared_.findings.add("{}: a region without windows cannot be deregistered", name_);
  }
}

void Endpoint::change_pages(net::Random& dice) {
  const std::uint64_t roll = dice.below(kParts + 2);
  const bool counters = roll == kParts;
  const bool receives = roll > kParts && own_receives_ != nullptr;
  Area& area = counters   ? machine_.counters()
               : receives ? *own_receives_->area
                          : parts_.at(roll % kParts);
  if (counters) {
    for (Endpoint* endpoint : machine_.endpoints()) endpoint->note_memory_change();
  }
  note_memory_change();
  if (receives) own_receives_->had_bad = own_receives_->had_hole = true;
  if (area.hole != 0) return machine_.bring_back(area);
  const std::size_t offset = dice.below(area.size);
  machine_.take_away(area, offset, dice.between(1, area.size - offset));
}

void Endpoint::note_holes() {
  bool any = machine_.counters().hole != 0;
  for (const Area& part : parts_) any = any || part.hole != 0;
  if (any || receives_->area->hole != 0) note_memory_change();
}

// --- multicast

void Endpoint::change_group(net::Random& dice) {
  if (type() != QpType::ud) return;
  const wire::IpAddress group = group_address(dice.below(kGroups));
  const bool attached = machine_.groups().is_attached(group, *this);
  // Now and then what is so already: a second attachment changes nothing, and what is not attached
  // cannot be detached.
  if (attached != dice.chance(0.1)) return machine_.detach(*this, group);
  machine_.attach(*this, group);
}

bool Endpoint::can_take(std::size_t others) const {
  const bool hears = state() == QpState::ready_to_receive || state() == QpState::ready_to_send ||
                     state() == QpState::send_queue_drain || state() == QpState::send_queue_error;
  return hears && receives_->source.posted() >= (receives_->shared ? others : 1);
}

}  // namespace urxe::swarm
