// Flow control towards one peer process: how many bytes may be on their way to it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "emulator/intrusive_list.h"
#include "emulator/options.h"
#include "emulator/use_count.h"
#include "net/wire/address.h"
#include "net/wire/numbers.h"
#include "net/wire/time.h"

namespace urxe::emulator {

class WaitingLine;

// Somebody who waits for room in a window: in one line at a time.
class WindowWaiter : public ListLink<struct WindowWaiterTag> {
 public:
  virtual ~WindowWaiter() = default;
  // There is room now, and it is this waiter's turn.
  virtual void window_opened() = 0;

  [[nodiscard]] bool has_turn() const { return has_turn_; }
  // It took what it needed, or has no use for room now.
  inline void end_turn();

 private:
  friend class WaitingLine;
  WaitingLine* line_ = nullptr;  // the one that it joined last
  std::uint32_t needed_ = 0;     // bytes
  bool has_turn_ = false;        // it was called, and has not ended its turn
};

// First come, first served: who is not at the front gets no room, however little it needs.
class WaitingLine {
 public:
  // Whether whoever comes now has to wait: somebody stands in line, or was called and has not yet
  // taken the room.
  [[nodiscard]] bool is_busy() const { return !waiters_.empty() || called_ > 0; }
  // Whoever stands in this line already keeps its place.
  void join(WindowWaiter& waiter, std::uint32_t needed) {
    waiter.end_turn();
    if (waiter.line_ != this) waiter.unlink();
    waiter.line_ = this;
    waiter.needed_ = needed;
    waiters_.push_back(waiter);
  }
  // Tells the waiter at the front if there is as much room as it needs.
  template <typename HasRoom>
  void offer(HasRoom has_room) {
    WindowWaiter* waiter = waiters_.front();
    if (waiter == nullptr || !has_room(waiter->needed_)) return;
    waiter->unlink();
    waiter->has_turn_ = true;
    ++called_;
    waiter->window_opened();
  }

 private:
  friend class WindowWaiter;
  IntrusiveList<WindowWaiter, WindowWaiterTag> waiters_;
  std::uint32_t called_ = 0;  // waiters that have their turn
};

void WindowWaiter::end_turn() {
  if (!has_turn_) return;
  has_turn_ = false;
  --line_->called_;
}

// All queue pairs that send to one socket share its receive buffer, so they share a window:
// additive increase, multiplicative decrease (RFC 5681's idea; the transport itself has no such
// thing).
//
// Owner: PeerTable. Not thread-safe.
class Peer : public Shared {
 public:
  explicit Peer(const DeviceOptions& options);

  // Whether `bytes` more may be sent. If nothing is in flight, anything may.
  [[nodiscard]] bool has_room(std::uint32_t bytes) const {
    return in_flight_ == 0 || in_flight_ + bytes <= window_;
  }
  // The waiter is told once. It then sends, or waits again, or ends its turn and calls offer_room
  // for the next one. Until then nobody else may take the room.
  void wait_for_room(WindowWaiter& waiter, std::uint32_t bytes) { line_.join(waiter, bytes); }
  [[nodiscard]] bool has_waiters() const { return line_.is_busy(); }
  void offer_room() {
    line_.offer([this](std::uint32_t bytes) { return has_room(bytes); });
  }

  void sent(std::uint32_t bytes) {
    in_flight_ += bytes;
    offer_room();
  }
  // `bytes` are no longer in flight: they arrived...
  void delivered(std::uint32_t bytes);
  // ... or the sender gave up on them and will send them again, or never.
  void withdrawn(std::uint32_t bytes);
  // Something was lost. Losses within one round trip count once.
  void lost(Time now, Duration round_trip);

  [[nodiscard]] std::uint32_t window() const { return window_; }
  [[nodiscard]] std::uint64_t in_flight() const { return in_flight_; }

 private:
  void take(std::uint32_t bytes);

  const DeviceOptions& options_;
  std::uint32_t window_;
  std::uint32_t slow_start_threshold_;
  std::uint64_t in_flight_ = 0;
  std::uint32_t growth_ = 0;                // bytes delivered since the window last grew
  std::uint64_t delivered_since_loss_ = 0;  // bytes
  Time ignore_losses_until_{};
  WaitingLine line_;
};

// The peers of a device. A peer is an address and the process slot in the upper bits of a QPN (for
// peers that number otherwise, some other fixed part of their queue pairs, which does no harm).
class PeerTable {
 public:
  explicit PeerTable(const DeviceOptions& options) : options_(options) {}
  [[nodiscard]] Use<Peer> find(const wire::IpAddress& address, wire::Qpn qpn);
  // Forgets peers that nobody uses.
  void sweep();
  [[nodiscard]] std::size_t size() const { return peers_.size(); }

 private:
  using Key = std::tuple<wire::IpAddress, std::uint32_t>;
  const DeviceOptions& options_;
  std::map<Key, std::unique_ptr<Peer>> peers_;
};

}  // namespace urxe::emulator
