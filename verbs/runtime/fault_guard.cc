#include "verbs/runtime/fault_guard.h"

#include <cerrno>
#include <mutex>

#include <pthread.h>

namespace urxe::verbs {
namespace {

std::atomic<bool> is_armed{false};
FaultGuard::Sigaction real_sigaction = nullptr;
std::mutex program_actions_mutex;
// What the program set, or had when the guard was armed. Read by the handler without the lock, like
// the kernel would: a handler that is being changed may run in either version.
struct sigaction program_segv;
struct sigaction program_bus;

struct sigaction& program_action(int signal) {
  return signal == SIGSEGV ? program_segv : program_bus;
}

// Does what would have happened without us.
void pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction action = program_action(signal);
  const bool detailed = (action.sa_flags & SA_SIGINFO) != 0;
  const bool was_sent = info->si_code <= 0;
  if (!detailed && action.sa_handler == SIG_IGN && was_sent) return;
  if (!detailed && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) {
    // A fault is never ignored. Restoring the default and returning runs into it again, so that the
    // core shows the true place; a signal that was sent is raised again.
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    real_sigaction(signal, &standard, nullptr);
    if (was_sent) ::raise(signal);
    return;
  }
  if ((action.sa_flags & SA_RESETHAND) != 0) program_action(signal).sa_handler = SIG_DFL;
  sigset_t before;
  sigset_t during = action.sa_mask;
  if ((action.sa_flags & SA_NODEFER) == 0) sigaddset(&during, signal);
  pthread_sigmask(SIG_BLOCK, &during, &before);
  if (detailed) {
    action.sa_sigaction(signal, info, context);
  } else {
    action.sa_handler(signal);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

// Initial-exec: the library is loaded at start, and a signal handler must not allocate TLS.
FaultGuard::JumpBuffer*& FaultGuard::way_out() {
  static thread_local JumpBuffer* place [[gnu::tls_model("initial-exec")]] = nullptr;
  return place;
}

bool& FaultGuard::thread_is_ready() {
  static thread_local bool is_ready [[gnu::tls_model("initial-exec")]] = false;
  return is_ready;
}

void FaultGuard::prepare_thread() {
  sigset_t faults;
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  sigaddset(&faults, SIGBUS);
  pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
  thread_is_ready() = true;
}

void FaultGuard::on_fault(int signal, siginfo_t* info, void* context) {
  const bool by_memory = info->si_code > 0;  // and not sent with kill
  if (JumpBuffer* buffer = way_out(); buffer != nullptr && by_memory) {
    __builtin_longjmp(*buffer, 1);
  }
  const int saved = errno;
  pass_on(signal, info, context);
  errno = saved;
}

bool FaultGuard::install(int signal) {
  struct sigaction ours {};
  ours.sa_sigaction = on_fault;
  // On the alternate stack, if the program has one: it may have it for stack overflows.
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&ours.sa_mask);
  return real_sigaction(signal, &ours, &program_action(signal)) == 0;
}

bool FaultGuard::armed() { return is_armed.load(std::memory_order_acquire); }

bool FaultGuard::arm(Sigaction sigaction) {
  const std::scoped_lock lock(program_actions_mutex);
  if (armed()) return true;
  real_sigaction = sigaction;
  if (!install(SIGSEGV) || !install(SIGBUS)) return false;
  is_armed.store(true, std::memory_order_release);
  return true;
}

void FaultGuard::exchange_program_action(int signal, const struct sigaction* wanted,
                                         struct sigaction* previous) {
  // Out of the program's memory before the lock is taken, into it after: a fault there runs a
  // handler, and handlers set handlers. So may any other that comes while the lock is held.
  struct sigaction next {};
  if (wanted != nullptr) next = *wanted;
  struct sigaction before;
  {
    const AllSignalsBlocked blocked;
    const std::scoped_lock lock(program_actions_mutex);
    struct sigaction& action = program_action(signal);
    before = action;
    if (wanted != nullptr) action = next;
  }
  if (previous != nullptr) *previous = before;
}

}  // namespace urxe::verbs
