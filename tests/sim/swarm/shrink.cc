#include "tests/sim/swarm/shrink.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/swarm/world.h"

namespace urxe::swarm {
namespace {

constexpr unsigned kSecondsPerTry = 20;

std::string read_all(int fd) {
  std::string text;
  std::array<char, 512> buffer;
  for (ssize_t n = 0; (n = read(fd, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return text;
}

[[noreturn]] void play_and_tell(const Plan& plan, Capture* capture, int fd) {
  alarm(kSecondsPerTry);
  const Verdict verdict = play(plan, capture);
  if (!verdict.findings.empty()) {
    const std::string& sentence = verdict.findings.front();
    static_cast<void>(!write(fd, sentence.data(), sentence.size()));
  }
  _exit(0);
}

// Delta debugging (Zeller, Hildebrandt 2002), the plain way: leave out halves, quarters ...
class Shrinker {
 public:
  Shrinker(const Plan& plan, const std::function<bool(const Plan&)>& plan_fails, int tries)
      : plan_(plan), plan_fails_(plan_fails), tries_(tries) {}

  Plan run() {
    Numbers steps(plan_.steps.size());
    Numbers faults(plan_.faults.size());
    std::iota(steps.begin(), steps.end(), 0);
    std::iota(faults.begin(), faults.end(), 0);
    reduce(faults, [&](const auto& fewer) { return fails(steps, fewer); });
    reduce(steps, [&](const auto& fewer) { return fails(fewer, faults); });
    reduce(faults, [&](const auto& fewer) { return fails(steps, fewer); });
    return part(steps, faults);
  }

 private:
  using Numbers = std::vector<std::size_t>;  // places in plan_

  [[nodiscard]] Plan part(const Numbers& steps, const Numbers& faults) const {
    return part_of(plan_, steps, faults);
  }
  bool fails(const Numbers& steps, const Numbers& faults) {
    return tries_-- > 0 && plan_fails_(part(steps, faults));
  }

  template <typename Fails>
  void reduce(Numbers& numbers, Fails still_fails) {
    for (std::size_t piece = numbers.size(); piece > 0; piece /= 2) {
      for (std::size_t at = 0; at < numbers.size();) {
        Numbers fewer = numbers;
        const auto first = fewer.begin() + static_cast<std::ptrdiff_t>(at);
        const auto count = std::min(piece, fewer.size() - at);
        fewer.erase(first, first + static_cast<std::ptrdiff_t>(count));
        if (still_fails(fewer)) {
          numbers = fewer;
        } else {
          at += piece;
        }
      }
    }
  }

  const Plan& plan_;
  const std::function<bool(const Plan&)>& plan_fails_;
  int tries_;
};

}  // namespace

std::string try_plan(const Plan& plan, Capture* capture) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return "no pipe";
  const pid_t child = fork();
  if (child < 0) return "no process";
  if (child == 0) {
    close(ends[0]);
    play_and_tell(plan, capture, ends[1]);
  }
  close(ends[1]);
  std::string sentence = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return std::string("it ended by ") + strsignal(WTERMSIG(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0 && sentence.empty()) {
    return "it ended with status " + std::to_string(WEXITSTATUS(status));
  }
  return sentence;
}

Plan shrink(const Plan& plan, int tries) {
  return shrink(
      plan, [](const Plan& part) { return !try_plan(part).empty(); }, tries);
}

Plan shrink(const Plan& plan, const std::function<bool(const Plan&)>& fails, int tries) {
  return Shrinker(plan, fails, tries).run();
}

}  // namespace urxe::swarm
