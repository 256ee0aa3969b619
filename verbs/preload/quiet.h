// Leaving no trace in the calling thread.
#pragma once

#include <cerrno>

#include <pthread.h>

namespace urxe::verbs {

// While it lives the thread is not cancelled: we call many functions that are cancellation points
// where we could not bear it.
class NotCancelled {
 public:
  NotCancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;
  ~NotCancelled() { pthread_setcancelstate(state_, nullptr); }

 private:
  int state_ = 0;
};

// The same, and at its end errno is what it was.
class Quiet {
 public:
  Quiet() = default;
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
  ~Quiet() { errno = errno_; }

 private:
  NotCancelled not_cancelled_;
  const int errno_ = errno;
};

}  // namespace urxe::verbs
