#include "verbs/sysfs/private_tree.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace urxe::verbs {
namespace {

constexpr mode_t kDirectoryMode = 0755;
constexpr mode_t kFileMode = 0444;
constexpr mode_t kWritableMode = 0644;
constexpr mode_t kDeviceMode = 0666;

// The *at functions take paths without the leading slash.
const char* relative(const std::string& path) { return path.c_str() + 1; }

bool write_all(int fd, const std::string& text) {
  return write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace

PrivateTree::PrivateTree(std::unique_ptr<PrivateDirectory> directory)
    : directory_(std::move(directory)) {
  struct stat status {};
  note_error(fstat(directory_->descriptor(), &status) == 0);
  file_system_ = status.st_dev;
}

void PrivateTree::add_directory(const std::string& path) {
  if (mkdirat(directory_->descriptor(), relative(path), kDirectoryMode) == 0 || errno == EEXIST) {
    return;
  }
  if (errno != ENOENT) return note_error(false);
  make_parents(path);
  const int made = mkdirat(directory_->descriptor(), relative(path), kDirectoryMode);
  note_error(made == 0 || errno == EEXIST);
}

void PrivateTree::make_parents(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash != 0 && slash != std::string::npos) add_directory(path.substr(0, slash));
}

void PrivateTree::add_link(const std::string& path, const std::string& target) {
  make_parents(path);
  note_error(symlinkat(target.c_str(), directory_->descriptor(), relative(path)) == 0);
}

void PrivateTree::add_file(const std::string& path, const std::string& text) {
  make_parents(path);
  const int fd = openat(directory_->descriptor(), relative(path),
                        O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode);
  if (fd < 0) return note_error(false);
  note_error(fchmod(fd, kFileMode) == 0 && write_all(fd, text));
  close(fd);
}

void PrivateTree::add_live_file(const std::string& path, Text text) {
  std::string shown = text();
  add_file(path, shown);
  on_use(path, [this, path, text = std::move(text), shown = std::move(shown)](auto) mutable {
    std::string now = text();
    if (now == shown) return;
    rewrite(path, now);
    shown = std::move(now);
  });
}

// In place, because the program may have the file open already. The owner needs the mode, too.
void PrivateTree::rewrite(const std::string& path, const std::string& text) {
  const int directory = directory_->descriptor();
  if (fchmodat(directory, relative(path), kWritableMode, 0) != 0) return;
  const int fd = openat(directory, relative(path), O_WRONLY | O_CLOEXEC);
  fchmodat(directory, relative(path), kFileMode, 0);
  if (fd < 0) return;
  if (write_all(fd, text)) ftruncate(fd, static_cast<off_t>(text.size()));
  close(fd);
}

void PrivateTree::add_alias(const std::string& path, const std::string& existing) {
  const int directory = directory_->descriptor();
  note_error(linkat(directory, relative(existing), directory, relative(path), 0) == 0);
}

// A character device 0:0 is what an unprivileged process may make since Linux 5.8; nobody can open
// it.
void PrivateTree::add_device(const std::string& path, dev_t number) {
  make_parents(path);
  const int directory = directory_->descriptor();
  if (mknodat(directory, relative(path), S_IFCHR | kDeviceMode, makedev(0, 0)) != 0) {
    note_error(mknodat(directory, relative(path), S_IFREG | kDeviceMode, 0) == 0);
  }
  fchmodat(directory, relative(path), kDeviceMode, 0);
  if (const auto inode = find(path)) specials_[*inode].device = number;
}

void PrivateTree::remove(const std::string& path) {
  struct stat status {};
  const int directory = directory_->descriptor();
  if (fstatat(directory, relative(path), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (status.st_nlink == 1) specials_.erase(status.st_ino);
  unlinkat(directory, relative(path), 0);
}

void PrivateTree::on_use(const std::string& path, Action action) {
  if (const auto inode = find(path)) {
    specials_[*inode].action = std::make_shared<Action>(std::move(action));
  }
}

void PrivateTree::add_lazy_directory(const std::string& path, Action fill) {
  add_directory(path);
  on_use(path, std::move(fill));
  lazy_directories_.push_back(path);
}

// Symbolic links to real devices lead out of the tree: what is there is none of our files.
std::optional<ino_t> PrivateTree::find(const std::string& path) const {
  struct stat status {};
  if (fstatat(directory_->descriptor(), relative(path), &status, 0) != 0) return std::nullopt;
  return status.st_dev == file_system_ ? status.st_ino : 0;
}

std::optional<ino_t> PrivateTree::prepare(const std::string& path) {
  auto inode = find(path);
  if (!inode) {
    make_missing(path);
    inode = find(path);
  }
  if (inode) prepare(*inode);
  return inode;
}

// `path` may lead through directories that are not filled yet.
void PrivateTree::make_missing(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;) {
    const auto directory = find(path.substr(0, slash));
    if (!directory) return;
    const std::size_t next = path.find('/', slash + 1);
    prepare(*directory, std::string_view(path).substr(slash + 1, next - slash - 1));
    slash = next;
  }
}

void PrivateTree::prepare(ino_t inode, std::string_view missing_entry) {
  const auto special = specials_.find(inode);
  if (special == specials_.end() || !special->second.action) return;
  // The action may add and remove files, and with them itself.
  const auto action = special->second.action;
  (*action)(missing_entry);
}

void PrivateTree::prepare_below(std::string_view directory) {
  const std::string prefix = std::string(directory) + '/';
  for (const std::string& path : lazy_directories_) {
    if (path.starts_with(prefix)) prepare(path);
  }
}

std::optional<dev_t> PrivateTree::device_number(ino_t inode) const {
  const auto special = specials_.find(inode);
  if (special == specials_.end() || special->second.device == 0) return std::nullopt;
  return special->second.device;
}

void PrivateTree::note_error(bool success) {
  if (!success && error_ == 0) error_ = errno != 0 ? errno : EIO;
}

}  // namespace urxe::verbs
