// Where tests find their files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace urxe::test {

// The root of the source tree.
[[nodiscard]] std::filesystem::path source_dir();

// Captures of real senders, which are not in the tree: the environment variable URXE_SHARED, else
// what CMake was given, else `shared` beside the source tree.
[[nodiscard]] std::filesystem::path shared_dir();

// The whole file; nothing if it cannot be read.
[[nodiscard]] std::optional<std::string> read_file(const std::filesystem::path& path);

}  // namespace urxe::test
