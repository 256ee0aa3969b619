// What queue pairs cost that are connected and do nothing: idle COUNT SECONDS. Prints as JSON the
// private memory for each, without its rings (those are shared memory), and how often threads
// woke up and how much processor time went by in SECONDS, in which this program only sleeps.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

#include "tests/bench/programs/verbs_objects.h"

namespace urxe::bench {
namespace {

// Kilobytes of memory that is not shared.
long private_memory() {
  std::ifstream file("/proc/self/status");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("RssAnon:")) return std::strtol(line.c_str() + 8, nullptr, 10);
  }
  die("RssAnon");
}

long switches(const std::string& task) {
  std::ifstream file(task + "/status");
  std::string line;
  long sum = 0;
  while (std::getline(file, line)) {
    if (line.find("voluntary_ctxt_switches:") != std::string::npos) {
      sum += std::strtol(line.c_str() + line.find(':') + 1, nullptr, 10);
    }
  }
  return sum;
}

// Of the threads besides this one.
long switches_of_others() {
  long sum = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() != std::to_string(gettid())) sum += switches(task.path());
  }
  return sum;
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

}  // namespace
}  // namespace urxe::bench

int main(int argc, char** argv) {
  using namespace urxe::bench;
  const auto count = static_cast<std::size_t>(argc > 1 ? std::atoi(argv[1]) : 1000);
  const auto seconds = static_cast<unsigned>(argc > 2 ? std::atoi(argv[2]) : 10);
  const Objects objects = open_first_device(1024);
  make_connected(objects, 2, 16);
  const long memory_before = private_memory();
  make_connected(objects, count, 16);
  const long memory = private_memory() - memory_before;
  usleep(500'000);  // what the making left behind is over
  const long switches_before = switches_of_others();
  const double cpu_before = cpu_seconds();
  sleep(seconds);
  const double cpu = cpu_seconds() - cpu_before;
  std::printf("{\"bytes_per_qp\": %ld, \"wakes\": %ld, \"cpu_seconds\": %.6f}\n",
              memory * 1024 / static_cast<long>(count), switches_of_others() - switches_before,
              cpu);
  return 0;
}
