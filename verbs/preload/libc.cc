#include "verbs/preload/libc.h"

#include <array>

#include <dlfcn.h>

namespace urxe::verbs::libc {
namespace {

constexpr std::array<Symbol*, 67> kAll = {
    &open,
    &open64,
    &openat,
    &openat64,
    &open_2,
    &open64_2,
    &openat_2,
    &openat64_2,
    &fopen,
    &fopen64,
    &freopen,
    &freopen64,
    &opendir,
    &scandir,
    &scandir64,
    &glob,
    &glob64,
    &access,
    &eaccess,
    &euidaccess,
    &faccessat,
    &stat,
    &stat64,
    &lstat,
    &lstat64,
    &fstat,
    &fstat64,
    &fstatat,
    &fstatat64,
    &xstat,
    &xstat64,
    &lxstat,
    &lxstat64,
    &fxstat,
    &fxstat64,
    &fxstatat,
    &fxstatat64,
    &statx,
    &getxattr,
    &lgetxattr,
    &listxattr,
    &llistxattr,
    &readlink,
    &readlinkat,
    &readlink_chk,
    &readlinkat_chk,
    &realpath,
    &realpath_chk,
    &canonicalize_file_name,
    &chdir,
    &getcwd,
    &getcwd_chk,
    &get_current_dir_name,
    &write,
    &ioctl,
    &close,
    &close_range,
    &closefrom,
    &dup,
    &dup2,
    &dup3,
    &fcntl,
    &fcntl64,
    &socket,
    &sigaction,
    &signal,
    &sysv_signal,
};

}  // namespace

void Symbol::resolve_all() {
  const int saved_errno = errno;
  for (Symbol* symbol : kAll) {
    if (symbol->address_.load(std::memory_order_relaxed) != nullptr) continue;
    void* address = dlsym(RTLD_NEXT, symbol->name_);
    symbol->address_.store(address, std::memory_order_relaxed);
  }
  errno = saved_errno;
}

// The one that is wanted comes first: dlsym may allocate memory when it fails to find another, and
// a replaced malloc may open files.
void* Symbol::resolve() {
  const int saved_errno = errno;
  void* address = dlsym(RTLD_NEXT, name_);
  errno = saved_errno;
  if (address == nullptr) return nullptr;
  address_.store(address, std::memory_order_relaxed);
  resolve_all();
  return address;
}

}  // namespace urxe::verbs::libc
