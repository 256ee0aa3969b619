// The functions that the program would call if we were not there: the next definitions of our own
// entry points in the program's search order, usually the C library's.
#pragma once

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <type_traits>

#include <dirent.h>
#include <glob.h>
#include <sys/stat.h>
#include <sys/types.h>

namespace urxe::verbs::libc {

// Looks all of them up, at the first use of any: at no time does loading us cost a program
// anything, and later uses, perhaps in a signal handler or between fork and exec, find them there.
class Symbol {
 public:
  constexpr explicit Symbol(const char* name) : name_(name) {}

  static void resolve_all();

 protected:
  [[nodiscard]] void* resolve();

  const char* const name_;
  std::atomic<void*> address_{nullptr};
};

template <typename Signature>
class Function;

// Variadic functions (open, fcntl, ioctl) are declared with the arguments that they can have at
// most: on the platforms that we support these are passed alike.
template <typename R, typename... Arguments>
class Function<R(Arguments...)> : public Symbol {
 public:
  using Symbol::Symbol;

  R operator()(Arguments... arguments) {
    void* address = address_.load(std::memory_order_relaxed);
    if (address == nullptr) [[unlikely]] {
      address = resolve();
      if (address == nullptr) return missing();
    }
    return reinterpret_cast<R (*)(Arguments...)>(address)(arguments...);
  }

