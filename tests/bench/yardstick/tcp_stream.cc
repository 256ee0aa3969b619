#include <cerrno>
#include <vector>

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/yardstick/meter.h"
#include "tests/bench/yardstick/streams.h"

namespace urxe::bench {
namespace {

constexpr std::size_t kReadSize = 256 * 1024;

void serve(const Options& options, Shared& shared) {
  const int listener = open_socket(SOCK_STREAM);
  bind_server(listener, options, shared);
  const int peer = check(accept(listener, nullptr, nullptr), "accept");
  const int flags = options.server_wait == "spin" ? MSG_DONTWAIT : 0;
  std::vector<char> buffer(kReadSize);
  Meter meter(options.seconds);
  while (!meter.is_over()) {
    const ssize_t got = recv(peer, buffer.data(), buffer.size(), flags);
    if (got == 0) break;
    if (got > 0) meter.add(static_cast<std::size_t>(got), 1);
    if (got < 0 && errno != EAGAIN) die("recv");
  }
  meter.report(shared);
}

void send_all(const Options& options, Shared& shared) {
  const sockaddr_in server = wait_for_server(options, shared);
  const int peer = open_socket(SOCK_STREAM);
  check(connect(peer, reinterpret_cast<const sockaddr*>(&server), sizeof(server)), "connect");
  const std::vector<char> buffer(options.size, 'x');
  while (send(peer, buffer.data(), buffer.size(), MSG_NOSIGNAL) > 0) {
  }
}

}  // namespace

Outcome measure_tcp(const Options& options) { return run_two(options, serve, send_all); }

}  // namespace urxe::bench
