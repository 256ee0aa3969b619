#include "verbs/preload/guest.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs/preload/descriptor_table.h"
#include "verbs/preload/libc.h"
#include "verbs/preload/own_mutex.h"
#include "verbs/preload/path.h"
#include "verbs/preload/quiet.h"
#include "verbs/sysfs/device_tree.h"

namespace urxe::verbs {
namespace {

std::atomic<Guest*> the_guest{nullptr};

// Set while this thread runs our code: what that calls is not for us.
thread_local bool inside [[gnu::tls_model("initial-exec")]] = false;
thread_local bool was_inside_at_fork [[gnu::tls_model("initial-exec")]] = false;
thread_local bool was_at_work_at_fork [[gnu::tls_model("initial-exec")]] = false;

// Whether a call comes from our own code, or from a signal's handler that stopped it. The guest's
// lock comes before all others, so it must not be taken then.
bool at_work() { return inside || OwnMutex::is_held_here(); }

void complain(const std::string& sentence) {
  const std::string line = "urxe: " + sentence + '\n';
  [[maybe_unused]] const auto written = libc::write(STDERR_FILENO, line.data(), line.size());
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// The program's name for a file that we know by the file system's.
std::string outside_name(std::string path) {
  const std::string_view inside_path = inside_private_directory(path);
  return inside_path.empty() ? path : std::string(inside_path);
}

std::optional<std::string> real_path(const std::string& path) {
  std::array<char, PATH_MAX> buffer{};
  if (libc::realpath(path.c_str(), buffer.data()) == nullptr) return std::nullopt;
  return std::string(buffer.data());
}

using PathBuffer = std::array<char, PATH_MAX>;

// The name of the directory that relative paths start from; empty if it has none. No memory is
// allocated: this runs also for files that only have a suspicious name.
std::string_view base_of(int directory, PathBuffer& buffer) {
  buffer[0] = '\0';
  if (directory == AT_FDCWD) {
    if (libc::getcwd(buffer.data(), buffer.size()) == nullptr) return {};
  } else {
    std::array<char, 32> link{"/proc/self/fd/"};
    std::to_chars(link.data() + std::strlen(link.data()), link.data() + link.size() - 1, directory);
    const ssize_t size = libc::readlink(link.data(), buffer.data(), buffer.size() - 1);
    if (size <= 0) return {};
    buffer[static_cast<std::size_t>(size)] = '\0';
  }
  const std::string_view base = buffer.data();
  const std::string_view inside_path = inside_private_directory(base);
  return inside_path.empty() ? base : inside_path;
}

// Whether something below may be ours.
bool may_hold_tree(std::string_view base) {
  return base == "/" || base.starts_with("/sys") || base.starts_with("/dev");
}

// As the program would write it, absolute. Nothing if it cannot be in the tree.
std::optional<std::string> full_path(int directory, const char* path) {
  if (*path == '/') return tidy_path(path);
  PathBuffer buffer;
  const std::string_view base = base_of(directory, buffer);
  if (!base.starts_with('/')) return std::nullopt;
  if (!may_hold_tree(base) && !begins_with(path, "..")) return std::nullopt;
  return tidy_path(std::string(base) + '/' + path);
}

}  // namespace

constinit std::atomic<dev_t> tree_file_system{0};

// A stay inside the library.
class Guest::Visit {
 public:
  explicit Visit(Guest& guest) : guest_(guest), was_at_work_(at_work()) {
    if (was_at_work_) return;
    inside = true;
    guest_.mutex_.lock();
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  ~Visit() {
    if (was_at_work_) return;
    guest_.mutex_.unlock();
    inside = false;
  }

  // The call comes from where we were at work, or the program is past its end.
  [[nodiscard]] bool is_unwanted() const { return was_at_work_ || guest_.has_left_; }

 private:
  Guest& guest_;
  const bool was_at_work_;
};

Guest& Guest::instance() {
  if (Guest* guest = the_guest.load(std::memory_order_acquire)) return *guest;
  auto made = std::make_unique<Guest>();
  Guest* expected = nullptr;
  if (!the_guest.compare_exchange_strong(expected, made.get())) return *expected;
  pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child);
  return *made.release();
}

std::optional<Guest::Located> Guest::locate(int directory, const char* path) noexcept try {
  const Quiet quiet;
  if (at_work()) return std::nullopt;
  auto full = full_path(directory, path);
  if (!full) return std::nullopt;
  const bool has_dots = find_dot_dot(*full).has_value();
  if (!has_dots && !belongs_to_tree(*full)) return std::nullopt;
  Guest& guest = instance();
  const Visit visit(guest);
  if (visit.is_unwanted() || !guest.resolve_dot_dots(*full)) return std::nullopt;
  // A way through our directories that leads out again is one that only we know.
  if (!belongs_to_tree(*full)) return Located{.path = *full, .device = {}};
  if (!guest.have_tree()) return std::nullopt;
  PrivateTree& tree = *guest.tree_;
  if (tree.is_real(*full)) return Located{.path = *full, .device = {}};
  Located located{.path = tree.locate(*full), .device = {}};
  while (full->ends_with('/')) full->pop_back();
  if (const auto inode = tree.prepare(*full)) located.device = tree.device_number(*inode);
  return located;
} catch (...) {
  return std::nullopt;
}

std::optional<dev_t> Guest::use(int fd) noexcept try {
  struct stat status {};
  if (libc::fstat(fd, &status) != 0 || status.st_dev != tree_file_system) return std::nullopt;
  const Quiet quiet;
  Guest& guest = instance();
  const Visit visit(guest);
  if (visit.is_unwanted() || !guest.tree_) return std::nullopt;
  guest.tree_->prepare(status.st_ino);
  return guest.tree_->device_number(status.st_ino);
} catch (...) {
  return std::nullopt;
}

void Guest::use_working_directory() noexcept try {
  const Quiet quiet;
  std::array<char, PATH_MAX> name{};
  if (!tree_in_use || libc::getcwd(name.data(), name.size()) == nullptr) return;
  const std::string_view directory = inside_private_directory(name.data());
  Guest& guest = instance();
  const Visit visit(guest);
  if (directory.empty() || visit.is_unwanted() || !guest.tree_) return;
  guest.tree_->prepare_below(directory);
} catch (...) {
  // The directory is as it was.
}

int Guest::open_device(dev_t device, int flags) noexcept {
  const auto opened = open_node(device, flags);
  if (opened) return *opened;
  errno = opened.error();
  return -1;
}

tl::expected<int, int> Guest::open_node(dev_t device, int flags) noexcept try {
  const Quiet quiet;
  DeviceNode* const node = instance().node_of(device);
  if (node == nullptr) return tl::unexpected(ENXIO);
  auto opened = node->open(flags);
  if (!opened) return tl::unexpected(opened.error());
  if (descriptors.insert(opened->fd, std::move(opened->file))) return opened->fd;
  libc::close(opened->fd);
  return tl::unexpected(ENOMEM);
} catch (...) {
  return tl::unexpected(ENOMEM);
}

std::optional<dev_t> Guest::device_of(ino_t inode) noexcept try {
  const Quiet quiet;
  Guest& guest = instance();
  const Visit visit(guest);
  if (visit.is_unwanted() || !guest.tree_) return std::nullopt;
  return guest.tree_->device_number(inode);
} catch (...) {
  return std::nullopt;
}

bool Guest::has_devices() noexcept try {
  const Quiet quiet;
  Guest& guest = instance();
  const Visit visit(guest);
  if (visit.is_unwanted()) return false;
  guest.make_machine_once();
  return guest.machine_ != nullptr;
} catch (...) {
  return false;
}

void Guest::make_machine_once() {
  if (std::exchange(machine_was_made_, true)) return;
  const auto environment = read_environment([](const char* name) { return std::getenv(name); });
  if (!environment) return complain(environment.error());
  environment_ = *environment;
  auto devices = find_devices(environment_);
  if (!devices) return complain(devices.error());
  if (!devices->empty()) machine_ = make_machine(*std::move(devices));
}

bool Guest::have_tree() {
  make_machine_once();
  if (!machine_) return false;
  if (tree_ && tree_->directory().is_reachable()) return true;
  if (!tree_failed_) make_tree();
  return tree_ != nullptr;
}

void Guest::make_tree() {
  tree_.reset();
  const auto bases = private_directory_bases();
  auto tree = make_device_tree(bases, {.devices = machine_->devices(),
                                       .provider = machine_->sysfs(),
                                       .rdma_cm = machine_->rdma_cm() != nullptr,
                                       .hide_real = environment_.hide_real});
  if (!tree) {
    tree_failed_ = true;
    return complain("no RDMA devices, because no directory can be made in any of " + join(bases) +
                    ": " + std::strerror(tree.error()));
  }
  tree_ = *std::move(tree);
  tree_file_system = tree_->file_system();
  tree_in_use = true;
}

// ".." follows symbolic links, of which the tree has many, so each is done by way of the real name.
// False: there is no such directory.
bool Guest::resolve_dot_dots(std::string& path) {
  while (const auto at = find_dot_dot(path)) {
    const std::string before = path.substr(0, *at);
    const bool ours = belongs_to_tree(before) && have_tree();
    const auto real = real_path(ours ? tree_->locate(before) : before.empty() ? "/" : before);
    if (!real) return false;
    path = tidy_path(parent_of(outside_name(*real)) + path.substr(*at + 3));
  }
  return true;
}

DeviceNode* Guest::node_of(dev_t device) {
  const Visit visit(*this);
  if (visit.is_unwanted() || !machine_) return nullptr;
  if (device == rdma_cm_device()) return machine_->rdma_cm();
  const auto& devices = machine_->devices();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].uverbs_device() == device) return &machine_->uverbs(i);
  }
  return nullptr;
}

