// Entry points that open files and directories.
#include <fcntl.h>

#include "verbs/preload/descriptor_table.h"
#include "verbs/preload/entry_points.h"
#include "verbs/preload/libc.h"
#include "verbs/preload/opened.h"
#include "verbs/preload/quiet.h"
#include "verbs/preload/tree_call.h"

namespace urxe::verbs {
namespace {

// These flags mean the node itself, or that it must not exist; the stand-in does for that.
constexpr int kNodeItself = O_PATH | O_DIRECTORY | O_EXCL;

int open_located(const Guest::Located& located, int flags, mode_t mode) {
  if (located.device && (flags & kNodeItself) == 0) {
    return Guest::open_device(*located.device, flags);
  }
  return libc::open(located.path.c_str(), flags, mode);
}

// The program came by itself to a file of the tree.
int use_opened(int fd, int flags) {
  if (fd < 0) return fd;
  const auto device = Guest::use(fd);
  if (!device || (flags & kNodeItself) != 0) return fd;
  libc::close(fd);
  return Guest::open_device(*device, flags);
}

template <typename Native>
[[gnu::noinline]] int open_in_tree(int directory, const char* path, int flags, mode_t mode,
                                   Native native) {
  const bool relative = *path != '/';
  return call_with_tree(
      directory, path,
      [&](const char* name) {
        const int fd = native(name);
        return relative && tree_in_use ? use_opened(fd, flags) : fd;
      },
      [&](const Guest::Located& located) { return open_located(located, flags, mode); });
}

template <typename Native>
int open_any(int directory, const char* path, int flags, mode_t mode, Native native) {
  if (may_concern(path)) [[unlikely]]
    return open_in_tree(directory, path, flags, mode, native);
  return opened(native(path));
}

template <typename Native>
FILE* open_stream(const char* path, Native native) {
  return with_path(AT_FDCWD, path, [&](const char* name) {
    FILE* const stream = native(name);
    if (stream != nullptr && tree_in_use) Guest::use(fileno(stream));
    return stream;
  });
}

// glob reads directories by functions of the C library's own, but lets the caller bring others.
template <typename Found, typename Native>
int glob_in_tree(const char* pattern, int flags, GlobError error, Found* found, Native native) {
  found->gl_opendir = [](const char* path) -> void* { return on_opendir(path); };
  found->gl_closedir = [](void* stream) { closedir(static_cast<DIR*>(stream)); };
  const int result = native(pattern, flags | GLOB_ALTDIRFUNC, error, found);
  found->gl_flags &= ~GLOB_ALTDIRFUNC;
  return result;
}

bool glob_needs_help(const char* pattern, int flags) {
  return may_concern(pattern) && (flags & GLOB_ALTDIRFUNC) == 0;
}

}  // namespace
}  // namespace urxe::verbs

using namespace urxe::verbs;

int on_open(const char* path, int flags, mode_t mode) {
  return open_any(AT_FDCWD, path, flags, mode,
                  [=](const char* name) { return libc::open(name, flags, mode); });
}

int on_open64(const char* path, int flags, mode_t mode) {
  return open_any(AT_FDCWD, path, flags, mode,
                  [=](const char* name) { return libc::open64(name, flags, mode); });
}

int on_openat(int dir, const char* path, int flags, mode_t mode) {
  return open_any(dir, path, flags, mode,
                  [=](const char* name) { return libc::openat(dir, name, flags, mode); });
}

int on_openat64(int dir, const char* path, int flags, mode_t mode) {
  return open_any(dir, path, flags, mode,
                  [=](const char* name) { return libc::openat64(dir, name, flags, mode); });
}

int on_open_2(const char* path, int flags) {
  return open_any(AT_FDCWD, path, flags, 0,
                  [=](const char* name) { return libc::open_2(name, flags); });
}

int on_open64_2(const char* path, int flags) {
  return open_any(AT_FDCWD, path, flags, 0,
                  [=](const char* name) { return libc::open64_2(name, flags); });
}

int on_openat_2(int dir, const char* path, int flags) {
  return open_any(dir, path, flags, 0,
                  [=](const char* name) { return libc::openat_2(dir, name, flags); });
}

int on_openat64_2(int dir, const char* path, int flags) {
  return open_any(dir, path, flags, 0,
                  [=](const char* name) { return libc::openat64_2(dir, name, flags); });
}

FILE* on_fopen(const char* path, const char* mode) {
  return open_stream(path, [=](const char* name) { return libc::fopen(name, mode); });
}

FILE* on_fopen64(const char* path, const char* mode) {
  return open_stream(path, [=](const char* name) { return libc::fopen64(name, mode); });
}

FILE* on_freopen(const char* path, const char* mode, FILE* file) {
  return open_stream(path, [=](const char* name) { return libc::freopen(name, mode, file); });
}

FILE* on_freopen64(const char* path, const char* mode, FILE* file) {
  return open_stream(path, [=](const char* name) { return libc::freopen64(name, mode, file); });
}

DIR* on_opendir(const char* path) {
  return with_path(AT_FDCWD, path, [](const char* name) {
    DIR* const stream = libc::opendir(name);
    if (stream != nullptr && tree_in_use) Guest::use(dirfd(stream));
    return stream;
  });
}

int on_scandir(const char* path, dirent*** list, ScanFilter filter, ScanOrder order) {
  return with_path(AT_FDCWD, path,
                   [=](const char* name) { return libc::scandir(name, list, filter, order); });
}

int on_scandir64(const char* path, dirent64*** list, ScanFilter64 filter, ScanOrder64 order) {
  return with_path(AT_FDCWD, path,
                   [=](const char* name) { return libc::scandir64(name, list, filter, order); });
}

int on_glob(const char* pattern, int flags, GlobError error, glob_t* found) {
  if (!glob_needs_help(pattern, flags)) return libc::glob(pattern, flags, error, found);
  found->gl_readdir = [](void* stream) { return readdir(static_cast<DIR*>(stream)); };
  found->gl_lstat = &on_lstat;
  found->gl_stat = &on_stat;
  return glob_in_tree(pattern, flags, error, found,
                      [](auto... arguments) { return libc::glob(arguments...); });
}

int on_glob64(const char* pattern, int flags, GlobError error, glob64_t* found) {
  if (!glob_needs_help(pattern, flags)) return libc::glob64(pattern, flags, error, found);
  found->gl_readdir = [](void* stream) { return readdir64(static_cast<DIR*>(stream)); };
  found->gl_lstat = &on_lstat64;
  found->gl_stat = &on_stat64;
  return glob_in_tree(pattern, flags, error, found,
                      [](auto... arguments) { return libc::glob64(arguments...); });
}
