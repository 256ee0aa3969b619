#include "verbs/runtime/progress_thread.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>

#include <fmt/core.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "verbs/runtime/log.h"

namespace urxe::verbs {
namespace {

using namespace std::chrono_literals;

// After so many wakes in a row while the program polled it is left alone.
constexpr std::uint32_t kDisturbancesToYield = 4;
// Looks after a polling program first this often; the pause doubles while the polling goes on.
constexpr Duration kFirstTakeover = 50us;
constexpr Duration kLastTakeover = 200us;
// So long it may take from when this thread is woken until it runs, on a virtual machine. The
// program whose core it took has not polled since.
constexpr Duration kLongestWake = 200us;
// A turn with so many packets is of a stream: more will come, and to sleep and be woken costs both
// ends more than to look again for a while. Not after fewer: who waits for one message, and looks
// at memory meanwhile, may need this core.
constexpr std::size_t kStreamPackets = 8;
constexpr std::size_t kHoldNothing = SIZE_MAX;
// It looks longer the more often that brought something.
constexpr Duration kShortestLinger = 2us;
constexpr Duration kFirstLinger = 20us;
constexpr Duration kMostLinger = 50us;
constexpr Duration kLongestLinger = 1ms;  // then it looks after the rest of its duties

// Where what is always waited for stands among the descriptors. All but the timer also while a
// polling program is left alone.
enum : std::size_t { kWake, kLinks, kControl, kTimer, kFixed };
constexpr nfds_t kWhileYielding = kTimer;

timespec to_timespec(Duration duration) {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(duration);
  return {.tv_sec = whole.count(), .tv_nsec = (duration - whole).count()};
}

// The shortest slice that the scheduler grants (sched_setattr(2); kernels before 6.12 grant none).
constexpr std::uint64_t kSlice = std::chrono::nanoseconds{100us}.count();
constexpr std::int32_t kNicer = 10;
constexpr std::int32_t kLeastNice = -20;

// struct sched_attr of linux/sched/types.h, which this glibc's headers do not bear beside them.
struct SchedAttr {
  std::uint32_t size;
  std::uint32_t policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime;  // ns
  std::uint64_t deadline;
  std::uint64_t period;
};
static_assert(sizeof(SchedAttr) == 48);  // SCHED_ATTR_SIZE_VER0

// This thread works for microseconds at a time, often on a core whose program waits by looking at
// memory. As the program's equal it would get its turn, for every other packet, only at the
// scheduler's next tick, milliseconds later: woken again so soon after its last turn it has no
// claim yet. Kernels do this work in interrupts. It asks for short slices, and where a process may
// (CAP_SYS_NICE, RLIMIT_NICE) for more weight.
void ask_to_run_at_once() {
  SchedAttr attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;  // the user's own choice
  const std::int32_t nice = attributes.nice;
  attributes.runtime = kSlice;
  attributes.nice = std::max(nice - kNicer, kLeastNice);
  if (syscall(SYS_sched_setattr, 0, &attributes, 0) == 0) return;
  attributes.nice = nice;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
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
  if (const int failed = links_.open(); failed != 0) {
    log(LogLevel::info,
        fmt::format("ports will not follow their interfaces: {}", std::strerror(failed)));
  }
  if (const int failed = control_.open(); failed != 0) {
    log(LogLevel::info, fmt::format("urxe event will not work here: {}", std::strerror(failed)));
  }
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
  links_.close();
  control_.close();
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
  ask_to_run_at_once();
  takeover_ = kFirstTakeover;
  linger_ = kFirstLinger;
  while (!stopping_.load()) {
    const auto held = devices();
    if (!yields_) rearm(held);  // else the program's moves see to it
    const bool by_socket = wait(held);
    follow_links(held);
    serve_requests(held);
    serve(held, by_socket);
  }
}

// A timer that fires too early costs less than one that is set again for every packet.
void ProgressThread::rearm(const std::vector<std::shared_ptr<LiveDevice>>& held) {
  Time earliest = kNever;
  for (const auto& device : held) earliest = std::min(earliest, device->deadline());
  arm(earliest);
}

bool ProgressThread::is_polled(const std::vector<std::shared_ptr<LiveDevice>>& held, Time since) {
  return std::any_of(held.begin(), held.end(),
                     [since](const auto& device) { return device->last_polled() >= since; });
}

bool ProgressThread::is_moved_by_program(const std::vector<std::shared_ptr<LiveDevice>>& held,
                                         Time now) {
  const Time recently = now - kFirstTakeover;
  return std::any_of(held.begin(), held.end(), [recently](const auto& device) {
    return device->is_in_use() || device->last_polled() >= recently ||
           device->last_posted() >= recently;
  });
}

bool ProgressThread::wait(const std::vector<std::shared_ptr<LiveDevice>>& held) {
  descriptors_.assign({{.fd = wake_->number(), .events = POLLIN, .revents = 0},
                       {.fd = links_.descriptor(), .events = POLLIN, .revents = 0},
                       {.fd = control_.descriptor(), .events = POLLIN, .revents = 0},
                       {.fd = timer_->number(), .events = POLLIN, .revents = 0}});
  if (yields_) {
    const timespec pause = to_timespec(takeover_);
    look_due_ = monotonic_now() + takeover_;
    ppoll(descriptors_.data(), kWhileYielding, &pause, nullptr);
    clear_wake_descriptors();
    return false;
  }
  for (const auto& device : held) device->wait_for(descriptors_);
  ppoll(descriptors_.data(), descriptors_.size(), nullptr, nullptr);
  clear_wake_descriptors();
  return std::any_of(descriptors_.begin() + kFixed, descriptors_.end(),
                     [](const pollfd& descriptor) { return descriptor.revents != 0; });
}

void ProgressThread::clear_wake_descriptors() {
  const auto clear = [](const pollfd& descriptor) {
    std::uint64_t ignored = 0;
    if ((descriptor.revents & POLLIN) == 0) return;
    [[maybe_unused]] const ssize_t got = ::read(descriptor.fd, &ignored, sizeof(ignored));
  };
  clear(descriptors_[kWake]);
  if (descriptors_[kTimer].revents == 0) return;
  const std::scoped_lock lock(mutex_);  // or the next time that it is armed for is lost
  clear(descriptors_[kTimer]);
  armed_ = kNever;
}

void ProgressThread::serve_requests(const std::vector<std::shared_ptr<LiveDevice>>& held) {
  if (descriptors_[kControl].revents == 0) return;
  control_.serve([&](std::string_view name, emulator::AsyncEventType event) {
    const auto found = std::find_if(held.begin(), held.end(),
                                    [&](const auto& device) { return device->has_name(name); });
    std::function<void()> raise;
    if (found != held.end()) raise = [device = *found, event] { device->raise(event); };
    return raise;
  });
}

void ProgressThread::follow_links(const std::vector<std::shared_ptr<LiveDevice>>& held) {
  if (descriptors_[kLinks].revents == 0 || !links_.take_changes()) return;
  for (const auto& device : held) device->look_at_port();
}

LiveDevice::Turn ProgressThread::serve_once(const std::vector<std::shared_ptr<LiveDevice>>& held,
                                            std::size_t hold_from) {
  LiveDevice::Turn sum;
  for (const auto& device : held) {
    const LiveDevice::Turn turn = device->serve(hold_from);
    sum.packets += turn.packets;
    sum.has_requests = sum.has_requests || turn.has_requests;
    sum.has_events = sum.has_events || turn.has_events;
  }
  return sum;
}

void ProgressThread::linger(const std::vector<std::shared_ptr<LiveDevice>>& held, Time since) {
  Time now = monotonic_now();
  Time last_packet = now;
  bool brought = false;
  while (now < last_packet + linger_ && now < since + kLongestLinger &&
         !is_moved_by_program(held, now)) {
    const bool came = serve_once(held, 1).packets > 0;
    now = monotonic_now();
    if (came) last_packet = now;
    brought = brought || came;
  }
  linger_ = brought ? std::min(2 * linger_, kMostLinger) : std::max(linger_ / 2, kShortestLinger);
  serve_once(held, kHoldNothing);
}

void ProgressThread::serve(const std::vector<std::shared_ptr<LiveDevice>>& held, bool by_socket) {
  const Time now = monotonic_now();
  if (yields_ && watch(held, std::min(now, look_due_))) return;
  if (yields_) set_yields(held, false);
  const LiveDevice::Turn turn = serve_once(held, kStreamPackets);
  if (turn.packets >= kStreamPackets) linger(held, now);
  // Whoever took the packets this time: a program that polls is better without this thread, if it
  // does not sleep. One that posts looks for completions soon. But requests may be what a program
  // waits for that looks at memory.
  const bool is_disturbed =
      !turn.has_events && (is_polled(held, now - kFirstTakeover - kLongestWake) ||
                           (!turn.has_requests && is_moved_by_program(held, now)));
  if (by_socket) disturbances_ = is_disturbed ? disturbances_ + 1 : 0;
  if (disturbances_ >= kDisturbancesToYield) set_yields(held, true);
}

// Looks whether the program still moved its packets at `then`, when this thread was woken, and
// after devices for which it did not. False if it has stopped.
bool ProgressThread::watch(const std::vector<std::shared_ptr<LiveDevice>>& held, Time then) {
  if (!is_moved_by_program(held, then)) return false;
  takeover_ = std::min(2 * takeover_, kLastTakeover);
  bool has_requests = false;
  for (const auto& device : held) {
    if (!device->is_in_use() && device->last_polled() < then - kFirstTakeover) {
      has_requests = device->serve(kHoldNothing).has_requests || has_requests;
    }
  }
  return !has_requests;
}

void ProgressThread::set_yields(const std::vector<std::shared_ptr<LiveDevice>>& held, bool yields) {
  yields_ = yields;
  disturbances_ = 0;
  takeover_ = kFirstTakeover;
  for (const auto& device : held) device->set_watched(yields);
}

}  // namespace urxe::verbs
