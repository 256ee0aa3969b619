#include "verbs/runtime/progress_thread.h"

#include <algorithm>
#include <cerrno>
#include <csignal>

#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace urxe::verbs {
namespace {

using namespace std::chrono_literals;

// After so many wakes in a row for nothing, the polling program is left alone.
constexpr std::uint32_t kWastedWakesToYield = 4;
// Looks after a polling program first this often; the pause doubles while the polling goes on.
constexpr Duration kFirstTakeover = 50us;
constexpr Duration kLastTakeover = 1ms;

timespec to_timespec(Duration duration) {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(duration);
  return {.tv_sec = whole.count(), .tv_nsec = (duration - whole).count()};
}

}  // namespace

ProgressThread::~ProgressThread() { stop(); }

int ProgressThread::start() {
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (timer < 0) return errno;
  timer_.emplace(timer);
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) return errno;
  wake_.emplace(wake);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // Faults in a guarded copy: blocked, they would end the program.
  sigdelset(&all, SIGSEGV);
  sigdelset(&all, SIGBUS);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(&thread_, nullptr, &ProgressThread::entry, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  running_ = failed == 0;
  if (running_) pthread_setname_np(thread_, "urxe");
  return failed;
}

void ProgressThread::stop() {
  if (running_) {
    stopping_.store(true);
    wake();
    pthread_join(thread_, nullptr);
    running_ = false;
  }
  abandon();
}

void ProgressThread::abandon() {
  running_ = false;
  timer_.reset();
  wake_.reset();
}

void ProgressThread::add(std::shared_ptr<LiveDevice> device) {
  {
    const std::scoped_lock lock(mutex_);
    devices_.push_back(std::move(device));
  }
  wake();
}

void ProgressThread::remove(const LiveDevice& device) {
  std::unique_lock lock(mutex_);
  std::erase_if(devices_, [&](const auto& held) { return held.get() == &device; });
  const std::uint64_t erased_in = rounds_;
  wake();
  // The thread may still hold its list of that round.
  round_ended_.wait(lock, [&] { return rounds_ > erased_in || !running_; });
}

std::vector<std::shared_ptr<LiveDevice>> ProgressThread::devices() {
  const std::scoped_lock lock(mutex_);
  ++rounds_;
  round_ended_.notify_all();
  return devices_;
}

void ProgressThread::arm(Time deadline) {
  const std::scoped_lock lock(mutex_);
  if (deadline >= armed_) return;
  armed_ = deadline;
  itimerspec timer{};
  timer.it_value = to_timespec(std::max(deadline.time_since_epoch(), Duration{1}));
  timerfd_settime(timer_->number(), TFD_TIMER_ABSTIME, &timer, nullptr);
}

void ProgressThread::wake() {
  const std::uint64_t one = 1;
  // A full counter wakes too.
  [[maybe_unused]] const ssize_t written = ::write(wake_->number(), &one, sizeof(one));
}

void* ProgressThread::entry(void* self) {
  static_cast<ProgressThread*>(self)->run();
  return nullptr;
}

void ProgressThread::run() {
  takeover_ = kFirstTakeover;
  while (!stopping_.load()) {
    const auto held = devices();
    rearm(held);
    const bool by_socket = wait(held);
    serve(held, by_socket);
  }
}

void ProgressThread::rearm(const std::vector<std::shared_ptr<LiveDevice>>& held) {
  Time earliest = kNever;
  for (const auto& device : held) earliest = std::min(earliest, device->deadline());
  {
    const std::scoped_lock lock(mutex_);
    armed_ = kNever;
  }
  if (earliest != kNever) arm(earliest);
}

bool ProgressThread::is_polled(const std::vector<std::shared_ptr<LiveDevice>>& held, Time since) {
  return std::any_of(held.begin(), held.end(),
                     [since](const auto& device) { return device->last_polled() >= since; });
}

bool ProgressThread::wait(const std::vector<std::shared_ptr<LiveDevice>>& held) {
  descriptors_.assign({{.fd = wake_->number(), .events = POLLIN, .revents = 0},
                       {.fd = timer_->number(), .events = POLLIN, .revents = 0}});
  if (yields_) {
    const timespec pause = to_timespec(takeover_);
    ppoll(descriptors_.data(), 1, &pause, nullptr);
    clear_wake_descriptors();
    return false;
  }
  for (const auto& device : held) device->wait_for(descriptors_);
  ppoll(descriptors_.data(), descriptors_.size(), nullptr, nullptr);
  clear_wake_descriptors();
  return std::any_of(descriptors_.begin() + 2, descriptors_.end(),
                     [](const pollfd& descriptor) { return descriptor.revents != 0; });
}

void ProgressThread::clear_wake_descriptors() {
  std::uint64_t ignored = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    if ((descriptors_[i].revents & POLLIN) == 0) continue;
    [[maybe_unused]] const ssize_t got = ::read(descriptors_[i].fd, &ignored, sizeof(ignored));
  }
}

void ProgressThread::serve(const std::vector<std::shared_ptr<LiveDevice>>& held, bool by_socket) {
  const Time now = monotonic_now();
  if (yields_) {
    if (is_polled(held, now - takeover_)) {
      takeover_ = std::min(2 * takeover_, kLastTakeover);
      return;
    }
    yields_ = false;
    wasted_wakes_ = 0;
    takeover_ = kFirstTakeover;
  }
  std::size_t packets = 0;
  for (const auto& device : held) packets += device->serve();
  if (packets > 0) wasted_wakes_ = 0;
  if (packets == 0 && by_socket && is_polled(held, now - kFirstTakeover)) ++wasted_wakes_;
  yields_ = wasted_wakes_ >= kWastedWakesToYield;
}

}  // namespace urxe::verbs
