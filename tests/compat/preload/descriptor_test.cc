// What a program sees of the descriptors of emulated devices. Runs with a library preloaded that
// has fake devices rxe0 and rxe1 on lo.
#include <array>
#include <cerrno>
#include <csignal>
#include <functional>
#include <thread>

#include <catch2/catch.hpp>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/compat/preload/fake_device.h"
#include "tests/support/skip.h"

namespace urxe::test {
namespace {

constexpr const char* kUverbs = "/dev/infiniband/uverbs0";

class Fd {
 public:
  explicit Fd(int number) : number_(number) { REQUIRE(number_ >= 0); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() {
    if (number_ >= 0) ::close(number_);
  }
  operator int() const { return number_; }
  void close() { REQUIRE(::close(std::exchange(number_, -1)) == 0); }

 private:
  int number_;
};

int open_uverbs(int flags = O_RDWR | O_CLOEXEC) { return open(kUverbs, flags); }
int answer(int fd) { return ioctl(fd, kAnswer, nullptr); }

// How many files of the fake devices are alive, without the one that is opened to ask.
int files_alive() {
  const Fd fd(open_uverbs());
  return ioctl(fd, kAlive, nullptr) - 1;
}

int in_child(const std::function<int()>& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("write and ioctl reach the device, and their errors come back in errno") {
  const Fd fd(open_uverbs());
  errno = 7;
  CHECK(write(fd, "w12", 3) == 3);
  CHECK(answer(fd) == 42);
  CHECK(errno == 7);
  CHECK(write(fd, "x", 1) == -1);
  CHECK(errno == EINVAL);
  CHECK(ioctl(fd, 0x9999, nullptr) == -1);
  CHECK(errno == ENOTTY);
}

TEST_CASE("every way to open a file opens a device") {
  const auto check = [](int number) {
    const Fd fd(number);
    CHECK(answer(fd) == 42);
  };
  check(open(kUverbs, O_RDWR));
  check(open64(kUverbs, O_RDWR));
  check(openat(AT_FDCWD, kUverbs, O_RDWR));
  check(openat64(-1, kUverbs, O_RDWR));
  const Fd directory(open("/dev/infiniband", O_RDONLY | O_DIRECTORY));
  check(openat(directory, "uverbs0", O_RDWR));
  const Fd dev(open("/dev", O_RDONLY | O_DIRECTORY));
  check(openat(dev, "infiniband/uverbs1", O_RDWR));
  REQUIRE(chdir("/dev/infiniband") == 0);
  check(open("uverbs0", O_RDWR));
  check(open("./uverbs1", O_RDWR));
  REQUIRE(chdir("/") == 0);
  check(open("dev/infiniband/uverbs0", O_RDWR));
}

TEST_CASE("open gives the kernel's errors") {
  CHECK(open("/dev/infiniband/uverbs7", O_RDWR) == -1);
  CHECK(errno == ENOENT);
  CHECK(open(kUverbs, O_RDWR | O_DIRECTORY) == -1);
  CHECK(errno == ENOTDIR);
  CHECK(open(kUverbs, O_RDWR | O_CREAT | O_EXCL, 0600) == -1);
  CHECK(errno == EEXIST);
  int (*const unchecked)(const char*, int, ...) = &open;
  CHECK(unchecked(nullptr, O_RDWR) == -1);
  CHECK(errno == EFAULT);
}

TEST_CASE("a device that refuses to be opened gives its error, and an exception stays inside") {
  CHECK(open_uverbs(O_RDWR | kRefuse) == -1);
  CHECK(errno == EBUSY);
  CHECK(open_uverbs(O_RDWR | kThrow) == -1);
  CHECK(errno == ENOMEM);
}

TEST_CASE("every way to ask for its status shows a character device with sysfs's number") {
  const dev_t number = makedev(231, 192);
  struct stat status {};
  const auto check = [&](int result) {
    REQUIRE(result == 0);
    CHECK(status.st_mode == (S_IFCHR | 0666));
    CHECK(status.st_rdev == number);
    status = {};
  };
  const Fd fd(open_uverbs());
  check(stat(kUverbs, &status));
  check(lstat(kUverbs, &status));
  check(fstat(fd, &status));
  check(fstatat(AT_FDCWD, kUverbs, &status, 0));
  check(fstatat(fd, "", &status, AT_EMPTY_PATH));
  const Fd directory(open("/dev/infiniband", O_RDONLY | O_DIRECTORY));
  check(fstatat(directory, "uverbs0", &status, AT_SYMLINK_NOFOLLOW));
  const Fd path_only(open(kUverbs, O_PATH));
  check(fstat(path_only, &status));
  struct statx extended {};
  for (const int at : {AT_FDCWD, static_cast<int>(fd)}) {
    const bool empty = at != AT_FDCWD;
    REQUIRE(statx(at, empty ? "" : kUverbs, empty ? AT_EMPTY_PATH : 0, STATX_ALL, &extended) == 0);
    CHECK(extended.stx_mode == (S_IFCHR | 0666));
    CHECK(makedev(extended.stx_rdev_major, extended.stx_rdev_minor) == number);
  }
  CHECK(access(kUverbs, R_OK | W_OK) == 0);
  CHECK(faccessat(directory, "uverbs0", R_OK | W_OK, 0) == 0);
}

TEST_CASE("a directory listing shows devices as character devices") {
  DIR* directory = opendir("/dev/infiniband");
  REQUIRE(directory != nullptr);
  int devices = 0;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    CHECK(entry->d_type == DT_CHR);
    ++devices;
  }
  closedir(directory);
  CHECK(devices == 3);
}

TEST_CASE("copies of a descriptor are one file, which is closed with the last") {
  const int before = files_alive();
  Fd first(open_uverbs());
  Fd second(dup(first));
  Fd third(fcntl(first, F_DUPFD_CLOEXEC, 100));
  Fd fourth(fcntl(second, F_DUPFD, 0));
  Fd fifth(dup2(first, 200));
  Fd sixth(dup3(first, 201, O_CLOEXEC));
  CHECK(static_cast<int>(third) >= 100);
  CHECK(files_alive() == before + 1);
  first.close();
  for (const int fd : {static_cast<int>(second), static_cast<int>(third), static_cast<int>(fourth),
                       static_cast<int>(fifth), static_cast<int>(sixth)}) {
    CHECK(answer(fd) == 42);
  }
  second.close();
  third.close();
  fourth.close();
  fifth.close();
  CHECK(files_alive() == before + 1);
  sixth.close();
  CHECK(files_alive() == before);
}

TEST_CASE("dup2 over a device closes it") {
  const int before = files_alive();
  Fd device(open_uverbs());
  const Fd null(open("/dev/null", O_WRONLY));
  CHECK(dup2(null, device) == device);
  CHECK(files_alive() == before);
  CHECK(write(device, "x", 1) == 1);
}

TEST_CASE("dup2 onto itself changes nothing, and a dup2 that fails neither") {
  const Fd device(open_uverbs());
  CHECK(dup2(device, device) == device);
  CHECK(dup2(9999, device) == -1);
  CHECK(errno == EBADF);
  CHECK(answer(device) == 42);
}

TEST_CASE("after close the descriptor is not valid") {
  Fd device(open_uverbs());
  const int number = device;
  device.close();
  CHECK(write(number, "w", 1) == -1);
  CHECK(errno == EBADF);
  CHECK(answer(number) == -1);
  CHECK(errno == EBADF);
  CHECK(close(number) == -1);
}

TEST_CASE("closing a device while another thread is in a call lets the call end") {
  const int before = files_alive();
  std::array<int, 2> to_call{};
  std::array<int, 2> from_call{};
  REQUIRE(pipe(to_call.data()) == 0);
  REQUIRE(pipe(from_call.data()) == 0);
  Fd device(open_uverbs());
  const int number = device;
  int result = 0;
  std::thread caller([&, number] {
    std::array<int, 2> ends = {to_call[0], from_call[1]};
    result = ioctl(number, kBlock, ends.data());
  });
  char byte = 0;
  REQUIRE(read(from_call[0], &byte, 1) == 1);
  device.close();
  CHECK(files_alive() == before + 1);
  REQUIRE(write(to_call[1], &byte, 1) == 1);
  caller.join();
  CHECK(result == 43);
  CHECK(files_alive() == before);
  for (const int end : {to_call[0], to_call[1], from_call[0], from_call[1]}) close(end);
}

TEST_CASE("a number that was closed by a system call of its own belongs to who gets it next") {
  Fd device(open_uverbs());
  const int number = device;
  SECTION("a file that is opened") {
    REQUIRE(syscall(SYS_close, number) == 0);
    const Fd again(open("/dev/null", O_WRONLY));
    REQUIRE(again == number);
    CHECK(write(number, "w12", 3) == 3);
    struct stat status {};
    REQUIRE(fstat(number, &status) == 0);
    CHECK(status.st_rdev == makedev(1, 3));
    CHECK(syscall(SYS_close, number) == 0);
  }
  SECTION("a pipe, about which we are not told") {
    REQUIRE(syscall(SYS_close, number) == 0);
    std::array<int, 2> ends{};
    REQUIRE(pipe(ends.data()) == 0);
    REQUIRE(ends[0] == number);
    REQUIRE(write(ends[1], "abc", 3) == 3);
    int waiting = 0;
    CHECK(ioctl(number, FIONREAD, &waiting) == 0);
    CHECK(waiting == 3);
    close(ends[1]);
  }
  SECTION("a pipe that is asked for its status") {
    REQUIRE(syscall(SYS_close, number) == 0);
    std::array<int, 2> ends{};
    REQUIRE(pipe(ends.data()) == 0);
    REQUIRE(ends[0] == number);
    struct stat status {};
    REQUIRE(fstat(number, &status) == 0);
    CHECK(S_ISFIFO(status.st_mode));
    close(ends[1]);
  }
  SECTION("a socket that is written to") {
    REQUIRE(syscall(SYS_close, number) == 0);
    std::array<int, 2> ends{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
    REQUIRE(ends[0] == number);
    CHECK(write(number, "hello", 5) == 5);
    std::array<char, 5> text{};
    CHECK(read(ends[1], text.data(), text.size()) == 5);
    close(ends[1]);
  }
}

TEST_CASE("requests that the kernel answers for any file do not reach the device") {
  const Fd device(open_uverbs(O_RDWR));
  CHECK(ioctl(device, FIOCLEX) == 0);
  CHECK((fcntl(device, F_GETFD) & FD_CLOEXEC) != 0);
  int on = 1;
  CHECK(ioctl(device, kNonblocking, nullptr) == 0);
  CHECK(ioctl(device, FIONBIO, &on) == 0);
  CHECK(ioctl(device, kNonblocking, nullptr) == 1);
}

TEST_CASE("a device's descriptor is closed on exec, asked for or not") {
  const Fd device(open_uverbs(O_RDWR));
  CHECK((fcntl(device, F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("close_range and closefrom close devices and spare what is ours alone") {
  const int before = files_alive();
  SECTION("close_range") {
    const Fd first(open_uverbs());
    const int low = fcntl(first, F_DUPFD, 300);
    const int high = fcntl(first, F_DUPFD, 310);
    REQUIRE(high >= 0);
    REQUIRE(close_range(static_cast<unsigned>(low), static_cast<unsigned>(high) + 1, 0) == 0);
    CHECK(answer(low) == -1);
    CHECK(answer(high) == -1);
    CHECK(answer(first) == 42);
  }
  SECTION("closing every number there is, as daemons do") {
    CHECK(in_child([] {
            const Fd device(open_uverbs());
            const Fd kept(dup2(device, 1000));
            for (int fd = 3; fd < 1000; ++fd) close(fd);
            if (answer(device) != -1 || errno != EBADF) return 1;
            // The fake device has a descriptor of its own, and so has the tree.
            if (ioctl(kept, kNonblocking, nullptr) != 0) return 2;
            const Fd again(open_uverbs());
            return answer(again) == 42 ? 0 : 3;
          }) == 0);
  }
  SECTION("closefrom") {
    CHECK(in_child([] {
            const Fd device(open_uverbs());
            const Fd kept(dup2(device, 3));
            closefrom(4);
            if (answer(kept) != 42 || ioctl(kept, kNonblocking, nullptr) != 0) return 1;
            closefrom(3);
            if (answer(kept) != -1 || errno != EBADF) return 2;
            const Fd again(open_uverbs());
            return answer(again) == 42 ? 0 : 3;
          }) == 0);
  }
  SECTION("marking for exec only") {
    const Fd device(open_uverbs());
    const int high = fcntl(device, F_DUPFD, 300);
    REQUIRE(close_range(300, ~0U, CLOSE_RANGE_CLOEXEC) == 0);
    CHECK(answer(high) == 42);
    close(high);
  }
  CHECK(files_alive() == before);
}

TEST_CASE("the program may have any number for itself") {
  const Fd device(open_uverbs());
  const Fd null(open("/dev/null", O_WRONLY));
  // The tree's and the fake device's descriptors are among these.
  for (int number = 490; number < 520; ++number) {
    if (fcntl(number, F_GETFD) == -1) continue;
    REQUIRE(dup2(null, number) == number);
    CHECK(write(number, "x", 1) == 1);
    CHECK(close(number) == 0);
  }
  CHECK(ioctl(device, kNonblocking, nullptr) == 0);
  CHECK(access("/sys/class/infiniband/rxe0", F_OK) == 0);
}

TEST_CASE("a forked child's copies of open devices are dead, and devices that it opens work") {
  const Fd device(open_uverbs());
  CHECK(in_child([&] {
          if (write(device, "w", 1) != -1 || errno != EIO) return 1;
          if (answer(device) != -1 || errno != EIO) return 2;
          struct stat status {};
          if (fstat(device, &status) != 0 || !S_ISCHR(status.st_mode)) return 3;
          const Fd again(open_uverbs());
          if (answer(again) != 42) return 4;
          const Fd copy(dup(device));
          if (answer(copy) != -1 || errno != EIO) return 5;
          return close(device) == 0 ? 0 : 6;
        }) == 0);
  CHECK(answer(device) == 42);
}

TEST_CASE("a child that was made by a system call of its own has dead copies, too") {
  const Fd device(open_uverbs());
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0));
  if (child == 0) _exit(answer(device) == -1 && errno == EIO ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(answer(device) == 42);
}

int close_everything(void* kept) {
  for (int fd = 3; fd < 600; ++fd) close(fd);
  dup2(1, *static_cast<const int*>(kept));
  return 0;
}

TEST_CASE("a vfork child that closes everything does not close its parent's devices") {
  const Fd device(open_uverbs());
  int number = device;
  // As vfork, which ThreadSanitizer replaces by fork.
  std::array<char, 65536> stack{};
  const pid_t child = clone(&close_everything, stack.data() + stack.size(),
                            CLONE_VM | CLONE_VFORK | SIGCHLD, &number);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(answer(device) == 42);
  CHECK(access("/sys/class/infiniband/rxe0/node_type", R_OK) == 0);
}

TEST_CASE("the connection manager's descriptor can be polled") {
  const Fd channel(open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC));
  pollfd item = {.fd = channel, .events = POLLIN, .revents = 0};
  CHECK(poll(&item, 1, 0) == 1);
  CHECK((item.revents & POLLIN) != 0);
  struct stat status {};
  REQUIRE(fstat(channel, &status) == 0);
  CHECK(S_ISCHR(status.st_mode));
  CHECK(status.st_rdev == makedev(10, 124));
}

TEST_CASE("netlink for RDMA is refused as by a kernel without it, other netlink is not") {
  constexpr int kNetlinkRdma = 20;
  CHECK(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, kNetlinkRdma) == -1);
  CHECK(errno == EPROTONOSUPPORT);
  const Fd route(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0));
}

void* cancelled_in_write(void* argument) {
  const auto* ends = static_cast<const int*>(argument);
  char byte = 0;
  [[maybe_unused]] const auto got = read(ends[0], &byte, 1);
  return nullptr;
}

TEST_CASE("a thread that waits in a call of another file can still be cancelled") {
  const Fd device(open_uverbs());
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  pthread_t thread{};
  REQUIRE(pthread_create(&thread, nullptr, &cancelled_in_write, ends.data()) == 0);
  REQUIRE(pthread_cancel(thread) == 0);
  void* result = nullptr;
  REQUIRE(pthread_join(thread, &result) == 0);
  CHECK(result == PTHREAD_CANCELED);
  close(ends[0]);
  close(ends[1]);
}

#ifdef __SANITIZE_THREAD__
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

TEST_CASE("a thread that is cancelled ends at a write to a device") {
  if (kThreadSanitizer) return skip("ThreadSanitizer believes that a cancelled write never ends");
  const Fd device(open_uverbs());
  pthread_t thread{};
  const auto work = [](void* argument) -> void* {
    while (write(*static_cast<const int*>(argument), "w", 1) == 1) continue;
    return nullptr;
  };
  int number = device;
  REQUIRE(pthread_create(&thread, nullptr, work, &number) == 0);
  REQUIRE(pthread_cancel(thread) == 0);
  void* result = nullptr;
  REQUIRE(pthread_join(thread, &result) == 0);
  CHECK(result == PTHREAD_CANCELED);
}

// Between a handler and the code that it interrupts.
volatile sig_atomic_t handled = 0;
volatile int handler_fd = -1;

void write_in_handler(int) {
  const int saved = errno;
  if (write(handler_fd, "w", 1) == 1) handled = handled + 1;
  errno = saved;
}

TEST_CASE("signal handlers may write to a device while its thread does") {
  const Fd device(open_uverbs());
  handler_fd = device;
  struct sigaction action {};
  action.sa_handler = &write_in_handler;
  REQUIRE(sigaction(SIGUSR1, &action, nullptr) == 0);
  const pthread_t self = pthread_self();
  std::thread sender([self] {
    for (int i = 0; i < 1000; ++i) pthread_kill(self, SIGUSR1);
  });
  for (int i = 0; i < 10000; ++i) REQUIRE(write(device, "w12", 3) == 3);
  sender.join();
  CHECK(handled > 0);
}

}  // namespace
}  // namespace urxe::test
