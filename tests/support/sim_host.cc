#include "tests/support/sim_host.h"

#include <algorithm>

namespace urxe::test {
namespace {

constexpr std::size_t kReceiveBudget = 128;  // as the runtime has it

}  // namespace

SimHost::SimHost(net::Simulation& simulation, net::SimNode& node,
                 std::unique_ptr<net::Fabric> fabric, const HostSpec& spec)
    : simulation_(simulation),
      node_(node),
      fabric_(std::move(fabric)),
      time_per_packet_(spec.time_per_packet),
      device_(spec.options, memory_, spec.qpns) {
  node_.set_listener(this);
  device_.assign_gids({node.address()});
}

void SimHost::wake(Time now) { simulation_.schedule_at_latest(*this, std::max(now, busy_until_)); }

void SimHost::on_packet(Time now, const wire::Inbound& packet) {
  if (observer_ != nullptr) observer_->on_receive(now, packet);
  device_.handle_packet(now, packet);
  if (observer_ != nullptr) observer_->on_handled();
  if (device_.must_transmit_now()) transmit(now);
}

void SimHost::transmit(Time now) {
  while (device_.has_output()) {
    const wire::MutableBytes slot = fabric_->reserve();
    if (slot.empty()) break;
    const auto outbound = device_.poll_transmit(now, slot);
    if (!outbound) break;
    if (observer_ != nullptr) {
      observer_->on_transmit(now, *outbound->path, slot.first(outbound->size));
    }
    fabric_->commit(now, *outbound);
  }
  fabric_is_full_ = !fabric_->flush(now);
}

void SimHost::act(Time now) {
  const std::size_t budget = time_per_packet_ == Duration{} ? kReceiveBudget : 1;
  const net::ReceiveResult received = fabric_->receive(now, *this, budget);
  busy_until_ = now + received.packets * time_per_packet_;
  if (now >= device_.next_deadline()) device_.handle_timer(now);
  if (device_.has_output() || fabric_is_full_) transmit(now);
  schedule_next(now, received.more);
}

void SimHost::settle() {
  const Time now = simulation_.now();
  transmit(now);
  schedule_next(now, node_.waiting() > 0);
}

void SimHost::schedule_next(Time now, bool more) {
  const Time next = more ? now : std::min(device_.next_deadline(), fabric_->next_deadline());
  simulation_.schedule(*this, std::max(next, busy_until_));
}

}  // namespace urxe::test
