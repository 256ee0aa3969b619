// Entry points for the handlers of memory faults, which are ours while a device is open.
#include <cerrno>
#include <csignal>

#include "verbs/preload/descriptor_table.h"
#include "verbs/preload/entry_points.h"
#include "verbs/preload/libc.h"
#include "verbs/preload/quiet.h"
#include "verbs/runtime/fault_guard.h"

namespace urxe::verbs {
namespace {

// A vfork child has its parent's memory, but handlers of its own: those are the kernel's affair.
bool is_guarded(int signal) {
  return (signal == SIGSEGV || signal == SIGBUS) && FaultGuard::armed() &&
         descriptors.is_own_process();
}

// signal(2) in its two flavours is sigaction with these flags.
[[gnu::noinline]] SignalHandler exchange(int signal, SignalHandler handler, int flags) {
  const Quiet quiet;
  struct sigaction wanted {};
  struct sigaction previous {};
  wanted.sa_handler = handler;
  wanted.sa_flags = flags;
  sigemptyset(&wanted.sa_mask);
  FaultGuard::exchange_program_action(signal, &wanted, &previous);
  return previous.sa_handler;
}

}  // namespace
}  // namespace urxe::verbs

using namespace urxe::verbs;

int on_sigaction(int signal, const struct sigaction* wanted, struct sigaction* previous) {
  if (!is_guarded(signal)) [[likely]]
    return libc::sigaction(signal, wanted, previous);
  const Quiet quiet;
  FaultGuard::exchange_program_action(signal, wanted, previous);
  return 0;
}

SignalHandler on_signal(int signal, SignalHandler handler) {
  if (!is_guarded(signal)) [[likely]]
    return libc::signal(signal, handler);
  return exchange(signal, handler, SA_RESTART);
}

SignalHandler on_sysv_signal(int signal, SignalHandler handler) {
  if (!is_guarded(signal)) [[likely]]
    return libc::sysv_signal(signal, handler);
  return exchange(signal, handler, static_cast<int>(SA_RESETHAND | SA_NODEFER));
}
