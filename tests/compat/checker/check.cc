#include "tests/compat/checker/check.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <unistd.h>

namespace checker {
namespace {

std::string print(const char* format, va_list arguments) {
  std::array<char, 1024> line;
  std::vsnprintf(line.data(), line.size(), format, arguments);
  return line.data();
}

}  // namespace

std::string text(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string result = print(format, arguments);
  va_end(arguments);
  return result;
}

void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const std::string line = print(format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "FAILED: %s\n", line.c_str());
  std::fflush(nullptr);
  _exit(1);  // other threads may be anywhere
}

void succeeds(int error, const char* what) {
  if (error == 0) return;
  fail("%s: %s", what, std::strerror(error > 0 ? error : errno));
}

void fail_with_errno(const char* what) { fail("%s: %s", what, std::strerror(errno)); }

}  // namespace checker
