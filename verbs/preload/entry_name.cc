// Entry points that take or give names of files. The names that they give never show where the
// private tree is.
#include <algorithm>
#include <cstring>
#include <string_view>

#include <fcntl.h>

#include "verbs/preload/entry_points.h"
#include "verbs/preload/libc.h"
#include "verbs/preload/tree_call.h"
#include "verbs/sysfs/private_directory.h"

namespace urxe::verbs {
namespace {

// Takes the tree's place off the beginning of a name that the C library gave.
char* outside(char* name) {
  if (name == nullptr) [[unlikely]]
    return name;
  const std::string_view inside = inside_private_directory(name);
  if (!inside.empty()) [[unlikely]]
    std::memmove(name, inside.data(), inside.size() + 1);
  return name;
}

// The same for a name without a zero at its end. One that `size` cut short stays as it is.
ssize_t outside(ssize_t length, char* name) {
  if (length <= 0) [[unlikely]]
    return length;
  const std::string_view inside =
      inside_private_directory({name, static_cast<std::size_t>(length)});
  if (inside.empty()) [[likely]]
    return length;
  std::memmove(name, inside.data(), inside.size());
  return static_cast<ssize_t>(inside.size());
}

}  // namespace
}  // namespace urxe::verbs

using namespace urxe::verbs;

int on_access(const char* path, int mode) {
  return with_path(AT_FDCWD, path, [=](const char* name) { return libc::access(name, mode); });
}

int on_eaccess(const char* path, int mode) {
  return with_path(AT_FDCWD, path, [=](const char* name) { return libc::eaccess(name, mode); });
}

int on_euidaccess(const char* path, int mode) {
  return with_path(AT_FDCWD, path, [=](const char* name) { return libc::euidaccess(name, mode); });
}

int on_faccessat(int dir, const char* path, int mode, int flags) {
  return with_path(dir, path,
                   [=](const char* name) { return libc::faccessat(dir, name, mode, flags); });
}

ssize_t on_getxattr(const char* path, const char* name, void* value, std::size_t size) {
  return with_path(AT_FDCWD, path,
                   [=](const char* file) { return libc::getxattr(file, name, value, size); });
}

ssize_t on_lgetxattr(const char* path, const char* name, void* value, std::size_t size) {
  return with_path(AT_FDCWD, path,
                   [=](const char* file) { return libc::lgetxattr(file, name, value, size); });
}

ssize_t on_listxattr(const char* path, char* list, std::size_t size) {
  return with_path(AT_FDCWD, path,
                   [=](const char* file) { return libc::listxattr(file, list, size); });
}

ssize_t on_llistxattr(const char* path, char* list, std::size_t size) {
  return with_path(AT_FDCWD, path,
                   [=](const char* file) { return libc::llistxattr(file, list, size); });
}

ssize_t on_readlink(const char* path, char* target, std::size_t size) {
  return outside(with_path(AT_FDCWD, path,
                           [=](const char* name) { return libc::readlink(name, target, size); }),
                 target);
}

ssize_t on_readlinkat(int dir, const char* path, char* target, std::size_t size) {
  return outside(
      with_path(dir, path,
                [=](const char* name) { return libc::readlinkat(dir, name, target, size); }),
      target);
}

ssize_t on_readlink_chk(const char* path, char* target, std::size_t size, std::size_t room) {
  return outside(
      with_path(AT_FDCWD, path,
                [=](const char* name) { return libc::readlink_chk(name, target, size, room); }),
      target);
}

ssize_t on_readlinkat_chk(int dir, const char* path, char* target, std::size_t size,
                          std::size_t room) {
  return outside(with_path(dir, path,
                           [=](const char* name) {
                             return libc::readlinkat_chk(dir, name, target, size, room);
                           }),
                 target);
}

char* on_realpath(const char* path, char* resolved) {
  return outside(
      with_path(AT_FDCWD, path, [=](const char* name) { return libc::realpath(name, resolved); }));
}

char* on_realpath_chk(const char* path, char* resolved, std::size_t room) {
  return outside(with_path(
      AT_FDCWD, path, [=](const char* name) { return libc::realpath_chk(name, resolved, room); }));
}

char* on_canonicalize_file_name(const char* path) {
  return outside(with_path(AT_FDCWD, path,
                           [](const char* name) { return libc::canonicalize_file_name(name); }));
}

int on_chdir(const char* path) {
  return with_path(AT_FDCWD, path, [](const char* name) {
    const int result = libc::chdir(name);
    if (result == 0 && tree_in_use) Guest::use_working_directory();
    return result;
  });
}

char* on_getcwd(char* buffer, std::size_t size) { return outside(libc::getcwd(buffer, size)); }

char* on_getcwd_chk(char* buffer, std::size_t size, std::size_t room) {
  return outside(libc::getcwd_chk(buffer, size, room));
}

char* on_get_current_dir_name() { return outside(libc::get_current_dir_name()); }
