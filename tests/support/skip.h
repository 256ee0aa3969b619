// How a test says that it cannot run here.
#pragma once

#include <string_view>

namespace urxe::test {

// Prints what ctest takes for a skip (SKIP_REGULAR_EXPRESSION in tests/CMakeLists.txt); the test
// returns after it. A skip without a reason that a reader can act on is a defect.
void skip(std::string_view reason);

}  // namespace urxe::test
