// What a program does wrong, and what it is told: verbs_bad_input [--device NAME] [--gid INDEX].
// With URXE_LOG=info:FILE each case also wants its sentence in the file. Status 0: all was right.
#include <cstdlib>

#include "tests/compat/checker/bench.h"

int main(int argc, char** argv) {
  using namespace checker;
  const Options options = read_options(argc, argv);
  const char* log = std::getenv("URXE_LOG");
  const std::string value = log == nullptr ? "" : log;
  const std::size_t colon = value.find(':');
  Verdicts verdicts(colon == std::string::npos ? "" : value.substr(colon + 1));
  {
    const Device device(options);
    try_bad_commands(device, options, verdicts);
    try_bad_work(device, options, verdicts);
  }
  try_bad_ends(options, verdicts);
  return verdicts.failures() == 0 ? 0 : 1;
}
