#include "net/faults/connections.h"

#include <algorithm>

namespace urxe::net {
namespace {

// More packets than anybody has in flight; and the smallest path MTU, for what a READ may span.
constexpr std::int32_t kLargestJump = 1 << 16;
constexpr std::uint32_t kSmallestMtu = 256;

Direction opposite(Direction direction) {
  return direction == Direction::transmit ? Direction::receive : Direction::transmit;
}

}  // namespace

FlowKey flow_of(const Observed& packet) {
  return {.direction = packet.direction,
          .responses = packet.is_response(),
          .peer = packet.peer,
          .destination = packet.bth.destination};
}

std::optional<std::uint64_t> FirstPsns::offset_of(const Observed& packet) {
  ++uses_;
  if (packet.is_response()) return offset_of_response(packet);
  return note_request(packet);
}

void FirstPsns::make_room() {
  if (flows_.size() < kMostFlows) return;
  flows_.erase(std::min_element(flows_.begin(), flows_.end(), [](const auto& a, const auto& b) {
    return a.second.last_use < b.second.last_use;
  }));
}

std::uint64_t FirstPsns::note_request(const Observed& packet) {
  const FlowKey key = flow_of(packet);
  const wire::Psn psn = packet.bth.psn;
  auto found = flows_.find(key);
  if (found == flows_.end()) {
    make_room();
    found = flows_.emplace(key, Flow{.latest = psn}).first;
  }
  Flow& flow = found->second;
  flow.last_use = uses_;
  const std::int32_t ahead = psn.ahead_of(flow.latest);
  const std::int64_t offset = static_cast<std::int64_t>(flow.offset) + ahead;
  if (ahead > kLargestJump || offset < 0) {
    flow.offset = 0;
    flow.latest = psn;
    return 0;
  }
  // A READ takes the PSNs of its responses, at most this many.
  const std::uint32_t span = packet.read_length / kSmallestMtu;
  if (ahead + static_cast<std::int32_t>(span) > 0) {
    flow.offset = static_cast<std::uint64_t>(offset) + span;
    flow.latest = psn + span;
  }
  return static_cast<std::uint64_t>(offset);
}

std::optional<std::uint64_t> FirstPsns::offset_of_response(const Observed& packet) {
  const Flow* best = nullptr;
  std::int64_t best_offset = 0;
  for (const auto& [key, flow] : flows_) {
    if (key.direction != opposite(packet.direction) || key.peer != packet.peer) continue;
    const std::int32_t ahead = packet.bth.psn.ahead_of(flow.latest);
    const std::int64_t offset = static_cast<std::int64_t>(flow.offset) + ahead;
    if (ahead > 0 || offset < 0) continue;
    if (best != nullptr && flow.last_use < best->last_use) continue;
    best = &flow;
    best_offset = offset;
  }
  if (best == nullptr) return std::nullopt;
  return static_cast<std::uint64_t>(best_offset);
}

Transmissions::Seen Transmissions::note(const Observed& packet) {
  const Key key{flow_of(packet), packet.bth.psn.value()};
  const auto [found, is_new] = seen_.try_emplace(key);
  Seen& seen = found->second;
  ++seen.times;
  if (!is_new) return seen;
  seen.ordinal = ++ordinals_;
  oldest_first_.push_back(key);
  const Seen first = seen;
  if (oldest_first_.size() > kMostPsns) {
    seen_.erase(oldest_first_.front());
    oldest_first_.pop_front();
  }
  return first;
}

}  // namespace urxe::net
