// Runs a fuzz target over a corpus without libFuzzer: replay_NAME DIRECTORY...
// Every file, and every prefix of a file, is one input.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace {

std::vector<std::uint8_t> read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void replay(const std::filesystem::path& path) {
  std::fprintf(stderr, "%s\n", path.c_str());  // the last line before a crash tells which
  const std::vector<std::uint8_t> input = read(path);
  for (std::size_t size = 0; size <= input.size(); ++size) {
    // A copy of its own, so that a sanitizer sees a read behind the end.
    const std::vector<std::uint8_t> prefix(input.begin(),
                                           input.begin() + static_cast<std::ptrdiff_t>(size));
    LLVMFuzzerTestOneInput(prefix.data(), prefix.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  int inputs = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      replay(entry.path());
      ++inputs;
    }
  }
  std::printf("%d inputs\n", inputs);
  return inputs > 0 ? 0 : 1;
}
