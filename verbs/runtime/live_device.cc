#include "verbs/runtime/live_device.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include <sched.h>

namespace urxe::verbs {
namespace {

// Packets that one turn takes in before it sends: about two full socket reads.
constexpr std::size_t kReceiveBudget = 128;
// In a row, and without a packet: some microseconds, as long as a peer on another core takes.
constexpr std::uint32_t kIdlePollsBeforeYield = 16;

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
  device_.handle_packet(now, packet);
  if (device_.must_transmit_now()) transmit(now);
}

void LiveDevice::transmit(Time now) {
  while (device_.has_output()) {
    const wire::MutableBytes slot = fabric_->reserve();
    if (slot.empty()) break;
    const auto outbound = device_.poll_transmit(now, slot);
    if (!outbound) break;
    fabric_->commit(now, *outbound);
  }
  const bool was_full = fabric_is_full_;
  fabric_is_full_ = !fabric_->flush(now);
  if (fabric_is_full_ && !was_full) waker_.wake();  // somebody must wait until it can be written
}

std::size_t LiveDevice::move_packets(Time now) {
  const net::ReceiveResult received = fabric_->receive(now, *this, kReceiveBudget);
  if (now >= device_.next_deadline()) device_.handle_timer(now);
  if (device_.has_output() || fabric_is_full_) transmit(now);
  return received.packets;
}

void LiveDevice::drive() {
  const Time now = monotonic_now();
  last_polled_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  if (!mutex_.try_lock()) return;  // another thread moves the packets at this moment
  device_.flush_posted_receives();
  const bool idle = move_packets(now) == 0;
  publish();
  mutex_.unlock();
  give_way(idle);
}

// A program that polls for something that another process on this core is to do would wait for the
// end of its own time slice. On a core of its own, yielding costs a fraction of a microsecond.
void LiveDevice::give_way(bool idle) {
  const std::uint32_t before = idle_polls_.load(std::memory_order_relaxed);
  idle_polls_.store(idle ? before + 1 : 0, std::memory_order_relaxed);
  if (idle && before >= kIdlePollsBeforeYield) sched_yield();
}

std::size_t LiveDevice::serve() {
  const std::scoped_lock lock(mutex_);
  announced_ = kNever;  // it will ask for the deadline again
  const std::size_t packets = move_packets(monotonic_now());
  publish();
  return packets;
}

void LiveDevice::after_fork_in_child() {
  fabric_.reset();
  mutex_.unlock();
}

// --- what the lock's holder leaves behind

void LiveDevice::settle() {
  device_.flush_posted_receives();
  transmit(monotonic_now());
  publish();
  const Time deadline = next_deadline();
  if (deadline >= announced_) return;
  announced_ = deadline;
  waker_.arm(deadline);
}

void LiveDevice::publish() {
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
