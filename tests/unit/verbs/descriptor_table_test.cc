#include "verbs/preload/descriptor_table.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs/preload/private_descriptor.h"

namespace urxe::verbs {
namespace {

class CountedFile : public EmulatedFile {
 public:
  explicit CountedFile(std::atomic<int>& alive) : alive_(alive) { ++alive_; }
  CountedFile(const CountedFile&) = delete;
  CountedFile& operator=(const CountedFile&) = delete;
  ~CountedFile() override { --alive_; }
  [[nodiscard]] dev_t device_number() const override { return 231; }
  ssize_t write(const void*, std::size_t size) override { return static_cast<ssize_t>(size); }
  int ioctl(unsigned long, void*) override { return -ENOTTY; }

 private:
  std::atomic<int>& alive_;
};

int open_backing() {
  const int fd = memfd_create("urxe-test", MFD_CLOEXEC);
  REQUIRE(fd >= 0);
  return fd;
}

struct Opened {
  std::atomic<int> alive{0};
  int fd = open_backing();

  Opened() { REQUIRE(descriptors.insert(fd, std::make_shared<CountedFile>(alive))); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() { close_one(fd); }

  static void close_one(int number) {
    descriptors.remove(number);
    close(number);
  }
};

TEST_CASE("a descriptor that was not inserted is not ours") {
  const int fd = open_backing();
  CHECK_FALSE(descriptors.holds(fd));
  CHECK_FALSE(descriptors.find(fd));
  CHECK_FALSE(descriptors.holds(-1));
  CHECK_FALSE(descriptors.find(-1));
  CHECK_FALSE(descriptors.holds(INT32_MAX));
  close(fd);
}

TEST_CASE("a descriptor that was inserted leads to its file, until it is removed") {
  Opened opened;
  REQUIRE(descriptors.holds(opened.fd));
  const auto reference = descriptors.find(opened.fd);
  REQUIRE(reference);
  CHECK(reference.file()->write("abc", 3) == 3);
  CHECK(reference.device_number() == 231);
  CHECK_FALSE(reference.is_private());
  descriptors.remove(opened.fd);
  CHECK_FALSE(descriptors.holds(opened.fd));
  CHECK_FALSE(descriptors.find(opened.fd));
}

TEST_CASE("a file is destroyed with its last descriptor") {
  Opened opened;
  const int copy = dup(opened.fd);
  descriptors.copy(opened.fd, copy);
  Opened::close_one(opened.fd);
  CHECK(opened.alive == 1);
  CHECK(descriptors.find(copy));
  Opened::close_one(copy);
  CHECK(opened.alive == 0);
  opened.fd = -1;
}

TEST_CASE("a file outlives its last descriptor while a call is in progress") {
  Opened opened;
  {
    const auto reference = descriptors.find(opened.fd);
    descriptors.remove(opened.fd);
    CHECK(opened.alive == 1);
    CHECK(reference.file() != nullptr);
  }
  CHECK(opened.alive == 0);
}

TEST_CASE("copying onto one of our descriptors lets go of what was there") {
  Opened source;
  Opened target;
  REQUIRE(dup2(source.fd, target.fd) == target.fd);
  descriptors.copy(source.fd, target.fd);
  CHECK(target.alive == 0);
  CHECK(source.alive == 1);
  CHECK(descriptors.find(target.fd).file() == descriptors.find(source.fd).file());
}

TEST_CASE("copying a stranger onto one of our descriptors makes it a stranger") {
  Opened target;
  const int stranger = open_backing();
  REQUIRE(dup2(stranger, target.fd) == target.fd);
  descriptors.copy(stranger, target.fd);
  CHECK_FALSE(descriptors.holds(target.fd));
  CHECK(target.alive == 0);
  close(stranger);
}

TEST_CASE("a number that was closed behind our back and given away is found out") {
  Opened opened;
  CHECK(descriptors.find(opened.fd).is_open_on(opened.fd));
  const int other = open_backing();
  REQUIRE(dup2(other, opened.fd) == opened.fd);
  CHECK_FALSE(descriptors.find(opened.fd).is_open_on(opened.fd));
  const int copy = dup(opened.fd);
  descriptors.copy(opened.fd, copy);
  CHECK_FALSE(descriptors.holds(copy));
  CHECK_FALSE(descriptors.holds(opened.fd));
  close(copy);
  close(other);
}

TEST_CASE("descriptors are found by range, however far apart") {
  Opened opened;
  const int far = fcntl(opened.fd, F_DUPFD_CLOEXEC, 900);
  REQUIRE(far >= 900);
  descriptors.copy(opened.fd, far);
  const auto last = static_cast<std::uint64_t>(far);
  CHECK(descriptors.next(0, 1U << 30) == static_cast<std::uint64_t>(opened.fd));
  CHECK(descriptors.next(last, last) == last);
  CHECK(descriptors.next(last + 1, UINT32_MAX) == std::uint64_t{UINT32_MAX} + 1);
  Opened::close_one(far);
}

TEST_CASE("a private descriptor has a high number and no file") {
  PrivateDescriptor descriptor(open_backing());
  REQUIRE(descriptor.number() >= 500);
  REQUIRE(descriptors.holds(descriptor.number()));
  CHECK(descriptors.find(descriptor.number()).is_private());
  CHECK(descriptors.find(descriptor.number()).file() == nullptr);
  const int number = descriptor.number();
  descriptor.close();
  CHECK(descriptor.number() == -1);
  CHECK_FALSE(descriptors.holds(number));
  CHECK(fcntl(number, F_GETFD) == -1);
}

// To enlarge the kernel's table later would stop the thread that moves the packets.
TEST_CASE("the first private descriptor makes the process's table large enough for all") {
  const PrivateDescriptor descriptor(open("/dev/null", O_RDWR | O_CLOEXEC));
  std::ifstream status("/proc/self/status");
  std::string name;
  unsigned long size = 0;
  while (status >> name && name != "FDSize:") {
  }
  REQUIRE(status >> size);
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK((size >= 1024 || limit.rlim_cur < 1024));
}

TEST_CASE("a private descriptor makes room for the program and stays open") {
  PrivateDescriptor descriptor(open_backing());
  const int before = descriptor.number();
  CHECK(descriptors.move_away(before));
  CHECK(descriptor.number() != before);
  CHECK_FALSE(descriptors.holds(before));
  CHECK(descriptors.find(descriptor.number()).is_private());
  CHECK(fcntl(descriptor.number(), F_GETFD) >= 0);
  close(before);
}

TEST_CASE("a private descriptor makes room although no number above is free") {
  PrivateDescriptor descriptor(open_backing());
  const int before = descriptor.number();
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit low{.rlim_cur = static_cast<rlim_t>(before) + 1, .rlim_max = limit.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
  errno = 0;
  const bool moved = descriptors.move_away(before);
  const int error = errno;
  setrlimit(RLIMIT_NOFILE, &limit);
  REQUIRE(moved);
  CHECK(error == 0);
  CHECK(descriptor.number() < before);
  CHECK(descriptors.find(descriptor.number()).is_private());
  CHECK_FALSE(descriptors.holds(before));
  close(before);
}

// Runs `check` in a forked child; returns what it returned.
int in_child(const std::function<int()>& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("in a forked child the file is dead, is not destroyed, and a new one works") {
  Opened opened;
  std::atomic<int>& alive = opened.alive;
  CHECK(in_child([&] {
          if (descriptors.find(opened.fd).file() != nullptr) return 1;
          if (descriptors.find(opened.fd).device_number() != 231) return 2;
          Opened::close_one(opened.fd);
          if (alive != 1) return 3;
          const Opened again;
          return descriptors.find(again.fd).file() != nullptr ? 0 : 4;
        }) == 0);
  CHECK(descriptors.find(opened.fd).file() != nullptr);
}

TEST_CASE("a grandchild's files are dead, too, when its parent opened them") {
  Opened opened;
  CHECK(in_child([] {
          const Opened in_the_middle;
          return in_child(
              [&] { return descriptors.find(in_the_middle.fd).file() == nullptr ? 0 : 1; });
        }) == 0);
}

TEST_CASE("a vfork child is not the process that owns the table") {
  const Opened opened;
  CHECK(descriptors.is_own_process());
  // As vfork, which ThreadSanitizer replaces by fork.
  std::array<char, 65536> stack{};
  const auto check = [](void*) { return descriptors.is_own_process() ? 1 : 0; };
  const pid_t child =
      clone(check, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK | SIGCHLD, nullptr);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(descriptors.find(opened.fd).file() != nullptr);
}

TEST_CASE("threads may call, copy and close at once, and in the end nothing is left") {
  constexpr int kRounds = 2000;
  std::atomic<int> alive{0};
  std::atomic<bool> done{false};
  const int fd = open_backing();
  std::vector<std::thread> callers;
  for (int i = 0; i < 2; ++i) {
    callers.emplace_back([&] {
      while (!done) {
        const auto reference = descriptors.find(fd);
        if (reference && reference.file() != nullptr) reference.file()->write("x", 1);
      }
    });
  }
  for (int round = 0; round < kRounds; ++round) {
    REQUIRE(descriptors.insert(fd, std::make_shared<CountedFile>(alive)));
    const int copy = dup(fd);
    descriptors.copy(fd, copy);
    descriptors.remove(fd);
    Opened::close_one(copy);
  }
  done = true;
  for (std::thread& caller : callers) caller.join();
  CHECK(alive == 0);
  close(fd);
}

TEST_CASE("a call never finds the file of another descriptor, though entries are used again") {
  constexpr int kRounds = 300000;
  std::atomic<int> mine_alive{0};
  std::atomic<int> other_alive{0};
  std::atomic<bool> done{false};
  std::atomic<int> strangers{0};
  const int mine = open_backing();
  const int other = open_backing();
  const auto file = std::make_shared<CountedFile>(mine_alive);
  std::thread caller([&] {
    while (!done) {
      const auto reference = descriptors.find(mine);
      if (reference && reference.file() != file.get()) ++strangers;
    }
  });
  // Each takes the entry that the other has just let go of.
  const auto other_file = std::make_shared<CountedFile>(other_alive);
  for (int round = 0; round < kRounds; ++round) {
    descriptors.insert(mine, file);
    descriptors.insert(other, other_file);
  }
  done = true;
  caller.join();
  CHECK(strangers == 0);
  descriptors.remove(mine);
  descriptors.remove(other);
  close(mine);
  close(other);
}

}  // namespace
}  // namespace urxe::verbs
