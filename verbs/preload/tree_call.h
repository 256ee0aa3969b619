// Calling a function of the C library with a path that may lead into the private tree.
#pragma once

#include <cerrno>
#include <optional>
#include <type_traits>

#include <fcntl.h>

#include "verbs/preload/guest.h"
#include "verbs/preload/path.h"
#include "verbs/preload/quiet.h"

namespace urxe::verbs {

template <typename Result>
[[nodiscard]] constexpr bool is_failure(Result result) {
  if constexpr (std::is_pointer_v<Result>) return result == nullptr;
  if constexpr (!std::is_pointer_v<Result>) return result == Result{-1};
}

// A relative path without a marker may lead to a file of the tree that is there only if somebody
// asks for it (a directory that is not filled yet) or that cannot be opened (a device node).
[[nodiscard]] inline bool may_need_help(int error) {
  return error == ENOENT || error == ENXIO || error == EACCES;
}

// Calls `native` with `path`, or, if the path leads into the tree, `call` with where it leads.
template <typename Native, typename Call>
[[gnu::noinline]] auto call_with_tree(int directory, const char* path, Native native, Call call)
    -> decltype(native(path)) {
  if (*path == '/' || has_relative_marker(path)) {
    const NotCancelled not_cancelled;
    if (const auto located = Guest::locate(directory, path)) return call(*located);
  }
  const auto result = native(path);
  const int error = errno;
  if (!is_failure(result) || *path == '/' || !may_need_help(error)) return result;
  const NotCancelled not_cancelled;
  if (const auto located = Guest::locate(directory, path)) return call(*located);
  errno = error;
  return result;
}

// The same where it makes no difference but the path.
template <typename Native>
auto with_path(int directory, const char* path, Native native) -> decltype(native(path)) {
  if (!may_concern(path)) [[likely]]
    return native(path);
  return call_with_tree(directory, path, native, [&](const Guest::Located& located) {
    return native(located.path.c_str());
  });
}

}  // namespace urxe::verbs
