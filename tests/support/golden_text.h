// Long results of tests as files of the tree.
#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <catch2/catch.hpp>

#include "tests/support/files.h"

namespace urxe::test {

// Compares line by line. The file begins with an introduction, up to its first empty line, that is
// written by hand. URXE_UPDATE_GOLDEN=1 writes the rest of it anew.
inline void check_golden_text(const std::string& path, const std::string& body) {
  const auto file = source_dir() / path;
  const std::string golden = read_file(file).value_or("");
  const std::size_t end = golden.find("\n\n");
  const std::string found =
      (end == std::string::npos ? "# Say what this is.\n\n" : golden.substr(0, end + 2)) + body;
  const char* const update = std::getenv("URXE_UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") std::ofstream(file) << found;
  std::istringstream expected_lines(golden);
  std::istringstream found_lines(found);
  for (std::string expected, line; std::getline(found_lines, line);) {
    std::getline(expected_lines, expected);
    CHECK(line == expected);
  }
  CHECK(found == golden);
}

}  // namespace urxe::test
