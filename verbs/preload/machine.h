// What the preload layer shows to the program: the port through which the rest of the library comes
// in.
#pragma once

#include <memory>
#include <vector>

#include <tl/expected.hpp>

#include "verbs/config/device_config.h"
#include "verbs/emulated_file.h"
#include "verbs/sysfs/provider.h"

namespace urxe::verbs {

// A device node that was opened.
struct OpenedFile {
  // What the program gets: a real descriptor, so that poll, mmap, fcntl and read work without us.
  // It must have an inode of its own (memfd, pipe, socket; not eventfd or epoll), by which we
  // notice when its number has been given to another file. Close-on-exec. Ours from here on.
  int fd = -1;
  std::shared_ptr<EmulatedFile> file;
};

// A character device under /dev/infiniband.
class DeviceNode {
 public:
  virtual ~DeviceNode() = default;
  // As the open system call; the error is an errno. `flags` are those of open(2), of which
  // O_NONBLOCK is for the descriptor. Called from any thread, without locks.
  virtual tl::expected<OpenedFile, int> open(int flags) = 0;
};

// All devices of this process.
//
// Owner: the preload layer, which makes it when the program first looks for RDMA devices and never
// destroys it. Thread rule: calls come from any thread; after_fork_in_child and at_exit when no
// other call is in progress in this process.
class Machine {
 public:
  virtual ~Machine() = default;

  // Never empty, and always the same.
  [[nodiscard]] virtual const std::vector<DeviceConfig>& devices() const = 0;
  virtual SysfsProvider& sysfs() = 0;
  virtual DeviceNode& uverbs(std::size_t device) = 0;
  // Null: there is none, and no sysfs entry either.
  virtual DeviceNode* rdma_cm() = 0;

  // Around a fork of this process: no command is in progress and no packet moves until it is over.
  virtual void before_fork() = 0;
  virtual void after_fork_in_parent() = 0;
  // This process is a forked child; comes instead of after_fork_in_parent. Files that were open are
  // dead: nobody will call them again, nor destroy them. Close private descriptors; touch nothing
  // shared with the parent, send nothing, wait for nothing. Files that are opened from now on must
  // work.
  virtual void after_fork_in_child() = 0;
  // The program exits, by exit or by return from main. Comes in forked children as well.
  virtual void at_exit() = 0;
};

// The composition root: each library that contains the preload layer defines it. Null: no devices.
std::unique_ptr<Machine> make_machine(std::vector<DeviceConfig> devices);

}  // namespace urxe::verbs
