// The state of the library in a program: its devices and their private tree, made when the program
// first looks for RDMA devices.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <sys/types.h>

#include "verbs/config/environment.h"
#include "verbs/preload/machine.h"
#include "verbs/sysfs/private_tree.h"

namespace urxe::verbs {

// The st_dev of the private tree's files, 0 if there is none.
extern std::atomic<dev_t> tree_file_system;

// One per process, made when it is needed and never destroyed. Any thread may call; one lock, which
// is not held while a device node is opened. Calls that come from inside (we use the C library,
// too) get the answer that makes them go to the system. Nothing throws, errno is kept where nothing
// else is said, and threads are not cancelled inside.
class Guest {
 public:
  struct Located {
    std::string path;             // in the file system
    std::optional<dev_t> device;  // if it is one of our device nodes
  };

  // Where `path` (relative to the descriptor `directory`) is in the tree, ready to be used. Nothing
  // if it is not one of ours.
  static std::optional<Located> locate(int directory, const char* path) noexcept;
  // Makes ready the file or directory behind `fd`, which the program opened without our help. The
  // device if it is a device node's stand-in.
  static std::optional<dev_t> use(int fd) noexcept;
  // The working directory has changed. Programs that inherit it do not know of this tree, so what
  // is below must not wait for somebody who asks.
  static void use_working_directory() noexcept;
  // As open: a descriptor, or -1 and errno.
  static int open_device(dev_t device, int flags) noexcept;
  // The device whose stand-in is `inode`, a file of the tree's file system.
  static std::optional<dev_t> device_of(ino_t inode) noexcept;
  // Whether there is an emulated device.
  static bool has_devices() noexcept;

 private:
  class Visit;

  // The process's guest, made now if there is none.
  static Guest& instance();
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();
  [[gnu::destructor]] static void leave();

  static tl::expected<int, int> open_node(dev_t device, int flags) noexcept;

  void make_machine_once();
  void make_tree();
  bool have_tree();
  bool resolve_dot_dots(std::string& path);
  DeviceNode* node_of(dev_t device);

  std::mutex mutex_;
  bool machine_was_made_ = false;
  bool tree_failed_ = false;
  bool has_left_ = false;
  Environment environment_;
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<PrivateTree> tree_;
};

}  // namespace urxe::verbs
