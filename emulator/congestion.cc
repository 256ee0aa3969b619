#include "emulator/congestion.h"

namespace urxe::emulator {
namespace {

constexpr double kBitsPerByte = 8;
constexpr double kNanosecondsPerSecond = 1e9;

}  // namespace

bool NotificationPoint::packet_was_marked(Time now) {
  if (now < next_) return false;
  next_ = now + options_.notification_interval;
  return true;
}

void ReactionPoint::reset() {
  rate_ = target_ = line_rate();
  alpha_ = 1;
  alpha_due_ = rise_due_ = kNever;
  free_at_ = Time{};
  bytes_ = 0;
  timer_rises_ = byte_rises_ = 0;
}

// IBA CA17-45
void ReactionPoint::notified(Time now) {
  target_ = rate_;
  rate_ = std::max(rate_ * (1 - alpha_ / 2), static_cast<double>(options_.min_rate));
  alpha_ = (1 - options_.gain) * alpha_ + options_.gain;
  alpha_due_ = now + options_.alpha_interval;
  rise_due_ = now + options_.rise_interval;
  bytes_ = 0;
  timer_rises_ = byte_rises_ = 0;
}

void ReactionPoint::sent(Time now, std::size_t bytes) {
  if (!is_limited()) return;
  const double nanoseconds =
      static_cast<double>(bytes) * kBitsPerByte * kNanosecondsPerSecond / rate_;
  // What was not used for a while may be caught up with, a little: timers are not exact.
  free_at_ = std::max(free_at_, now - options_.catch_up) +
             Duration(static_cast<Duration::rep>(nanoseconds));
  bytes_ += bytes;
  if (bytes_ < options_.rise_bytes) return;
  bytes_ -= options_.rise_bytes;
  ++byte_rises_;
  rise();
}

Time ReactionPoint::deadline() const {
  return is_limited() ? std::min(alpha_due_, rise_due_) : kNever;
}

void ReactionPoint::handle_timer(Time now) {
  if (!is_limited()) return;
  if (now >= alpha_due_) {  // no CNP came for so long
    alpha_ *= 1 - options_.gain;
    alpha_due_ = now + options_.alpha_interval;
  }
  if (now < rise_due_) return;
  rise_due_ = now + options_.rise_interval;
  ++timer_rises_;
  rise();
}

// Half of the way back at first, then beyond. IBA CA17-46
void ReactionPoint::rise() {
  const std::uint32_t most = std::max(timer_rises_, byte_rises_);
  const std::uint32_t least = std::min(timer_rises_, byte_rises_);
  if (least > options_.fast_rises) {
    target_ += static_cast<double>(options_.hyper_step) * (least - options_.fast_rises);
  } else if (most > options_.fast_rises) {
    target_ += static_cast<double>(options_.additive_step);
  }
  target_ = std::min(target_, line_rate());
  rate_ = (rate_ + target_) / 2;
  // Half of the way never gets there.
  constexpr double kAlmost = 0.99;
  if (rate_ >= kAlmost * line_rate()) reset();
}

}  // namespace urxe::emulator
