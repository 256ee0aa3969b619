#include "emulator/assert.h"

#include <cstdio>
#include <cstdlib>

namespace urxe {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "urxe: this should never happen: %s (%s:%d). Please report it.\n", condition,
               file, line);
  std::abort();
}

}  // namespace urxe
