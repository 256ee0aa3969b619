#include "net/sim/simulation.h"

#include <algorithm>

namespace urxe::net {

Actor::~Actor() {
  if (simulation_ != nullptr) simulation_->forget(*this);
}

void Simulation::schedule(Actor& actor, Time when) {
  actor.simulation_ = this;
  actor.due_ = std::max(when, now_);
  actor.ticket_ = ++tickets_;  // an entry with another ticket is stale
  if (when == kNever) return;
  heap_.push_back({actor.due_, actor.ticket_, &actor});
  std::push_heap(heap_.begin(), heap_.end());
}

void Simulation::forget(const Actor& actor) {
  std::erase_if(heap_, [&actor](const Entry& entry) { return entry.actor == &actor; });
  std::make_heap(heap_.begin(), heap_.end());
}

void Simulation::drop_stale() {
  while (!heap_.empty() && heap_.front().ticket != heap_.front().actor->ticket_) {
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
  }
}

Time Simulation::next() {
  drop_stale();
  return heap_.empty() ? kNever : heap_.front().time;
}

bool Simulation::step() {
  drop_stale();
  if (heap_.empty()) return false;
  const Entry entry = heap_.front();
  std::pop_heap(heap_.begin(), heap_.end());
  heap_.pop_back();
  now_ = entry.time;
  ++steps_;
  entry.actor->due_ = kNever;
  entry.actor->act(now_);
  return true;
}

void Simulation::run_until(Time end) {
  while (next() <= end && step()) {
  }
  now_ = std::max(now_, end);
}

}  // namespace urxe::net
