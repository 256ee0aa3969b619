// The requester's other side: acknowledgements, going back, timers.
#include <algorithm>
#include <utility>

#include "emulator/request_builder.h"
#include "emulator/requester.h"

namespace urxe::emulator {
namespace {

constexpr int kMaxBackoff = 10;
constexpr std::int64_t kTimeoutUnitNs = 4096;  // IBTA 9.7.6.1.3: 4.096 us * 2^timeout

}  // namespace

// --- acknowledgements

void Requester::acknowledge_before(wire::Psn psn, Time now) {
  if (psn == una_psn_) return;
  measure(psn, now);
  release_acknowledged(psn);
  una_psn_ = psn;
  if (send_psn_.is_before(psn)) move_cursor_to(psn);
  retries_ = rnr_retries_ = probes_ = 0;
  probe_is_due_ = waits_for_receiver_ = false;
  probed_psn_.reset();
  went_back_to_.reset();
  if (asked_again_until_ && asked_again_until_->is_before(psn)) asked_again_until_.reset();
  restart_timers(now);
  complete_requests();
}

// Gives back what packets [una_psn_, psn) hold of the windows, and marks requests that end there.
void Requester::release_acknowledged(wire::Psn psn) {
  const std::uint32_t acknowledged = static_cast<std::uint32_t>(psn.ahead_of(una_psn_));
  std::uint32_t charged = 0;
  for (std::uint32_t ordinal = queue_.oldest(); queue_.holds(ordinal); ++ordinal) {
    Work& work = queue_.at(ordinal);
    if (work.is_local()) continue;
    if (!work.started() || !work.first_psn.is_before(psn)) break;
    charged += release_part(work, psn);
    if (psn.is_before(work.end_psn())) break;
    if (!work.done) work.finish(CompletionStatus::success);
  }
  URXE_ASSERT(acknowledged > 0);
  read_window_eighths_ = std::min(read_window_eighths_ + acknowledged, kNoReadWindow);
  in_flight_bytes_ -= charged;
  peer_->delivered(charged);
}

// What packets [una_psn_, psn) of one request were charged for; READs settle theirs here.
std::uint32_t Requester::release_part(const Work& work, wire::Psn psn) {
  const auto index_of = [&work](wire::Psn at) {
    const std::int32_t index = at.ahead_of(work.first_psn);
    return static_cast<std::uint32_t>(
        std::clamp<std::int32_t>(index, 0, static_cast<std::int32_t>(work.packets)));
  };
  const std::uint32_t first = index_of(una_psn_);
  const std::uint32_t sent = index_of(send_psn_);
  const std::uint32_t end = std::min(index_of(psn), std::max(sent, first));
  const std::uint32_t payload = payload_of(work.request.length, context_.mtu, first, end - first);
  if (!work.needs_response()) return payload + (end - first) * kPacketOverhead;
  settle_reads(psn, payload);
  return 0;
}

// `bytes` of READ responses came, up to `psn`.
void Requester::settle_reads(wire::Psn psn, std::uint32_t bytes) {
  while (!reads_in_flight_.empty()) {
    ReadInFlight& read = reads_in_flight_.front();
    const std::uint32_t part = std::min(bytes, read.bytes_left);
    read.bytes_left -= part;
    bytes -= part;
    context_.engine.reads.received(part);
    if (psn.is_before(read.end)) return;
    context_.engine.reads.received(read.bytes_left);
    reads_in_flight_.pop_front();
  }
}

// --- going back

void Requester::go_back() {
  if (peer_ && in_flight_bytes_ > 0) peer_->withdrawn(in_flight_bytes_);
  in_flight_bytes_ = 0;
  give_up_read_budget();
  reads_in_flight_.clear();
  timed_psn_.reset();
  bytes_since_ack_request_ = 0;
  move_cursor_to(una_psn_);
}

// What is not answered may never be: others need not wait for it.
void Requester::give_up_read_budget() {
  for (std::uint32_t i = 0; i < reads_in_flight_.size(); ++i) {
    context_.engine.reads.received(std::exchange(reads_in_flight_[i].bytes_left, 0));
  }
}

void Requester::move_cursor_to(wire::Psn psn) {
  send_psn_ = psn;
  position_is_current_ = false;
  cursor_packet_ = 0;
  for (cursor_ = queue_.oldest(); queue_.holds(cursor_); ++cursor_) {
    const Work& work = queue_.at(cursor_);
    if (!work.started() && !work.done) return;
    if (work.started() && psn.in_window(work.first_psn, work.packets)) {
      cursor_packet_ = static_cast<std::uint32_t>(psn.ahead_of(work.first_psn));
      return;
    }
  }
}

bool Requester::retry(Time now) {
  if (retries_ >= context_.attributes.retry_count) return false;
  ++retries_;
  resend(now);
  return true;
}

// Go-back-N asks again for all that is behind a loss: the more was asked for, the more is answered
// in vain. Half as much at the next time, and an eighth more in each round trip without a loss.
void Requester::shrink_read_window() {
  if (reads_in_flight_.empty()) return;
  const auto outstanding = static_cast<std::uint32_t>(send_psn_.ahead_of(una_psn_));
  read_window_eighths_ = std::max(4 * outstanding, 8 * kLeastReadWindow);
}

void Requester::resend(Time now) {
  shrink_read_window();
  if (peer_)
    peer_->lost(now, std::max(smoothed_round_trip_, context_.engine.options.min_probe_delay));
  go_back();
  went_back_to_ = una_psn_;
  probed_psn_.reset();
  asked_again_until_.reset();
  restart_timers(now);
}

bool Requester::wait_for_receiver(Time now, Duration delay) {
  constexpr std::uint8_t kForEver = 7;
  if (context_.attributes.rnr_retry != kForEver) {
    if (rnr_retries_ >= context_.attributes.rnr_retry) return false;
    ++rnr_retries_;
  }
  go_back();
  waits_for_receiver_ = true;
  receiver_ready_at_ = now + delay;
  ack_deadline_ = probe_deadline_ = kNever;
  return true;
}

// --- timers

Time Requester::deadline() const {
  if (waits_for_receiver_) return receiver_ready_at_;
  return std::min(ack_deadline_, probe_deadline_);
}

void Requester::handle_timer(Time now) {
  if (waits_for_receiver_) {
    if (now < receiver_ready_at_) return;
    waits_for_receiver_ = false;
    owner_.requester_has_output();
    return;
  }
  if (now >= ack_deadline_ && send_psn_ == una_psn_) {
    // Nothing that could be answered is on its way: it waits for room that others hold. It goes at
    // once now, and from then on retries count.
    go_back();
    went_back_to_ = una_psn_;
    restart_timers(now);
    owner_.requester_has_output();
  } else if (now >= ack_deadline_) {
    ++context_.engine.counters.timeouts;
    if (!retry(now)) {
      ++context_.engine.counters.retries_exceeded;
      explain_no_answer();
      fail_oldest(CompletionStatus::retry_exceeded, VendorError::no_answer);
    }
    owner_.requester_has_output();
  } else if (now >= probe_deadline_ && asked_again_until_ == una_psn_) {
    resend(now);
    owner_.requester_has_output();
  } else if (now >= probe_deadline_) {
    probes_ = static_cast<std::uint8_t>(std::min(probes_ + 1, kMaxBackoff));
    probe_is_due_ = true;
    probe_deadline_ = now + probe_delay();
    owner_.requester_has_output();
  }
}

void Requester::explain_no_answer() {
  context_.engine.explanations.add(
      "QP {:#x}: {} (QP {:#x}) did not answer within {} retries of {} to {} ms (timeout {}): is "
      "the peer alive, does UDP port 4791 reach it, and is nothing on the way that rewrites "
      "addresses (NAT)?",
      context_.qpn.value(), context_.path.destination.to_string(),
      context_.attributes.destination.value(), retries_,
      std::chrono::duration_cast<std::chrono::milliseconds>(ack_timeout()).count(),
      std::chrono::duration_cast<std::chrono::milliseconds>(longest_ack_timeout()).count(),
      context_.attributes.timeout);
}

void Requester::restart_timers(Time now) {
  ack_deadline_ = probe_deadline_ = kNever;
  if (una_psn_ == next_psn_) return;
  if (context_.attributes.timeout != 0)
    ack_deadline_ = now + std::min(ack_timeout() * (1 << retries_), longest_ack_timeout());
  probe_deadline_ = now + probe_delay();
}

void Requester::hear_busy_peer(Time now) {
  if (probe_deadline_ != kNever) probe_deadline_ = std::max(probe_deadline_, now + probe_delay());
}

// IBA C9-140.
Duration Requester::ack_timeout() const {
  const Duration asked{kTimeoutUnitNs << context_.attributes.timeout};
  return std::max(asked, context_.engine.options.min_ack_timeout);
}

Duration Requester::longest_ack_timeout() const {
  const Duration first = ack_timeout();
  return std::max(first, std::min(4 * first, context_.engine.options.max_stretched_ack_timeout));
}

Duration Requester::probe_delay() const {
  const DeviceOptions& options = context_.engine.options;
  const bool measured = smoothed_round_trip_ != Duration{};
  const Duration estimate =
      measured ? smoothed_round_trip_ + 4 * round_trip_variation_ : options.initial_probe_delay;
  const Duration delay = std::max(estimate, options.min_probe_delay) * (1 << probes_);
  return std::min(delay, options.max_probe_delay);
}

// RFC 6298, 2.2 and 2.3.
void Requester::measure(wire::Psn acknowledged, Time now) {
  if (!timed_psn_ || !timed_psn_->is_before(acknowledged)) return;
  timed_psn_.reset();
  const Duration sample = now - timed_since_;
  if (smoothed_round_trip_ == Duration{}) {
    smoothed_round_trip_ = sample;
    round_trip_variation_ = sample / 2;
    return;
  }
  const Duration difference =
      std::max(smoothed_round_trip_ - sample, sample - smoothed_round_trip_);
  round_trip_variation_ = (3 * round_trip_variation_ + difference) / 4;
  smoothed_round_trip_ = (7 * smoothed_round_trip_ + sample) / 8;
}

}  // namespace urxe::emulator
