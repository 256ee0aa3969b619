// Congestion control: CNPs for packets that a switch marked (IBTA annex A17.9.3),
// and a rate for queue pairs that receive CNPs. How the rate moves is DCQCN (Zhu et al.,
// "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015), which NICs do in hardware.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "emulator/options.h"
#include "net/wire/time.h"

namespace urxe::emulator {

// The receiver's side: when to tell the sender.
class NotificationPoint {
 public:
  explicit NotificationPoint(const CongestionOptions& options) : options_(options) {}
  // A marked packet came. True: send a CNP for it, the last one is long enough ago.
  [[nodiscard]] bool packet_was_marked(Time now);

 private:
  CongestionOptions options_;
  Time next_{};  // the earliest time of the next CNP
};

// The sender's side: how fast a queue pair sends. Before the first CNP, and once the rate has
// recovered, it is not limited at all.
class ReactionPoint {
 public:
  explicit ReactionPoint(const CongestionOptions& options) : options_(options) { reset(); }

  void reset();
  // A CNP came.
  void notified(Time now);
  // A packet of `bytes` left.
  void sent(Time now, std::size_t bytes);
  // Lets the rate rise, if it is time to.
  void handle_timer(Time now);

  [[nodiscard]] bool is_limited() const { return rate_ < line_rate(); }
  [[nodiscard]] double rate() const { return rate_; }  // bit/s
  [[nodiscard]] double alpha() const { return alpha_; }
  // When the next packet may leave.
  [[nodiscard]] Time free_at() const { return is_limited() ? free_at_ : Time{}; }
  // When handle_timer is due.
  [[nodiscard]] Time deadline() const;

 private:
  [[nodiscard]] double line_rate() const { return static_cast<double>(options_.line_rate); }
  void rise();

  CongestionOptions options_;
  double rate_;    // bit/s, now
  double target_;  // bit/s, where the rate was when the last CNP came
  double alpha_;   // how congested it is thought to be: 0 to 1
  Time alpha_due_ = kNever;
  Time rise_due_ = kNever;
  Time free_at_{};
  std::uint64_t bytes_ = 0;        // sent since the byte counter last made the rate rise
  std::uint32_t timer_rises_ = 0;  // since the last CNP
  std::uint32_t byte_rises_ = 0;
};

// Both sides of a queue pair, and what it has to do about them.
struct Congestion {
  explicit Congestion(const CongestionOptions& options) : receiver(options), sender(options) {}
  NotificationPoint receiver;
  ReactionPoint sender;
  bool owes_notification = false;
  bool is_held = false;  // it wanted to send, and had to wait for its rate

  [[nodiscard]] Time deadline() const {
    return is_held ? std::min(sender.free_at(), sender.deadline()) : sender.deadline();
  }
};

}  // namespace urxe::emulator
