// The library's locks, and whether this thread is inside one.
#pragma once

#include <atomic>
#include <mutex>

namespace urxe::verbs {

// A mutex of which a thread knows whether it holds one. A signal's handler may call exit or fork,
// and programs do so, in a thread that the signal stopped inside the library: there the way out
// must not wait for what this very thread holds.
class OwnMutex {
 public:
  // Before the mutex is taken and after it is given back, so that a handler never finds it held
  // and unknown.
  void lock() {
    count(1);
    mutex_.lock();
  }
  bool try_lock() {
    count(1);
    const bool locked = mutex_.try_lock();
    if (!locked) count(-1);
    return locked;
  }
  void unlock() {
    mutex_.unlock();
    count(-1);
  }

  // Whether the calling thread holds any, or waits for one. Safe in a signal's handler.
  [[nodiscard]] static bool is_held_here() { return held_here != 0; }

 private:
  static void count(int step) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    held_here = held_here + step;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

  // Initial-exec: the library is loaded at start, and a signal's handler must not allocate TLS.
  static inline constinit thread_local int held_here [[gnu::tls_model("initial-exec")]] = 0;
  std::mutex mutex_;
};

}  // namespace urxe::verbs