// A thread that forks while it is inside has the lock already. One that forks in a signal's handler
// may be anywhere: then what is in progress stays so.
void Guest::before_fork() {
  was_at_work_at_fork = OwnMutex::is_held_here();
  if (was_at_work_at_fork) return;
  was_inside_at_fork = std::exchange(inside, true);
  Guest& guest = *the_guest.load();
  if (!was_inside_at_fork) guest.mutex_.lock();
  if (guest.machine_) guest.machine_->before_fork();
  descriptors.before_fork();
}

void Guest::after_fork_in_parent() {
  if (was_at_work_at_fork) return;
  Guest& guest = *the_guest.load();
  descriptors.after_fork_in_parent();
  if (guest.machine_) guest.machine_->after_fork_in_parent();
  if (!was_inside_at_fork) guest.mutex_.unlock();
  inside = was_inside_at_fork;
}

void Guest::after_fork_in_child() {
  if (was_at_work_at_fork) {
    // The copy is not whole, and whoever the signal stopped may still use it: nobody destroys it.
    std::ignore = the_guest.load()->machine_.release();
    return;
  }
  descriptors.after_fork_in_child();
  Guest& guest = *the_guest.load();
  if (guest.machine_) guest.machine_->after_fork_in_child();
  if (!was_inside_at_fork) guest.mutex_.unlock();
  inside = was_inside_at_fork;
}

// Runs when the program exits; perhaps in a signal's handler, where the thread may hold a lock.
void Guest::leave() {
  Guest* const guest = the_guest.load();
  if (guest == nullptr || at_work() || !descriptors.is_own_process()) return;
  if (guest->machine_) guest->machine_->at_exit();
  const Visit visit(*guest);
  guest->has_left_ = true;
  tree_in_use = false;
  tree_file_system = 0;
  guest->tree_.reset();
}

}  // namespace urxe::verbs
