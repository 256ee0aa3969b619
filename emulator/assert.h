// Assertions for programmer errors, on in every build. Never for what a peer or a program sends.
#pragma once

namespace urxe {

// Says where and what on standard error, then aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace urxe

#define URXE_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::urxe::assertion_failed(#condition, __FILE__, __LINE__))
