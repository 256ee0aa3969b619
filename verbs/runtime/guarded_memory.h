// The program's own memory, reached in such a way that a page which is not there (any more) makes
// the call fail instead of ending the program.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <span>

#include "emulator/work.h"

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
};

// Thread-safe: holds nothing.
class GuardedMemory final : public emulator::ProgramMemory {
 public:
  bool read(std::uint64_t from, std::span<std::uint8_t> to) override;
  bool write(std::uint64_t to, std::span<const std::uint8_t> from) override;
  std::optional<std::uint64_t> compare_swap(std::uint64_t address, std::uint64_t compare,
                                            std::uint64_t swap) override;
  std::optional<std::uint64_t> fetch_add(std::uint64_t address, std::uint64_t add) override;
  bool store(std::uint64_t address, std::uint64_t value) override;
};

}  // namespace urxe::verbs
