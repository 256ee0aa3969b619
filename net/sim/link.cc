#include "net/sim/link.h"

#include <algorithm>
#include <utility>

#include "net/wire/frame.h"

namespace urxe::net {

bool mark_congestion(wire::MutableBytes ip_packet) {
  const auto frame = wire::parse_frame(ip_packet);
  if (!frame || frame->path.ecn() == wire::Ecn::not_ect) return false;
  wire::Path path = frame->path;
  path.traffic_class |= wire::kEcnMask;
  wire::write_ip_udp(ip_packet, path, frame->fragment, frame->roce.size());
  return true;
}

Duration Link::time_on_cable(std::size_t bytes) const {
  constexpr std::uint64_t kNanoseconds = 1'000'000'000;
  const std::uint64_t bits = 8 * (bytes + kEthernetOverhead);
  return Duration(bits * kNanoseconds / spec_.bits_per_second);
}

std::size_t Link::queued(Time now) {
  while (!queue_.empty() && queue_.front().leaves <= now) {
    queued_ -= queue_.front().bytes;
    queue_.pop_front();
  }
  return queued_;
}

Time Link::room_at(Time now, std::size_t bytes) {
  std::size_t left = queued(now);
  Time when = now;
  for (const Waiting& waiting : queue_) {
    if (left + bytes <= spec_.queue_limit) break;
    left -= waiting.bytes;
    when = waiting.leaves;
  }
  return when;
}

bool Link::should_mark(std::size_t queued_bytes) {
  const EcnMarking& marking = spec_.marking;
  if (queued_bytes < marking.min) return false;
  if (queued_bytes >= marking.max) return true;
  const double position = static_cast<double>(queued_bytes - marking.min) /
                          static_cast<double>(marking.max - marking.min);
  return random_.chance(position * marking.probability);
}

bool Link::offer(Time now, SimPacket packet) {
  const std::size_t bytes = packet.size();
  ++counters_.offered_packets;
  counters_.offered_bytes += bytes;
  if (!has_room(now, bytes)) {
    ++counters_.dropped_packets;
    counters_.dropped_bytes += bytes;
    return false;
  }
  if (should_mark(queued_) && mark_congestion(packet)) ++counters_.marked_packets;
  cable_is_free_ = std::max(cable_is_free_, now) + time_on_cable(bytes);
  queue_.push_back({cable_is_free_, bytes});
  queued_ += bytes;
  counters_.longest_queue = std::max(counters_.longest_queue, queued_);
  const auto jitter = static_cast<std::uint64_t>(spec_.jitter.count());
  const Duration extra(jitter == 0 ? 0 : random_.between(0, jitter));
  last_arrival_ = std::max(last_arrival_, cable_is_free_ + spec_.latency + extra);
  on_the_way_.push_back({last_arrival_, std::move(packet)});
  simulation_.schedule_at_latest(*this, on_the_way_.front().arrival);
  return true;
}

void Link::act(Time now) {
  while (!on_the_way_.empty() && on_the_way_.front().arrival <= now) {
    SimPacket packet = std::move(on_the_way_.front().packet);
    on_the_way_.pop_front();
    ++counters_.delivered_packets;
    counters_.delivered_bytes += packet.size();
    sink_.take(now, std::move(packet));
  }
  if (!on_the_way_.empty()) simulation_.schedule_at_latest(*this, on_the_way_.front().arrival);
}

}  // namespace urxe::net
