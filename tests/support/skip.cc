#include "tests/support/skip.h"

#include <iostream>

namespace urxe::test {

void skip(std::string_view reason) { std::cout << "SKIPPED: " << reason << std::endl; }

}  // namespace urxe::test
