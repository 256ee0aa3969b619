// A program that has nothing to do with RDMA and does much of what programs do: its output must not
// depend on whether the library is preloaded.
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

int early_descriptor = -2;

// Runs before any constructor of any library; not with an argument.
void open_early(int argc, char**, char**) {
  if (argc > 1) return;
  early_descriptor = open("/dev/null", O_RDONLY);
  close(early_descriptor);
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const first)(int, char**,
                                                                  char**) = &open_early;

void say(const char* what, long value) { std::printf("%s: %ld\n", what, value); }

std::size_t count_in(const char* path) {
  DIR* directory = opendir(path);
  std::size_t count = 0;
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

void use_files() {
  std::array<int, 2> ends{};
  say("pipe", pipe(ends.data()));
  errno = 11;
  say("write", write(ends[1], "hello", 5));
  say("errno stays", errno);
  int waiting = 0;
  say("ioctl", ioctl(ends[0], FIONREAD, &waiting));
  say("waiting", waiting);
  const int copy = dup(ends[0]);
  say("dup", copy);
  say("dup2", dup2(copy, 30));
  say("F_DUPFD", fcntl(copy, F_DUPFD, 40));
  say("F_GETFL", fcntl(copy, F_GETFL));
  say("close", close(copy));
  say("close again", close(copy));
  say("errno", errno);
  say("close_range", close_range(3, ~0U, 0));
  say("write to closed", write(ends[1], "x", 1));
  say("open nothing", open("/nonexistent", O_RDONLY));
  say("errno", errno);
  say("bad descriptor", openat(77, "gids/infiniband", O_RDONLY));
  say("errno", errno);
}

void use_names() {
  struct stat status {};
  say("stat", stat("/", &status));
  say("is directory", S_ISDIR(status.st_mode) ? 1 : 0);
  say("fstat", fstat(1, &status));
  say("lstat", lstat("/proc/self", &status));
  say("is link", S_ISLNK(status.st_mode) ? 1 : 0);
  say("access", access("/sys/class/net", R_OK));
  say("no RDMA word", access("/sys/class/net/lo/ifindex", R_OK));
  std::array<char, 4096> name{};
  say("chdir", chdir("/usr"));
  std::printf("%s %s\n", getcwd(name.data(), name.size()), realpath("/proc/../usr/./bin", nullptr));
  glob_t found{};
  say("glob", glob("/etc/passw[d]", 0, nullptr, &found));
  globfree(&found);
}

void use_threads() {
  std::atomic<long> sum{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&sum] {
      for (int round = 0; round < 200; ++round) {
        const int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
        struct stat status {};
        sum += fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) ? 1 : 0;
        close(fd);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  say("threads", sum);
}

void use_processes() {
  std::fflush(stdout);
  int status = -1;
  if (fork() == 0) {
    say("child writes", write(-1, "x", 1));
    std::fflush(stdout);
    _exit(3);
  }
  wait(&status);
  say("fork", WEXITSTATUS(status));
  if (vfork() == 0) {
    close(0);
    execl("/bin/sh", "sh", "-c", "exit 4", nullptr);
    _exit(127);
  }
  wait(&status);
  say("vfork and exec", WEXITSTATUS(status));
  pid_t child = 0;
  std::array<char*, 4> arguments = {const_cast<char*>("sh"), const_cast<char*>("-c"),
                                    const_cast<char*>("exit 5"), nullptr};
  posix_spawn(&child, "/bin/sh", nullptr, nullptr, arguments.data(), environ);
  waitpid(child, &status, 0);
  say("posix_spawn", WEXITSTATUS(status));
  FILE* stream = popen("echo from popen", "r");
  std::array<char, 64> line{};
  std::printf("%s", std::fgets(line.data(), line.size(), stream));
  say("pclose", pclose(stream));
}

volatile sig_atomic_t signals = 0;

void on_signal(int) {
  signals = signals + static_cast<int>(write(1, "", 0) == 0);
  close(open("/dev/null", O_RDONLY));
}

void use_signals() {
  struct sigaction action {};
  action.sa_handler = &on_signal;
  sigaction(SIGUSR1, &action, nullptr);
  for (int i = 0; i < 10; ++i) raise(SIGUSR1);
  say("signals", signals);
}

}  // namespace

int main() {
  say("early descriptor", early_descriptor);
  say("descriptors", static_cast<long>(count_in("/proc/self/fd")));
  use_files();
  use_names();
  use_threads();
  use_processes();
  use_signals();
  say("threads in the end", static_cast<long>(count_in("/proc/self/task")));
  say("descriptors in the end", static_cast<long>(count_in("/proc/self/fd")));
  return 6;
}
