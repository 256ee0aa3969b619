// What programs do that a device in the kernel never minds. A signal stops them while they poll,
// and its handler forks or exits, though POSIX promises neither in a library; and more:
// verbs_interrupted fork | exit SIGNALS | vfork | locks
//
// fork: a hundred handlers fork, the children end, and the program then still moves data: status 0.
// exit: the handler of the given signal calls exit: status 42.
// vfork: a vfork child takes all descriptors and handlers for its own; the parent still moves data.
// locks: one thread makes and destroys completion channels, one reads what sysfs has of the device.
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/compat/checker/bench.h"
#include "tests/compat/checker/check.h"
#include "tests/compat/checker/memory.h"
#include "tests/compat/checker/patience.h"

namespace checker {
namespace {

constexpr int kForks = 100;
constexpr int kExitStatus = 42;
constexpr suseconds_t kUntilSignal = 300;  // us

volatile std::sig_atomic_t signals = 0;
volatile std::sig_atomic_t last_signal = 0;
volatile std::sig_atomic_t failed_children = 0;

// Every other child runs what exit runs.
void fork_and_wait() {
  const pid_t child = fork();
  if (child == 0 && signals % 2 == 0) _exit(0);
  if (child == 0) exit(0);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (child < 0 || status != 0) failed_children = failed_children + 1;
}

void on_fork_signal(int) {
  const int saved = errno;
  if (signals < last_signal) {
    signals = signals + 1;
    fork_and_wait();
  }
  errno = saved;
}

void on_exit_signal(int) {
  signals = signals + 1;
  if (signals == last_signal) exit(kExitStatus);
}

// One at a time: a second one that waited while the handler ran would stop the program at the same
// place again.
void order_signal() {
  const itimerval timer{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = kUntilSignal}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

// Polls a queue that stays empty, which takes the device's lock each time, until `count` came.
void poll_under_signals(ibv_cq* cq, void (*handler)(int), int count) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  last_signal = count;
  const Deadline deadline;
  ibv_wc completion{};
  int ordered = 0;
  while (signals < last_signal) {
    if (ordered == signals) {
      ++ordered;
      order_signal();
    }
    if (ibv_poll_cq(cq, 1, &completion) != 0) fail("a completion that nothing gave rise to");
    if (deadline.passed()) fail("%d of %d signals came", signals, last_signal);
  }
}

void move_data(const Device& device, LocalPair& pair) {
  constexpr Piece kSource{.offset = 0, .length = 100};
  constexpr Piece kTarget{.offset = 1000, .length = kSource.length};
  Memory memory(device.pd(), 2000, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  const auto data = pattern(1, kSource.length);
  memory.write({kSource}, data);
  pair.post({.opcode = IBV_WR_RDMA_WRITE,
             .list = memory.list({kSource}),
             .remote_address = memory.address(kTarget.offset),
             .rkey = memory.rkey()});
  const Done done = pair.active_end("a WRITE");
  if (done.status != IBV_WC_SUCCESS) fail("a WRITE: %s", ibv_wc_status_str(done.status));
  memory.expect({kTarget}, data);
  memory.check("a WRITE");
}

void on_fault(int) { _exit(3); }

// Only such calls as a shell or Python make between vfork and exec.
int take_all(void*) {
  constexpr int kDescriptors = 600;
  for (int fd = 3; fd < kDescriptors; ++fd) close(fd);
  for (int fd = 3; fd < kDescriptors; ++fd) dup(1);
  signal(SIGBUS, SIG_DFL);
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGSEGV, &standard, nullptr);
  return 0;
}

void vfork_and_wait() {
  signal(SIGSEGV, &on_fault);
  signal(SIGBUS, &on_fault);
  alignas(16) static std::array<char, 65536> stack;
  // As vfork, which ThreadSanitizer replaces by fork.
  const pid_t child =
      clone(&take_all, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK | SIGCHLD, nullptr);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) fail("vfork: %d", status);
  for (const int faulty : {SIGSEGV, SIGBUS}) {
    struct sigaction now {};
    sigaction(faulty, nullptr, &now);
    if (now.sa_handler != &on_fault) fail("the child took the parent's handler");
  }
}

// With a file of POSIX shared memory open, which is where the emulated tree may lie.
void use_channels_and_sysfs(ibv_context* context) {
  constexpr int kRounds = 3000;
  const int shared = shm_open("/verbs_interrupted", O_RDWR | O_CREAT, 0600);
  if (shared < 0) fail_with_errno("shm_open");
  shm_unlink("/verbs_interrupted");
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) std::ifstream("/sys/class/infiniband/rxe0/ports/1/gids/0").get();
  });
  for (int i = 0; i < kRounds; ++i)
    succeeds(ibv_destroy_comp_channel(
                 exists(ibv_create_comp_channel(context), "ibv_create_comp_channel")),
             "ibv_destroy_comp_channel");
  done = true;
  reader.join();
  close(shared);
}

void run(const Options& options, const std::string& way, int count) {
  const Device device(options);
  LocalPair pair(device, options, {});
  ibv_cq* const cq = pair.active()->send_cq;
  if (way == "fork") {
    poll_under_signals(cq, &on_fork_signal, kForks);
    if (failed_children != 0) fail("%d children failed", failed_children);
  } else if (way == "exit") {
    poll_under_signals(cq, &on_exit_signal, count);
    fail("the program lived on after exit");
  } else if (way == "vfork") {
    vfork_and_wait();
  } else if (way == "locks") {
    use_channels_and_sysfs(device.context());
  } else {
    fail("%s: fork, exit SIGNALS, vfork or locks", way.c_str());
  }
  move_data(device, pair);
}

}  // namespace
}  // namespace checker

int main(int argc, char** argv) {
  const std::string way = argc > 1 ? argv[1] : "";
  checker::run({}, way, argc > 2 ? std::atoi(argv[2]) : 1);
  return 0;
}
