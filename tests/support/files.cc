#include "tests/support/files.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace urxe::test {

std::filesystem::path source_dir() { return URXE_SOURCE_DIR; }

std::filesystem::path shared_dir() {
  const char* chosen = std::getenv("URXE_SHARED");
  return std::filesystem::path(chosen != nullptr ? chosen : URXE_SHARED).lexically_normal();
}

std::optional<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace urxe::test
