#include "tests/bench/yardstick/two_processes.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <new>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace urxe::bench {
namespace {

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  check(sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

void enter_netns(const std::string& name) {
  const std::string path = "/run/netns/" + name;
  const int file = check(open(path.c_str(), O_RDONLY | O_CLOEXEC), path.c_str());
  check(setns(file, CLONE_NEWNET), "setns");
  close(file);
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double cpu_seconds(const rusage& usage) {
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

[[noreturn]] void be_server(const Options& options, Shared& shared, Role server) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (options.netns) enter_netns(*options.netns);
  pin(options.server_cpu);
  server(options, shared);
  std::exit(0);
}

}  // namespace

void die(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

int check(int result, const char* what) {
  if (result < 0) die(what);
  return result;
}

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

sockaddr_in address_of(const std::string& text, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1) die(text.c_str());
  return address;
}

int open_socket(int type) { return check(socket(AF_INET, type | SOCK_CLOEXEC, 0), "socket"); }

void set_option(int socket, int level, int option, int value) {
  check(setsockopt(socket, level, option, &value, sizeof(value)), "setsockopt");
}

void bind_server(int socket, const Options& options, Shared& shared) {
  sockaddr_in address = address_of(options.address, 0);
  socklen_t size = sizeof(address);
  check(bind(socket, reinterpret_cast<sockaddr*>(&address), size), "bind");
  if (options.kind.starts_with("tcp")) check(listen(socket, 1), "listen");
  check(getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
  shared.port.store(ntohs(address.sin_port));
}

sockaddr_in wait_for_server(const Options& options, const Shared& shared) {
  const std::uint64_t patience = now_ns() + 10'000'000'000;
  while (shared.port.load() == 0) {
    if (now_ns() > patience) die("the server does not start");
    usleep(1000);
  }
  return address_of(options.address, shared.port.load());
}

Outcome run_two(const Options& options, Role server, Role client) {
  void* page =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) die("mmap");
  auto& shared = *new (page) Shared;
  const pid_t child = check(fork(), "fork");
  if (child == 0) be_server(options, shared, server);
  pin(options.client_cpu);
  client(options, shared);
  int status = 0;
  rusage theirs{};
  check(wait4(child, &status, 0, &theirs), "wait4");
  if (status != 0) std::exit(1);
  rusage ours{};
  getrusage(RUSAGE_SELF, &ours);
  return {.bytes = shared.bytes.load(),
          .packets = shared.packets.load(),
          .seconds = static_cast<double>(shared.nanoseconds.load()) * 1e-9,
          .cpu_seconds_per_byte = (cpu_seconds(ours) + cpu_seconds(theirs)) /
                                  static_cast<double>(shared.all_bytes.load())};
}

}  // namespace urxe::bench
