// The main of every test executable. Its exit status is what ctest goes by: 1 if a check failed,
// kSkipStatus if none did but a test case could not run, else 0.
// Its handlers would replace the ones that tests of the fault guard are about.
#define CATCH_CONFIG_NO_POSIX_SIGNALS
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include "tests/support/skip.h"

int main(int argc, char** argv) {
  if (Catch::Session().run(argc, argv) != 0) return 1;
  return urxe::test::was_skipped() ? urxe::test::kSkipStatus : 0;
}
