#include "tests/support/skip.h"

#include <iostream>

namespace urxe::test {
namespace {

bool skipped = false;

}  // namespace

void skip(std::string_view reason) {
  std::cout << "SKIPPED: " << reason << std::endl;
  skipped = true;
}

bool was_skipped() { return skipped; }

}  // namespace urxe::test
