// Copies of the program's memory that may fail without ending the program.
#pragma once

#include <atomic>
#include <csignal>

// A function of which its callers know nothing but its type. clang, which builds the fuzzers only,
// has no such attribute.
#if __has_cpp_attribute(gnu::noipa)
#define URXE_OPAQUE [[gnu::noipa]]
#else
#define URXE_OPAQUE [[gnu::noinline]]
#endif

namespace urxe::verbs {

// Handlers for SIGSEGV and SIGBUS stand from the first arm() on. A fault within one of our own
// copies ends that copy; any other goes to the handler that was there before, or that the program
// set since (the preload layer hands us what it asks for), so that nobody notices us.
class FaultGuard {
 public:
  using Sigaction = int (*)(int, const struct sigaction*, struct sigaction*);

  // Once per process; later calls do nothing. `sigaction` is the C library's own. False if it
  // failed.
  static bool arm(Sigaction sigaction);
  [[nodiscard]] static bool armed();

  // What the program believes to be its handler of `signal`, SIGSEGV or SIGBUS. Used by the entry
  // points that stand in for sigaction and signal once the guard is armed.
  static void exchange_program_action(int signal, const struct sigaction* wanted,
                                      struct sigaction* previous);

  // Runs `access` on this thread; false if it touched memory that is not there. It must be made of
  // plain loads and stores: it is left by a jump, and no destructor runs. A thread that blocks
  // SIGSEGV or SIGBUS no longer does after its first call: a fault would end the program.
  template <typename Access>
  [[nodiscard]] [[gnu::noinline]] static bool run(Access access) {
    if (!thread_is_ready()) prepare_thread();
    JumpBuffer buffer;
    // Of an access that a signal stopped, whose handler makes this one.
    JumpBuffer* const volatile outer = way_out();
    if (__builtin_setjmp(buffer) != 0) {
      way_out() = outer;
      return false;
    }
    way_out() = &buffer;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    perform(access);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    way_out() = outer;
    return true;
  }

 private:
  using JumpBuffer = void* [5];  // __builtin_setjmp's

  // A jump can come back only from a call, as far as the compiler knows: where an access was a few
  // instructions, without a call, it left out the way back, and a fault began the access anew for
  // ever.
  template <typename Access>
  URXE_OPAQUE static void perform(Access& access) {
    access();
  }

  // Where the access in progress on this thread goes on if it faults.
  static JumpBuffer*& way_out();
  static bool& thread_is_ready();
  static void prepare_thread();
  static void on_fault(int signal, siginfo_t* info, void* context);
  static bool install(int signal);
};

}  // namespace urxe::verbs
