// What the programs of this folder do when something is wrong: they say it and end.
#pragma once

#include <cstdarg>
#include <string>

namespace checker {

// Prints a line to standard error, in printf's format, and ends the process with status 1.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

// What printf would print.
[[nodiscard]] std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));

// For verbs that return 0 or an errno.
void succeeds(int error, const char* what);

// For verbs that return a pointer, or null with errno set.
template <typename T>
T* exists(T* pointer, const char* what);

[[noreturn]] void fail_with_errno(const char* what);

template <typename T>
T* exists(T* pointer, const char* what) {
  if (pointer == nullptr) fail_with_errno(what);
  return pointer;
}

}  // namespace checker
