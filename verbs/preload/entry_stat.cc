// Entry points that ask for a file's status. Device nodes of ours are stand-ins in the file system,
// and what is open is a memfd or a pipe, so type and number are corrected.
#include <fcntl.h>
#include <sys/sysmacros.h>

#include "verbs/preload/descriptor_table.h"
#include "verbs/preload/entry_points.h"
#include "verbs/preload/libc.h"
#include "verbs/preload/quiet.h"
#include "verbs/preload/tree_call.h"

namespace urxe::verbs {
namespace {

constexpr mode_t kDeviceMode = S_IFCHR | 0666;

// stat and stat64 are one layout on the platforms that we support.
template <typename Status>
void show_device(Status& status, dev_t device) {
  status.st_mode = kDeviceMode;
  status.st_rdev = device;
  status.st_size = 0;
  status.st_blocks = 0;
}

void show_device(struct statx& status, dev_t device) {
  status.stx_mode = static_cast<__u16>(kDeviceMode);
  status.stx_rdev_major = major(device);
  status.stx_rdev_minor = minor(device);
  status.stx_size = 0;
  status.stx_blocks = 0;
}

template <typename Status>
struct FileId {
  static dev_t file_system(const Status& status) { return status.st_dev; }
  static ino_t inode(const Status& status) { return status.st_ino; }
  static bool is_file(const Status& status) { return !S_ISDIR(status.st_mode); }
};

template <>
struct FileId<struct statx> {
  static dev_t file_system(const struct statx& status) {
    return makedev(status.stx_dev_major, status.stx_dev_minor);
  }
  static ino_t inode(const struct statx& status) { return status.stx_ino; }
  static bool is_file(const struct statx& status) { return !S_ISDIR(status.stx_mode); }
};

template <typename Status>
[[gnu::noinline]] void correct_stand_in(Status* status) {
  const auto device = Guest::device_of(FileId<Status>::inode(*status));
  if (device) show_device(*status, *device);
}

// `result` is that of a call that filled in `status`.
template <typename Status>
int corrected(int result, Status* status) {
  const dev_t tree = tree_file_system.load(std::memory_order_relaxed);
  if (tree == 0 || result != 0) [[likely]]
    return result;
  using Id = FileId<Status>;
  if (Id::file_system(*status) == tree && Id::is_file(*status)) correct_stand_in(status);
  return result;
}

template <typename Status, typename Native>
int stat_path(int directory, const char* path, Status* status, Native native) {
  return corrected(with_path(directory, path, native), status);
}

// The status of `fd`, which is in the table.
template <typename Status, typename Native>
[[gnu::noinline]] int stat_ours(int fd, Status* status, Native native) {
  const NotCancelled not_cancelled;
  const int result = native();
  const auto file = descriptors.find(fd);
  if (result != 0 || !file || file.is_private()) return result;
  if (file.is_open_on(fd)) {
    show_device(*status, file.device_number());
  } else if (descriptors.is_own_process()) {
    descriptors.remove(fd);
  }
  return result;
}

template <typename Status, typename Native>
int stat_descriptor(int fd, Status* status, Native native) {
  if (descriptors.holds(fd)) [[unlikely]]
    return stat_ours(fd, status, native);
  return corrected(native(), status);
}

// fstatat and statx with AT_EMPTY_PATH ask about the descriptor itself.
template <typename Status, typename Native>
int stat_at(int directory, const char* path, int flags, Status* status, Native native) {
  if ((flags & AT_EMPTY_PATH) != 0 && (path == nullptr || *path == '\0')) {
    return stat_descriptor(directory, status, [&] { return native(path); });
  }
  return stat_path(directory, path, status, native);
}

}  // namespace
}  // namespace urxe::verbs

using namespace urxe::verbs;

int on_stat(const char* path, struct stat* status) {
  return stat_path(AT_FDCWD, path, status,
                   [=](const char* name) { return libc::stat(name, status); });
}

int on_stat64(const char* path, struct stat64* status) {
  return stat_path(AT_FDCWD, path, status,
                   [=](const char* name) { return libc::stat64(name, status); });
}

int on_lstat(const char* path, struct stat* status) {
  return stat_path(AT_FDCWD, path, status,
                   [=](const char* name) { return libc::lstat(name, status); });
}

int on_lstat64(const char* path, struct stat64* status) {
  return stat_path(AT_FDCWD, path, status,
                   [=](const char* name) { return libc::lstat64(name, status); });
}

int on_fstat(int fd, struct stat* status) {
  return stat_descriptor(fd, status, [=] { return libc::fstat(fd, status); });
}

int on_fstat64(int fd, struct stat64* status) {
  return stat_descriptor(fd, status, [=] { return libc::fstat64(fd, status); });
}

int on_fstatat(int dir, const char* path, struct stat* status, int flags) {
  return stat_at(dir, path, flags, status,
                 [=](const char* name) { return libc::fstatat(dir, name, status, flags); });
}

int on_fstatat64(int dir, const char* path, struct stat64* status, int flags) {
  return stat_at(dir, path, flags, status,
                 [=](const char* name) { return libc::fstatat64(dir, name, status, flags); });
}

int on_xstat(int version, const char* path, struct stat* status) {
  return stat_path(AT_FDCWD, path, status,
                   [=](const char* name) { return libc::xstat(version, name, status); });
}

int on_xstat64(int version, const char* path, struct stat64* status) {
  return stat_path(AT_FDCWD, path, status,
                   [=](const char* name) { return libc::xstat64(version, name, status); });
}

int on_lxstat(int version, const char* path, struct stat* status) {
  return stat_path(AT_FDCWD, path, status,
                   [=](const char* name) { return libc::lxstat(version, name, status); });
}

int on_lxstat64(int version, const char* path, struct stat64* status) {
  return stat_path(AT_FDCWD, path, status,
                   [=](const char* name) { return libc::lxstat64(version, name, status); });
}

int on_fxstat(int version, int fd, struct stat* status) {
  return stat_descriptor(fd, status, [=] { return libc::fxstat(version, fd, status); });
}

int on_fxstat64(int version, int fd, struct stat64* status) {
  return stat_descriptor(fd, status, [=] { return libc::fxstat64(version, fd, status); });
}

int on_fxstatat(int version, int dir, const char* path, struct stat* status, int flags) {
  return stat_at(dir, path, flags, status, [=](const char* name) {
    return libc::fxstatat(version, dir, name, status, flags);
  });
}

int on_fxstatat64(int version, int dir, const char* path, struct stat64* status, int flags) {
  return stat_at(dir, path, flags, status, [=](const char* name) {
    return libc::fxstatat64(version, dir, name, status, flags);
  });
}

int on_statx(int dir, const char* path, int flags, unsigned mask, struct statx* status) {
  return stat_at(dir, path, flags, status,
                 [=](const char* name) { return libc::statx(dir, name, flags, mask, status); });
}
