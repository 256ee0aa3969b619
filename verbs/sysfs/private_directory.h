// A directory that belongs to one process and vanishes with it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "verbs/preload/private_descriptor.h"

namespace urxe::verbs {

// Where private directories may be made, best first: /dev/shm, $XDG_RUNTIME_DIR, $TMPDIR, /tmp.
[[nodiscard]] std::vector<std::string> private_directory_bases();

// If `path` leads into some process's private directory, the path inside it ("/sys/…"), else empty.
// Only the text counts: it may be another process's, dead or alive.
[[nodiscard]] std::string_view inside_private_directory(std::string_view path);

// A new directory of mode 0700, locked (flock) for as long as a process holds its descriptor. The
// lock is how others see that it is in use: leftovers of processes that were killed have none, and
// whoever next makes a directory in the same place removes them.
//
// Owner: the process that made it removes it; a forked child only lets go.
class PrivateDirectory {
 public:
  // In the first of `bases` that works. The error is the errno of the last.
  static tl::expected<std::unique_ptr<PrivateDirectory>, int> create(
      const std::vector<std::string>& bases);
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;
  ~PrivateDirectory();

  [[nodiscard]] const std::string& path() const { return path_; }
  // The open, locked directory.
  [[nodiscard]] int descriptor() const { return descriptor_.number(); }
  // Whether this process, as it is now (removed by its parent, another user id, another root
  // directory), still reaches it.
  [[nodiscard]] bool is_reachable() const;

 private:
  PrivateDirectory(std::string path, int descriptor);

  std::string path_;
  PrivateDescriptor descriptor_;
  int owner_;  // process id
};

}  // namespace urxe::verbs
