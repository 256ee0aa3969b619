// Two processes, a server and a client, on a processor each, that measure something between them.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include <netinet/in.h>

namespace urxe::bench {

struct Options {
  std::string kind;
  std::string address = "127.0.0.1";  // the server's
  std::optional<std::string> netns;   // of the server, by its name in /run/netns
  int server_cpu = 1;
  int client_cpu = 0;
  double seconds = 1.0;
  std::size_t size = 65536;          // bytes: of a write, or of a datagram
  std::string server_wait = "spin";  // spin, block, flag
  std::string client_wait = "spin";
};

// What both processes see.
struct Shared {
  std::atomic<int> port{0};  // the server listens on it
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> bytes{0};      // that the server received
  std::atomic<std::uint64_t> all_bytes{0};  // with those that came before it measured
  std::atomic<std::uint64_t> packets{0};
  std::atomic<std::uint64_t> nanoseconds{0};  // in which it received them
};

[[noreturn]] void die(const char* what);
// `result`, unless it is negative: then the program ends with what errno says.
int check(int result, const char* what);

std::uint64_t now_ns();  // CLOCK_MONOTONIC
sockaddr_in address_of(const std::string& text, int port);
int open_socket(int type);
void set_option(int socket, int level, int option, int value);
// Binds to the server's address and any port, and says which.
void bind_server(int socket, const Options& options, Shared& shared);
sockaddr_in wait_for_server(const Options& options, const Shared& shared);

using Role = void (*)(const Options&, Shared&);
struct Outcome {
  std::uint64_t bytes;
  std::uint64_t packets;
  double seconds;
  double cpu_seconds_per_byte;  // of both processes
};
// Forks; the child is the server. Both end when their function returns.
Outcome run_two(const Options& options, Role server, Role client);

}  // namespace urxe::bench
