// What sockets and memory of this machine can do, to hold urxe against: small programs without
// tricks. One line of JSON each. tests/bench/run starts them.
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/bench/yardstick/message_cost.h"
#include "tests/bench/yardstick/ping_pong.h"
#include "tests/bench/yardstick/streams.h"
#include "tests/bench/yardstick/two_processes.h"

namespace urxe::bench {
namespace {

constexpr const char* kUsage =
    "usage: yardstick tcp|udp-gso|udp-mmsg|udp-pingpong|tcp-pingpong|udp-cost|memcpy\n"
    "       [--address A]\n"
    "       [--netns NAME] [--seconds S] [--size BYTES] [--server-cpu N] [--client-cpu N]\n"
    "       [--server-wait spin|block|flag] [--client-wait spin|block|flag]\n";

int print_stream(Outcome (*measure)(const Options&), const Options& options) {
  const Outcome outcome = measure(options);
  const auto bytes = static_cast<double>(outcome.bytes);
  std::printf("{\"gbps\": %.3f, \"mpps\": %.4f, \"cpu_s_per_gb\": %.4f}\n",
              bytes * 8e-9 / outcome.seconds,
              static_cast<double>(outcome.packets) * 1e-6 / outcome.seconds,
              outcome.cpu_seconds_per_byte * 1e9);
  return 0;
}

int print_ping_pong(const Options& options) {
  const std::vector<std::uint64_t> sorted = measure_ping_pong(options);
  const auto at = [&](double part) {
    return static_cast<double>(
               sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))]) *
           1e-3;
  };
  std::printf("{\"typical_us\": %.2f, \"p99_us\": %.2f, \"round_trips\": %zu}\n", at(0.5), at(0.99),
              sorted.size());
  return 0;
}

// Large enough to come from memory, not from a cache.
int print_memcpy(const Options& options) {
  constexpr std::size_t kArea = 256 << 20;
  std::vector<char> from(kArea, 'x');
  std::vector<char> to(kArea, 'y');
  const std::uint64_t begin = now_ns();
  const std::uint64_t end = begin + static_cast<std::uint64_t>(options.seconds * 1e9);
  std::uint64_t bytes = 0;
  while (now_ns() < end) {
    for (std::size_t at = 0; at + options.size <= kArea; at += options.size) {
      std::memcpy(to.data() + at, from.data() + at, options.size);
      bytes += options.size;
    }
  }
  std::printf("{\"gbps\": %.3f}\n",
              static_cast<double>(bytes) * 8 / static_cast<double>(now_ns() - begin));
  return to[0] == 'x' ? 0 : 1;
}

bool apply(Options& options, const std::string& name, const char* value) {
  if (name == "--address")
    options.address = value;
  else if (name == "--netns")
    options.netns = value;
  else if (name == "--seconds")
    options.seconds = std::strtod(value, nullptr);
  else if (name == "--size")
    options.size = std::strtoul(value, nullptr, 10);
  else if (name == "--server-cpu")
    options.server_cpu = std::atoi(value);
  else if (name == "--client-cpu")
    options.client_cpu = std::atoi(value);
  else if (name == "--server-wait")
    options.server_wait = value;
  else if (name == "--client-wait")
    options.client_wait = value;
  else
    return false;
  return true;
}

int run(const Options& options) {
  if (options.kind == "tcp") return print_stream(measure_tcp, options);
  if (options.kind == "udp-gso") return print_stream(measure_udp_segmented, options);
  if (options.kind == "udp-mmsg") return print_stream(measure_udp_single, options);
  if (options.kind.ends_with("-pingpong")) return print_ping_pong(options);
  if (options.kind == "udp-cost") return print_message_costs(options);
  if (options.kind == "memcpy") return print_memcpy(options);
  std::fputs(kUsage, stderr);
  return 2;
}

}  // namespace
}  // namespace urxe::bench

int main(int argc, char** argv) {
  urxe::bench::Options options;
  if (argc > 1) options.kind = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    if (urxe::bench::apply(options, argv[i], argv[i + 1])) continue;
    std::fputs(urxe::bench::kUsage, stderr);
    return 2;
  }
  return urxe::bench::run(options);
}
