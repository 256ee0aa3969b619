// Telling the paths that may lead to our devices from all others.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>

namespace urxe::verbs {

// Whether this process has a private tree, into which descriptors and the working directory may
// point.
extern std::atomic<bool> tree_in_use;

[[nodiscard]] inline bool begins_with(const char* text, const char* word) {
  while (*word != '\0' && *text == *word) ++text, ++word;
  return *word == '\0';
}

// A word that is part of every absolute path that belongs_to_tree() (device_tree.h).
[[nodiscard]] inline bool has_marker(const char* path) {
  for (; *path != '\0'; ++path) {
    if (*path == 'i' && begins_with(path, "infiniband")) return true;
    if (*path == 'r' && begins_with(path, "rdma_cm")) return true;
    if (*path == 'u' && begins_with(path, "urxe")) return true;
  }
  return false;
}

// The same for relative paths. A program may have inherited a working directory in its parent's
// tree, where some directories are filled only for who asks for them by these names.
[[nodiscard]] inline bool has_relative_marker(const char* path) {
  for (const char* at = path; *at != '\0'; ++at) {
    if (*at == 'g' && begins_with(at, "gid")) return true;
    if (*at == 'c' && (begins_with(at, "counters") || begins_with(at, "cm_"))) return true;
  }
  return has_marker(path);
}

// False is certain, but for paths that go through symbolic links of the user's or begin with a
// detour
// ("/tmp/../sys"). A few instructions for nearly all absolute paths.
[[nodiscard]] inline bool may_concern(const char* path) {
  if (path == nullptr) return false;
  if (*path != '/') return tree_in_use.load(std::memory_order_relaxed) || has_relative_marker(path);
  while (*path == '/') ++path;
  const bool sys = path[0] == 's' && path[1] == 'y' && path[2] == 's';
  const bool dev = path[0] == 'd' && path[1] == 'e' && path[2] == 'v';
  return (sys || dev) && has_marker(path);
}

// An absolute path without empty and "." components. A slash at the end stays, because it matters
// to symbolic links.
[[nodiscard]] std::string tidy_path(std::string_view path);

// Where the first ".." of a tidy path begins: at its slash.
[[nodiscard]] std::optional<std::size_t> find_dot_dot(std::string_view path);

// Takes the last component off. The root stays.
[[nodiscard]] std::string parent_of(std::string_view path);

}  // namespace urxe::verbs