 private:
  // This C library is too old to have it, and then the program does not call it either.
  static R missing() {
    errno = ENOSYS;
    if constexpr (std::is_pointer_v<R>) return nullptr;
    if constexpr (std::is_integral_v<R>) return R{-1};
  }
};

using SignalHandler = void (*)(int);

// Opening.
inline constinit Function<int(const char*, int, mode_t)> open{"open"};
inline constinit Function<int(const char*, int, mode_t)> open64{"open64"};
inline constinit Function<int(int, const char*, int, mode_t)> openat{"openat"};
inline constinit Function<int(int, const char*, int, mode_t)> openat64{"openat64"};
inline constinit Function<int(const char*, int)> open_2{"__open_2"};
inline constinit Function<int(const char*, int)> open64_2{"__open64_2"};
inline constinit Function<int(int, const char*, int)> openat_2{"__openat_2"};
inline constinit Function<int(int, const char*, int)> openat64_2{"__openat64_2"};
inline constinit Function<FILE*(const char*, const char*)> fopen{"fopen"};
inline constinit Function<FILE*(const char*, const char*)> fopen64{"fopen64"};
inline constinit Function<FILE*(const char*, const char*, FILE*)> freopen{"freopen"};
inline constinit Function<FILE*(const char*, const char*, FILE*)> freopen64{"freopen64"};
inline constinit Function<DIR*(const char*)> opendir{"opendir"};
using Scan = int(const char*, dirent***, int (*)(const dirent*),
                 int (*)(const dirent**, const dirent**));
using Scan64 = int(const char*, dirent64***, int (*)(const dirent64*),
                   int (*)(const dirent64**, const dirent64**));
inline constinit Function<Scan> scandir{"scandir"};
inline constinit Function<Scan64> scandir64{"scandir64"};
using Glob = int(const char*, int, int (*)(const char*, int), glob_t*);
using Glob64 = int(const char*, int, int (*)(const char*, int), glob64_t*);
inline constinit Function<Glob> glob{"glob"};
inline constinit Function<Glob64> glob64{"glob64"};

// Asking about a file.
inline constinit Function<int(const char*, int)> access{"access"};
inline constinit Function<int(const char*, int)> eaccess{"eaccess"};
inline constinit Function<int(const char*, int)> euidaccess{"euidaccess"};
inline constinit Function<int(int, const char*, int, int)> faccessat{"faccessat"};
inline constinit Function<int(const char*, struct stat*)> stat{"stat"};
inline constinit Function<int(const char*, struct stat64*)> stat64{"stat64"};
inline constinit Function<int(const char*, struct stat*)> lstat{"lstat"};
inline constinit Function<int(const char*, struct stat64*)> lstat64{"lstat64"};
inline constinit Function<int(int, struct stat*)> fstat{"fstat"};
inline constinit Function<int(int, struct stat64*)> fstat64{"fstat64"};
inline constinit Function<int(int, const char*, struct stat*, int)> fstatat{"fstatat"};
inline constinit Function<int(int, const char*, struct stat64*, int)> fstatat64{"fstatat64"};
inline constinit Function<int(int, const char*, struct stat*)> xstat{"__xstat"};
inline constinit Function<int(int, const char*, struct stat64*)> xstat64{"__xstat64"};
inline constinit Function<int(int, const char*, struct stat*)> lxstat{"__lxstat"};
inline constinit Function<int(int, const char*, struct stat64*)> lxstat64{"__lxstat64"};
inline constinit Function<int(int, int, struct stat*)> fxstat{"__fxstat"};
inline constinit Function<int(int, int, struct stat64*)> fxstat64{"__fxstat64"};
inline constinit Function<int(int, int, const char*, struct stat*, int)> fxstatat{"__fxstatat"};
inline constinit Function<int(int, int, const char*, struct stat64*, int)> fxstatat64{
    "__fxstatat64"};
inline constinit Function<int(int, const char*, int, unsigned, struct statx*)> statx{"statx"};
inline constinit Function<ssize_t(const char*, const char*, void*, size_t)> getxattr{"getxattr"};
inline constinit Function<ssize_t(const char*, const char*, void*, size_t)> lgetxattr{"lgetxattr"};
inline constinit Function<ssize_t(const char*, char*, size_t)> listxattr{"listxattr"};
inline constinit Function<ssize_t(const char*, char*, size_t)> llistxattr{"llistxattr"};

// Names.
inline constinit Function<ssize_t(const char*, char*, size_t)> readlink{"readlink"};
inline constinit Function<ssize_t(int, const char*, char*, size_t)> readlinkat{"readlinkat"};
inline constinit Function<ssize_t(const char*, char*, size_t, size_t)> readlink_chk{
    "__readlink_chk"};
inline constinit Function<ssize_t(int, const char*, char*, size_t, size_t)> readlinkat_chk{
    "__readlinkat_chk"};
inline constinit Function<char*(const char*, char*)> realpath{"realpath"};
inline constinit Function<char*(const char*, char*, size_t)> realpath_chk{"__realpath_chk"};
inline constinit Function<char*(const char*)> canonicalize_file_name{"canonicalize_file_name"};
inline constinit Function<int(const char*)> chdir{"chdir"};
inline constinit Function<char*(char*, size_t)> getcwd{"getcwd"};
inline constinit Function<char*(char*, size_t, size_t)> getcwd_chk{"__getcwd_chk"};
inline constinit Function<char*()> get_current_dir_name{"get_current_dir_name"};

// Descriptors.
inline constinit Function<ssize_t(int, const void*, size_t)> write{"write"};
inline constinit Function<int(int, unsigned long, void*)> ioctl{"ioctl"};
inline constinit Function<int(int)> close{"close"};
inline constinit Function<int(unsigned, unsigned, int)> close_range{"close_range"};
inline constinit Function<void(int)> closefrom{"closefrom"};
inline constinit Function<int(int)> dup{"dup"};
inline constinit Function<int(int, int)> dup2{"dup2"};
inline constinit Function<int(int, int, int)> dup3{"dup3"};
inline constinit Function<int(int, int, void*)> fcntl{"fcntl"};
inline constinit Function<int(int, int, void*)> fcntl64{"fcntl64"};
inline constinit Function<int(int, int, int)> socket{"socket"};

// Signals.
inline constinit Function<int(int, const struct sigaction*, struct sigaction*)> sigaction{
    "sigaction"};
inline constinit Function<SignalHandler(int, SignalHandler)> signal{"signal"};
inline constinit Function<SignalHandler(int, SignalHandler)> sysv_signal{"__sysv_signal"};

}  // namespace urxe::verbs::libc
