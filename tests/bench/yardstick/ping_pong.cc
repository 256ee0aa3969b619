#include "tests/bench/yardstick/ping_pong.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <thread>

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace urxe::bench {
namespace {

constexpr std::size_t kMaxMessage = 65536;
constexpr std::size_t kMaxRoundTrips = 4'000'000;

std::vector<std::uint64_t> round_trips;

// A connected socket and a way to wait for the next message on it.
class Waiter {
 public:
  Waiter(int socket, const std::string& how, std::size_t size)
      : socket_(socket), spins_(how == "spin"), size_(size) {
    if (how == "flag") helper_ = std::thread([this] { help(); });
  }
  ~Waiter() {
    if (!helper_.joinable()) return;
    shutdown(socket_, SHUT_RDWR);
    helper_.join();
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // False when the peer is gone.
  bool receive() { return helper_.joinable() ? watch() : read_whole(spins_); }
  void send() {
    if (::send(socket_, buffer_.data(), size_, MSG_NOSIGNAL) < 0) gone_.store(true);
  }

 private:
  bool read_whole(bool spin) {
    std::size_t had = 0;
    while (had < size_) {
      const ssize_t got = recv(socket_, buffer_.data() + had, size_ - had, spin ? MSG_DONTWAIT : 0);
      if (got == 0) return false;
      if (got > 0) had += static_cast<std::size_t>(got);
      if (got < 0 && errno != EAGAIN) return false;
    }
    return true;
  }
  bool watch() {
    while (arrived_.load(std::memory_order_acquire) == seen_) {
      if (gone_.load(std::memory_order_relaxed)) return false;
    }
    ++seen_;
    return true;
  }
  void help() {
    while (read_whole(false)) arrived_.fetch_add(1, std::memory_order_release);
    gone_.store(true);
  }

  int socket_;
  bool spins_;
  std::size_t size_;
  std::array<char, kMaxMessage> buffer_{};
  std::atomic<std::uint64_t> arrived_{0};
  std::atomic<bool> gone_{false};
  std::uint64_t seen_ = 0;
  std::thread helper_;
};

bool is_tcp(const Options& options) { return options.kind == "tcp-pingpong"; }

int accept_peer(const Options& options, Shared& shared) {
  const int socket = open_socket(is_tcp(options) ? SOCK_STREAM : SOCK_DGRAM);
  bind_server(socket, options, shared);
  sockaddr_in peer{};
  socklen_t size = sizeof(peer);
  auto* const address = reinterpret_cast<sockaddr*>(&peer);
  if (is_tcp(options)) return check(accept(socket, address, &size), "accept");
  char first = 0;
  check(static_cast<int>(recvfrom(socket, &first, 1, 0, address, &size)), "recvfrom");
  check(connect(socket, address, size), "connect");
  check(static_cast<int>(::send(socket, &first, 1, 0)), "send");
  return socket;
}

int connect_to(const Options& options, const Shared& shared) {
  const sockaddr_in server = wait_for_server(options, shared);
  const int socket = open_socket(is_tcp(options) ? SOCK_STREAM : SOCK_DGRAM);
  check(connect(socket, reinterpret_cast<const sockaddr*>(&server), sizeof(server)), "connect");
  if (is_tcp(options)) return socket;
  char first = 'x';
  check(static_cast<int>(::send(socket, &first, 1, 0)), "send");
  check(static_cast<int>(recv(socket, &first, 1, 0)), "recv");
  return socket;
}

void serve(const Options& options, Shared& shared) {
  const int socket = accept_peer(options, shared);
  if (is_tcp(options)) set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  const auto waiter = std::make_unique<Waiter>(socket, options.server_wait, options.size);
  // The client's last message finds `stop` set.
  while (waiter->receive() && !shared.stop.load(std::memory_order_relaxed)) waiter->send();
}

void measure(const Options& options, Shared& shared) {
  const int socket = connect_to(options, shared);
  if (is_tcp(options)) set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  const auto waiter = std::make_unique<Waiter>(socket, options.client_wait, options.size);
  const std::uint64_t end = now_ns() + static_cast<std::uint64_t>(options.seconds * 1e9);
  round_trips.reserve(kMaxRoundTrips);
  std::uint64_t before = now_ns();
  while (before < end && round_trips.size() < kMaxRoundTrips) {
    waiter->send();
    if (!waiter->receive()) die("the server is gone");
    const std::uint64_t after = now_ns();
    round_trips.push_back(after - before);
    before = after;
  }
  shared.stop.store(true);
  waiter->send();
}

}  // namespace

std::vector<std::uint64_t> measure_ping_pong(const Options& options) {
  run_two(options, serve, measure);
  std::sort(round_trips.begin(), round_trips.end());
  return round_trips;
}

}  // namespace urxe::bench
