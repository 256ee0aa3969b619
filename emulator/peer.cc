#include "emulator/peer.h"

#include <algorithm>

#include "emulator/assert.h"

namespace urxe::emulator {
namespace {

constexpr unsigned kSlotShift = 14;  // a QPN is a process slot above an index of this many bits
constexpr std::uint32_t kIncrement = 4096;
constexpr std::uint32_t kIncrementsPerWindow = 2;  // once something was lost
// Chance loses a packet now and then: an eighth less will do. A buffer that is too small loses most
// of what it is sent, again and again: half, until it fits.
constexpr std::uint32_t kLittleLess = 8;
constexpr std::uint32_t kMuchLess = 2;
constexpr std::uint32_t kHardlyAny = 4;  // less than this part of the window since the last loss

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
  delivered_since_loss_ += bytes;
  if (was_used && window_ < options_.max_window) {
    growth_ += bytes;
    const std::uint32_t needed =
        window_ < slow_start_threshold_ ? kIncrement : window_ / kIncrementsPerWindow;
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
  const bool hardly_any_arrives = delivered_since_loss_ < window_ / kHardlyAny;
  const std::uint32_t less = window_ / (hardly_any_arrives ? kMuchLess : kLittleLess);
  window_ = std::max(window_ - less, options_.min_window);
  delivered_since_loss_ = 0;
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
