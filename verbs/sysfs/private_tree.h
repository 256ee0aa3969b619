// A copy of parts of /sys and /dev in which our devices exist.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <sys/types.h>
#include <tl/expected.hpp>

#include "verbs/sysfs/private_directory.h"

namespace urxe::verbs {

// Real files in a private directory, so that whatever the C library or the kernel does with a path
// or a descriptor (fts, globbing, openat, symbolic links) works without our help. Paths are those
// the program knows ("/sys/class/infiniband"); parent directories come by themselves.
//
// Files whose content changes, and directories that are filled when somebody looks, have an action
// that runs before they are used: prepare(). A directory's is told which entry is wanted and not
// there yet, or nothing if the directory itself is wanted.
//
// Thread rule: the owner's lock is held in every call.
class PrivateTree {
 public:
  using Text = std::function<std::string()>;
  using Action = std::function<void(std::string_view missing_entry)>;

  explicit PrivateTree(std::unique_ptr<PrivateDirectory> directory);
  PrivateTree(const PrivateTree&) = delete;
  PrivateTree& operator=(const PrivateTree&) = delete;

  [[nodiscard]] PrivateDirectory& directory() { return *directory_; }
  // Where a path of the program's is in the file system.
  [[nodiscard]] std::string locate(const std::string& path) const {
    return directory_->path() + path;
  }
  // The st_dev of every file here.
  [[nodiscard]] dev_t file_system() const { return file_system_; }
  // The errno of the first thing that could not be added, 0 if all could.
  [[nodiscard]] int error() const { return error_; }

  void add_directory(const std::string& path);
  void add_link(const std::string& path, const std::string& target);
  void add_file(const std::string& path, const std::string& text);
  // A file that shows what `text` says when the file is opened.
  void add_live_file(const std::string& path, Text text);
  // Another name of a file: thousands of equal files cost little.
  void add_alias(const std::string& path, const std::string& existing);
  // A device node. The kernel does not let everybody make one, so what is there is a stand-in.
  void add_device(const std::string& path, dev_t number);
  void remove(const std::string& path);
  // Runs `action` before the file or directory at `path` is used.
  void on_use(const std::string& path, Action action);
  // A directory that `fill` fills when it is used.
  void add_lazy_directory(const std::string& path, Action fill);

  // Makes `path` ready to be used. Its inode, 0 for a file of the kernel's; nothing: it is not
  // there.
  std::optional<ino_t> prepare(const std::string& path);
  // The same for a file that the program reached without naming it in full.
  void prepare(ino_t inode, std::string_view missing_entry = {});
  // Fills the lazy directories below `directory`.
  void prepare_below(std::string_view directory);
  // The device whose stand-in is `inode`.
  [[nodiscard]] std::optional<dev_t> device_number(ino_t inode) const;

 private:
  // What is special about a file.
  struct Special {
    dev_t device = 0;
    std::shared_ptr<Action> action;
  };

  void make_parents(const std::string& path);
  std::optional<ino_t> find(const std::string& path) const;
  void make_missing(const std::string& path);
  void rewrite(const std::string& path, const std::string& text);
  void note_error(bool success);

  std::unique_ptr<PrivateDirectory> directory_;
  dev_t file_system_ = 0;
  int error_ = 0;
  std::unordered_map<ino_t, Special> specials_;
  std::vector<std::string> lazy_directories_;
};

}  // namespace urxe::verbs
