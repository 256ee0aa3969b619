// How a test says that it cannot run here.
#pragma once

#include <string_view>

namespace urxe::test {

// The exit status of a test that was skipped (SKIP_RETURN_CODE in tests/CMakeLists.txt).
inline constexpr int kSkipStatus = 77;

// Prints the reason; the test case returns after it. ctest shows the test case as skipped, and
// tools/test shows the reason. A reason that a reader can do nothing about is a defect.
void skip(std::string_view reason);

[[nodiscard]] bool was_skipped();

}  // namespace urxe::test
