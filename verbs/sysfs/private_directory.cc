#include "verbs/sysfs/private_directory.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace urxe::verbs {
namespace {

constexpr std::string_view kPrefix = "urxe-tree.";
constexpr std::string_view kRandomPart = "XXXXXX";
// Another process may take a directory that is not locked yet for a leftover; then we try again.
constexpr int kAttempts = 16;
// Deeper than any tree of ours.
constexpr int kMaxDepth = 32;

int open_directory(int parent, const char* name) {
  return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool is_dot(const char* name) {
  return std::string_view(name) == "." || std::string_view(name) == "..";
}

std::vector<std::string> list(int directory) {
  std::vector<std::string> names;
  const int copy = fcntl(directory, F_DUPFD_CLOEXEC, 0);
  DIR* stream = copy < 0 ? nullptr : fdopendir(copy);
  if (stream == nullptr) {
    if (copy >= 0) close(copy);
    return names;
  }
  rewinddir(stream);
  while (const dirent* entry = readdir(stream)) {
    if (!is_dot(entry->d_name)) names.emplace_back(entry->d_name);
  }
  closedir(stream);
  return names;
}

void remove_contents(int directory, int depth) {
  for (const std::string& name : list(directory)) {
    if (unlinkat(directory, name.c_str(), 0) == 0 || depth == 0) continue;
    const int child = open_directory(directory, name.c_str());
    if (child < 0) continue;
    remove_contents(child, depth - 1);
    close(child);
    unlinkat(directory, name.c_str(), AT_REMOVEDIR);
  }
}

bool is_ours(int directory) {
  struct stat status {};
  return fstat(directory, &status) == 0 && status.st_uid == geteuid();
}

// Removes `name` unless a process holds its lock.
void remove_if_leftover(int base, const std::string& name) {
  const int directory = open_directory(base, name.c_str());
  if (directory < 0) return;
  if (is_ours(directory) && flock(directory, LOCK_EX | LOCK_NB) == 0) {
    remove_contents(directory, kMaxDepth);
    unlinkat(base, name.c_str(), AT_REMOVEDIR);
  }
  close(directory);
}

// The system call: the C library's getcwd is an entry point of ours, which hides where trees are.
std::string working_directory() {
  std::array<char, PATH_MAX> path{};
  return syscall(SYS_getcwd, path.data(), path.size()) > 0 ? std::string(path.data()) : "";
}

// A shell that went into its tree and executed this program has let go of the lock, but this is
// still the working directory.
void remove_leftovers(const std::string& base) {
  const int directory = open(base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  const std::string here = working_directory() + '/';
  for (const std::string& name : list(directory)) {
    if (!name.starts_with(kPrefix) || here.starts_with(base + '/' + name + '/')) continue;
    remove_if_leftover(directory, name);
  }
  close(directory);
}

bool is_linked(int directory) {
  struct stat status {};
  return fstat(directory, &status) == 0 && status.st_nlink > 0;
}

struct Made {
  std::string path;
  int descriptor;
};

// Nothing if somebody took it for a leftover meanwhile.
tl::expected<std::optional<Made>, int> make_and_lock(const std::string& base) {
  std::string path = base + '/' + std::string(kPrefix) + std::string(kRandomPart);
  if (mkdtemp(path.data()) == nullptr) return tl::unexpected(errno);
  const int directory = open_directory(AT_FDCWD, path.c_str());
  if (directory < 0) {
    if (errno == ENOENT) return std::nullopt;
    const int error = errno;
    rmdir(path.c_str());
    return tl::unexpected(error);
  }
  if (flock(directory, LOCK_EX | LOCK_NB) != 0 || !is_linked(directory)) {
    close(directory);
    return std::nullopt;
  }
  return Made{.path = path, .descriptor = directory};
}

}  // namespace

std::vector<std::string> private_directory_bases() {
  std::vector<std::string> bases = {"/dev/shm"};
  for (const char* variable : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && value[0] == '/') bases.emplace_back(value);
  }
  bases.emplace_back("/tmp");
  return bases;
}

std::string_view inside_private_directory(std::string_view path) {
  const std::size_t prefix = path.find(kPrefix);
  if (prefix == std::string_view::npos || prefix == 0 || path[prefix - 1] != '/') return {};
  const std::size_t end = prefix + kPrefix.size() + kRandomPart.size();
  if (end >= path.size() || path[end] != '/') return {};
  if (path.find('/', prefix) != end) return {};
  return path.substr(end);
}

tl::expected<std::unique_ptr<PrivateDirectory>, int> PrivateDirectory::create(
    const std::vector<std::string>& bases) {
  int error = ENOENT;
  for (const std::string& base : bases) {
    remove_leftovers(base);
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      auto made = make_and_lock(base);
      if (!made) {
        error = made.error();
        break;
      }
      if (!*made) continue;
      return std::unique_ptr<PrivateDirectory>(
          new PrivateDirectory((*made)->path, (*made)->descriptor));
    }
  }
  return tl::unexpected(error);
}

PrivateDirectory::PrivateDirectory(std::string path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor), owner_(getpid()) {}

PrivateDirectory::~PrivateDirectory() {
  if (owner_ != getpid()) return;
  remove_contents(descriptor(), kMaxDepth);
  rmdir(path_.c_str());
}

bool PrivateDirectory::is_reachable() const {
  struct stat by_path {};
  struct stat by_descriptor {};
  if (stat(path_.c_str(), &by_path) != 0 || fstat(descriptor(), &by_descriptor) != 0) return false;
  return by_path.st_dev == by_descriptor.st_dev && by_path.st_ino == by_descriptor.st_ino &&
         by_path.st_uid == geteuid();
}

}  // namespace urxe::verbs
