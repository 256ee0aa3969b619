// How long ibv_reg_mr takes: reg_mr BYTES. Prints the median in microseconds as JSON.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <sys/mman.h>

#include "tests/bench/programs/verbs_objects.h"

int main(int argc, char** argv) {
  using namespace urxe::bench;
  using Clock = std::chrono::steady_clock;
  constexpr int kRounds = 101;
  const std::size_t size = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 4096;
  void* const area = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (area == MAP_FAILED) die("mmap");
  const Objects objects = open_first_device(16);
  std::vector<double> microseconds;
  for (int i = 0; i < kRounds; ++i) {
    const auto before = Clock::now();
    ibv_mr* const region = ibv_reg_mr(objects.pd, area, size, IBV_ACCESS_LOCAL_WRITE);
    const auto after = Clock::now();
    if (ibv_dereg_mr(made(region, "ibv_reg_mr")) != 0) die("ibv_dereg_mr");
    microseconds.push_back(std::chrono::duration<double, std::micro>(after - before).count());
  }
  std::sort(microseconds.begin(), microseconds.end());
  std::printf("{\"microseconds\": %.2f}\n", microseconds[kRounds / 2]);
  return 0;
}
