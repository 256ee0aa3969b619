#include "emulator/peer.h"

#include <algorithm>

#include "emulator/assert.h"

namespace urxe::emulator {
namespace {

constexpr unsigned kSlotShift = 14;  // a QPN is a process slot above an index of this many bits
constexpr std::uint32_t kIncrement = 4096;

}  // namespace

Peer::Peer(const DeviceOptions& options)
    : options_(options),
      window_(options.initial_window),
      slow_start_threshold_(options.max_window) {}

void Peer::take(std::uint32_t bytes) {
  URXE_ASSERT(bytes <= in_flight_);
  in_flight_ -= bytes;
}

void Peer::delivered(std::uint32_t bytes) {
  const bool was_used = in_flight_ + kIncrement >= window_ / 2;
  take(bytes);
  if (was_used && window_ < options_.max_window) {
    growth_ += bytes;
    const std::uint32_t needed = window_ < slow_start_threshold_ ? kIncrement : window_;
    while (growth_ >= needed) {
      growth_ -= needed;
      window_ = std::min(window_ + kIncrement, options_.max_window);
    }
  }
  offer_room();
}

void Peer::withdrawn(std::uint32_t bytes) {
  take(bytes);
  offer_room();
}

void Peer::lost(Time now, Duration round_trip) {
  if (now < ignore_losses_until_) return;
  ignore_losses_until_ = now + round_trip;
  window_ = std::max(window_ / 2, options_.min_window);
  slow_start_threshold_ = window_;
  growth_ = 0;
}

Use<Peer> PeerTable::find(const wire::IpAddress& address, wire::Qpn qpn) {
  auto& peer = peers_[Key(address, qpn.value() >> kSlotShift)];
  if (peer == nullptr) peer = std::make_unique<Peer>(options_);
  return Use<Peer>(*peer);
}

void PeerTable::sweep() {
  std::erase_if(peers_, [](const auto& entry) { return !entry.second->in_use(); });
}

}  // namespace urxe::emulator
