#include "verbs/runtime/guarded_memory.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include <unistd.h>

namespace urxe::verbs {
namespace {

// Where a copy in progress on this thread goes on if it faults. The buffer is __builtin_setjmp's.
// Initial-exec: the library is loaded at start, and a signal handler must not allocate TLS.
using JumpBuffer = void* [5];
__attribute__((tls_model("initial-exec"))) thread_local JumpBuffer* way_out = nullptr;

// Runs `access`; false if it touched memory that is not there.
template <typename Access>
[[gnu::noinline]] bool guarded(Access access) {
  JumpBuffer buffer;
  if (__builtin_setjmp(buffer) != 0) {
    way_out = nullptr;
    return false;
  }
  way_out = &buffer;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  access();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  way_out = nullptr;
  return true;
}

template <typename T>
T* pointer(std::uint64_t address) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}

// --- signals

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
  if (!detailed && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) {
    // A fault is never ignored. Restoring the default and returning runs into it again, so that the
    // core shows the true place; a signal that was sent is raised again.
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    real_sigaction(signal, &standard, nullptr);
    if (info->si_code <= 0) ::raise(signal);
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

void on_fault(int signal, siginfo_t* info, void* context) {
  const bool by_memory = info->si_code > 0;  // and not sent with kill
  if (JumpBuffer* buffer = way_out; buffer != nullptr && by_memory) {
    __builtin_longjmp(*buffer, 1);
  }
  const int saved = errno;
  pass_on(signal, info, context);
  errno = saved;
}

bool install(int signal) {
  struct sigaction ours {};
  ours.sa_sigaction = on_fault;
  // On the alternate stack, if the program has one: it may have it for stack overflows.
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&ours.sa_mask);
  return real_sigaction(signal, &ours, &program_action(signal)) == 0;
}

}  // namespace

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
  const std::scoped_lock lock(program_actions_mutex);
  struct sigaction& action = program_action(signal);
  if (previous != nullptr) *previous = action;
  if (wanted != nullptr) action = *wanted;
}

// --- memory

bool GuardedMemory::read(std::uint64_t from, std::span<std::uint8_t> to) {
  return guarded([&] { std::memcpy(to.data(), pointer<const void>(from), to.size()); });
}

bool GuardedMemory::write(std::uint64_t to, std::span<const std::uint8_t> from) {
  // Programs wait for the last byte of a WRITE by reading it, so it must show last.
  constexpr std::size_t kTail = 8;
  const std::size_t head = from.size() > kTail ? from.size() - kTail : 0;
  return guarded([&] {
    std::memcpy(pointer<void>(to), from.data(), head);
    std::atomic_thread_fence(std::memory_order_release);
    std::memcpy(pointer<void>(to + head), from.data() + head, from.size() - head);
  });
}

std::optional<std::uint64_t> GuardedMemory::compare_swap(std::uint64_t address,
                                                         std::uint64_t compare,
                                                         std::uint64_t swap) {
  std::uint64_t expected = compare;
  const bool there = guarded([&] {
    std::atomic_ref(*pointer<std::uint64_t>(address)).compare_exchange_strong(expected, swap);
  });
  return there ? std::optional(expected) : std::nullopt;
}

std::optional<std::uint64_t> GuardedMemory::fetch_add(std::uint64_t address, std::uint64_t add) {
  std::uint64_t old = 0;
  const bool there =
      guarded([&] { old = std::atomic_ref(*pointer<std::uint64_t>(address)).fetch_add(add); });
  return there ? std::optional(old) : std::nullopt;
}

bool GuardedMemory::store(std::uint64_t address, std::uint64_t value) {
  return guarded([&] { std::atomic_ref(*pointer<std::uint64_t>(address)).store(value); });
}

}  // namespace urxe::verbs
