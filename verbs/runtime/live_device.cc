#include "verbs/runtime/live_device.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include <sched.h>

#include "net/wire/opcode.h"

namespace urxe::verbs {
namespace {

// Packets that one turn takes in before it sends: about two full socket reads.
constexpr std::size_t kReceiveBudget = 128;
// Acknowledgements of a stream, and what they let pass, wait for each other up to so many packets:
// a quarter of the largest window.
constexpr std::size_t kMostUnanswered = 64;
// In a row, and without a packet: some microseconds, as long as a peer on another core takes.
constexpr std::uint32_t kIdlePollsBeforeYield = 16;
// In a row, while another thread moves the packets: longer than that takes, if it has a core.
constexpr std::uint32_t kVainPollsBeforeSleep = 512;

bool is_response(wire::Bytes packet) {
  const wire::OpcodeInfo* const info = packet.empty() ? nullptr : wire::find_opcode(packet.front());
  return info != nullptr && info->is_response();
}

}  // namespace

Time monotonic_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Time{std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec)};
}

LiveDevice::LiveDevice(const emulator::DeviceOptions& options, emulator::QpnRange qpns,
                       std::unique_ptr<net::Fabric> fabric, ProgressWaker& waker,
                       SentenceSink sentences)
    : device_(options, memory_, qpns),
      fabric_(std::move(fabric)),
      waker_(waker),
      sentences_(sentences) {
  device_.listen_to_sentences(sentences_ != nullptr);
}

// --- moving packets

void LiveDevice::on_packet(Time now, const wire::Inbound& packet) {
  turn_has_requests_ = turn_has_requests_ || !is_response(packet.bytes);
  device_.handle_packet(now, packet);
  if (device_.must_transmit_now()) collect(now);
}

void LiveDevice::collect(Time now) {
  device_.send_requests_first(is_watched_.load(std::memory_order_relaxed));
  while (device_.has_output()) {
    wire::MutableBytes slot = fabric_->reserve();
    if (slot.empty()) {  // what filled the fabric is on its way by now, perhaps
      holds_packets_ = true;
      flush(now);
      if (!fabric_is_full_) slot = fabric_->reserve();
    }
    if (slot.empty()) {
      holds_packets_ = true;  // the next move tries again
      return;
    }
    const auto outbound = device_.poll_transmit(now, slot);
    if (!outbound) return;
    fabric_->commit(now, *outbound);
    holds_packets_ = true;
  }
}

void LiveDevice::answer(Time now) {
  unanswered_ = 0;
  collect(now);
  flush(now);
}

void LiveDevice::flush(Time now) {
  if (!holds_packets_ && !fabric_is_full_) return;
  const bool was_full = fabric_is_full_;
  fabric_is_full_ = !fabric_->flush(now);
  holds_packets_ = false;
  if (fabric_is_full_ && !was_full) waker_.wake();  // somebody must wait until it can be written
}

LiveDevice::Turn LiveDevice::move_packets(Time now) {
  turn_has_requests_ = false;
  const net::ReceiveResult received = fabric_->receive(now, *this, kReceiveBudget);
  if (now >= device_.next_deadline()) device_.handle_timer(now);
  unanswered_ += received.packets;
  return {.packets = received.packets, .has_requests = turn_has_requests_};
}

void LiveDevice::drive() {
  const Time now = monotonic_now();
  last_polled_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  if (!mutex_.try_lock()) return give_way_to_mover();
  vain_polls_.store(0, std::memory_order_relaxed);
  users_.fetch_add(1, std::memory_order_relaxed);
  device_.flush_posted_receives();
  flush(now);
  // What the packets that come now give rise to, acknowledgements above all, leaves with the
  // program's next move, if it is watched.
  const std::size_t packets = move_packets(now).packets;
  if (packets == 0 || unanswered_ >= kMostUnanswered || !is_watched_.load()) answer(now);
  publish();
  unlock();
  give_way(packets == 0);
}

// A program that polls for something that another process on this core is to do would wait for the
// end of its own time slice. On a core of its own, yielding costs a fraction of a microsecond.
void LiveDevice::give_way(bool idle) {
  const std::uint32_t before = idle_polls_.load(std::memory_order_relaxed);
  idle_polls_.store(idle ? before + 1 : 0, std::memory_order_relaxed);
  if (idle && before >= kIdlePollsBeforeYield) sched_yield();
}

