#include "tests/sim/swarm/runner.h"

#include <algorithm>
#include <atomic>
#include <new>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/swarm/world.h"

namespace urxe::swarm {
namespace {

constexpr std::size_t kMostFailures = 5;
constexpr std::uint64_t kNone = ~std::uint64_t{0};
constexpr unsigned kSecondsPerSeed = 60;  // a seed takes milliseconds

// What the processes share.
struct Board {
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> failures{0};
  std::atomic<std::uint64_t> seeds{0};
  std::atomic<std::uint64_t> packets{0};
  std::atomic<std::uint64_t> messages{0};
  std::atomic<std::uint64_t> retransmissions{0};
  std::atomic<std::uint64_t> placements{0};
  std::atomic<std::uint64_t> refusals{0};
  std::atomic<std::uint64_t> multicasts{0};
  std::array<std::atomic<std::uint64_t>, kMostFailures> failed;

  void note_failure(std::uint64_t seed) {
    const std::size_t i = failures++;
    if (i < failed.size()) failed.at(i) = seed;
  }
};

struct Worker {
  pid_t pid = 0;
  std::atomic<std::uint64_t>* current = nullptr;
};

[[noreturn]] void work(Board& board, std::atomic<std::uint64_t>& current,
                       const std::vector<std::uint64_t>& seeds, const Options& options) {
  while (board.failures < kMostFailures) {
    const std::size_t i = board.next++;
    if (i >= seeds.size()) break;
    current = seeds[i];
    alarm(kSecondsPerSeed);
    const Verdict verdict = play(draw_plan(seeds[i], options.steps, options.draws));
    ++board.seeds;
    board.packets += verdict.packets;
    board.messages += verdict.messages;
    board.retransmissions += verdict.retransmissions;
    board.placements += verdict.placements;
    board.refusals += verdict.refusals;
    board.multicasts += verdict.multicasts;
    if (!verdict.findings.empty()) board.note_failure(seeds[i]);
  }
  _exit(0);
}

// Memory that child processes share with this one.
template <typename T>
T* share(std::size_t count) {
  void* memory =
      mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  for (std::size_t i = 0; i < count; ++i) new (static_cast<T*>(memory) + i) T();
  return static_cast<T*>(memory);
}

}  // namespace

Totals run_seeds(const std::vector<std::uint64_t>& seeds, const Options& options) {
  Board& board = *share<Board>(1);
  auto* currents = share<std::atomic<std::uint64_t>>(options.jobs);
  std::vector<Worker> workers(options.jobs);
  const auto start = [&](std::size_t i) {
    workers[i].current = &currents[i];
    currents[i] = kNone;
    workers[i].pid = fork();
    if (workers[i].pid == 0) work(board, currents[i], seeds, options);
  };
  for (std::size_t i = 0; i < workers.size(); ++i) start(i);
  for (std::size_t running = workers.size(); running > 0;) {
    int status = 0;
    const pid_t ended = wait(&status);
    const auto worker = std::find_if(workers.begin(), workers.end(),
                                     [ended](const Worker& w) { return w.pid == ended; });
    if (worker == workers.end()) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      --running;
      continue;
    }
    board.note_failure(*worker->current);
    start(static_cast<std::size_t>(worker - workers.begin()));
  }
  Totals totals{.seeds = board.seeds,
                .packets = board.packets,
                .messages = board.messages,
                .retransmissions = board.retransmissions,
                .placements = board.placements,
                .refusals = board.refusals,
                .multicasts = board.multicasts,
                .failed = {}};
  for (std::size_t i = 0; i < std::min<std::size_t>(board.failures, kMostFailures); ++i) {
    totals.failed.push_back(board.failed.at(i));
  }
  return totals;
}

}  // namespace urxe::swarm