// Another thread moves the packets at this moment. If that takes long, it was interrupted and waits
// for this core; under valgrind, where one thread runs at a time, it gets its turn only from one
// that sleeps. Not by waiting for the lock: this may be a signal's handler, run by its holder.
void LiveDevice::give_way_to_mover() {
  const std::uint32_t before = vain_polls_.fetch_add(1, std::memory_order_relaxed);
  if (before < kVainPollsBeforeSleep) return give_way(true);
  constexpr timespec kShortest{.tv_sec = 0, .tv_nsec = 1};
  nanosleep(&kShortest, nullptr);
}

LiveDevice::Turn LiveDevice::serve(std::size_t hold_from) {
  const std::scoped_lock lock(mutex_);
  announced_ = kNever;  // it will ask for the deadline again
  const Time now = monotonic_now();
  Turn turn = move_packets(now);
  if (turn.packets < hold_from || unanswered_ >= kMostUnanswered) answer(now);
  turn.has_events = device_.has_events();
  publish();
  return turn;
}

void LiveDevice::raise(emulator::AsyncEventType event) {
  if (event == emulator::AsyncEventType::device_fatal) {
    report_removal();
  } else {
    access()->report(event);
  }
}

void LiveDevice::look_at_port() {
  if (port_ == nullptr) return;
  const PortFollower::Sight sight = port_->look();
  PortFollower::News news;
  {
    const auto device = access();
    news = port_->apply(sight, *device);
  }
  if (news.is_gone) report_removal();
  if (news.has_new_link_address) report_link_address();
}

std::vector<wire::IpAddress> LiveDevice::gids() {
  const std::scoped_lock lock(mutex_);
  return device_.gids().gids();
}

void LiveDevice::after_fork_in_child() {
  fabric_.reset();
  mutex_.unlock();
}

// --- what the lock's holder finds and leaves

void LiveDevice::lock(Haste haste) {
  users_.fetch_add(1, std::memory_order_relaxed);
  mutex_.lock();
  // A command may end what has acknowledgements to send: they were earned before it.
  if (haste == Haste::now && (unanswered_ > 0 || holds_packets_)) answer(monotonic_now());
}

void LiveDevice::settle(Haste haste) {
  device_.flush_posted_receives();
  const Time now = monotonic_now();
  if (haste == Haste::with_others) {
    last_posted_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  }
  // Deadlines are of what is on its way: its answer, or the next poll, takes along what waits
  // (RFC 896 has the idea).
  const bool may_wait = haste == Haste::with_others && is_watched_.load() &&
                        device_.next_deadline() != kNever && !fabric_is_full_;
  unanswered_ = 0;
  collect(now);
  if (!may_wait) flush(now);
  publish();
  const Time deadline = next_deadline();
  if (deadline >= announced_) return;
  announced_ = deadline;
  waker_.arm(deadline);
}

void LiveDevice::publish() {
  if (device_.cm().has_events()) {
    publish_cm_events();
    if (device_.has_output()) answer(monotonic_now());
  }
  if (listener_ != nullptr && device_.has_events()) {
    while (emulator::CompletionQueue* cq = device_.poll_completion_event()) {
      listener_->completion_event(*cq);
    }
    while (const auto event = device_.poll_async_event()) listener_->async_event(*event);
  }
  catch_up();
  if (sentences_ == nullptr) return;
  for (const std::string& sentence : device_.take_sentences()) sentences_(sentence);
}

// The progress thread waits for the descriptors that the listener found full.
void LiveDevice::catch_up() {
  if (listener_ == nullptr) return;
  const bool was_behind = std::exchange(listener_is_behind_, listener_->is_behind());
  if (!listener_is_behind_) return;
  listener_->catch_up();
  listener_is_behind_ = listener_->is_behind();
  if (listener_is_behind_ && !was_behind) waker_.wake();
}

Time LiveDevice::next_deadline() {
  return std::min(device_.next_deadline(), fabric_->next_deadline());
}

Time LiveDevice::deadline() {
  const std::scoped_lock lock(mutex_);
  return announced_ = next_deadline();
}

void LiveDevice::wait_for(std::vector<pollfd>& descriptors) {
  const std::scoped_lock lock(mutex_);
  fabric_->wait_for(descriptors);
  if (listener_ != nullptr) listener_->wait_for(descriptors);
}

}  // namespace urxe::verbs
