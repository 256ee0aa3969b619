#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include <netinet/udp.h>
#include <sys/socket.h>

#include "tests/bench/yardstick/meter.h"
#include "tests/bench/yardstick/streams.h"

namespace urxe::bench {
namespace {

constexpr std::size_t kBuffers = 64;         // in one call of sendmmsg or recvmmsg
constexpr std::size_t kMaxDatagram = 65507;  // bytes of UDP payload
constexpr std::size_t kMaxSegments = 64;
constexpr int kSocketBuffer = 4 * 1024 * 1024;

void enlarge(int socket, int option, int forced) {
  int size = kSocketBuffer;
  if (setsockopt(socket, SOL_SOCKET, forced, &size, sizeof(size)) == 0) return;
  set_option(socket, SOL_SOCKET, option, size);
}

int open_receiver(const Options& options, Shared& shared) {
  const int socket = open_socket(SOCK_DGRAM);
  enlarge(socket, SO_RCVBUF, SO_RCVBUFFORCE);
  if (options.kind == "udp-gso") set_option(socket, IPPROTO_UDP, UDP_GRO, 1);
  bind_server(socket, options, shared);
  return socket;
}

int open_sender(const Options& options, const Shared& shared) {
  const sockaddr_in server = wait_for_server(options, shared);
  const int socket = open_socket(SOCK_DGRAM);
  enlarge(socket, SO_SNDBUF, SO_SNDBUFFORCE);
  check(connect(socket, reinterpret_cast<const sockaddr*>(&server), sizeof(server)), "connect");
  return socket;
}

// Buffers for many datagrams, one after the other.
class Batch {
 public:
  explicit Batch(std::size_t size) : bytes_(kBuffers * size, 'x') {
    for (std::size_t i = 0; i < kBuffers; ++i) {
      parts_[i] = {.iov_base = bytes_.data() + i * size, .iov_len = size};
      headers_[i] = {};
      headers_[i].msg_hdr.msg_iov = &parts_[i];
      headers_[i].msg_hdr.msg_iovlen = 1;
    }
  }
  mmsghdr* headers() { return headers_.data(); }

 private:
  std::vector<char> bytes_;
  std::array<iovec, kBuffers> parts_;
  std::array<mmsghdr, kBuffers> headers_;
};

void serve_segmented(const Options& options, Shared& shared) {
  const int socket = open_receiver(options, shared);
  std::vector<char> buffer(65536);
  Meter meter(options.seconds);
  while (!meter.is_over()) {
    const ssize_t got = recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0) continue;
    const auto bytes = static_cast<std::size_t>(got);
    meter.add(bytes, (bytes + options.size - 1) / options.size);
  }
  meter.report(shared);
}

void send_segmented(const Options& options, Shared& shared) {
  const int socket = open_sender(options, shared);
  set_option(socket, IPPROTO_UDP, UDP_SEGMENT, static_cast<int>(options.size));
  const std::size_t segments = std::min(kMaxDatagram / options.size, kMaxSegments);
  const std::vector<char> buffer(segments * options.size, 'x');
  while (!shared.stop.load(std::memory_order_relaxed)) {
    [[maybe_unused]] const ssize_t sent = send(socket, buffer.data(), buffer.size(), 0);
  }
}

void serve_single(const Options& options, Shared& shared) {
  const int socket = open_receiver(options, shared);
  Batch batch(std::max<std::size_t>(options.size, 2048));
  Meter meter(options.seconds);
  while (!meter.is_over()) {
    const int count = recvmmsg(socket, batch.headers(), kBuffers, MSG_DONTWAIT, nullptr);
    if (count <= 0) continue;
    meter.add(static_cast<std::size_t>(count) * options.size, static_cast<std::size_t>(count));
  }
  meter.report(shared);
}

void send_single(const Options& options, Shared& shared) {
  const int socket = open_sender(options, shared);
  Batch batch(options.size);
  while (!shared.stop.load(std::memory_order_relaxed)) {
    [[maybe_unused]] const int sent = sendmmsg(socket, batch.headers(), kBuffers, 0);
  }
}

}  // namespace

Outcome measure_udp_segmented(const Options& options) {
  return run_two(options, serve_segmented, send_segmented);
}

Outcome measure_udp_single(const Options& options) {
  return run_two(options, serve_single, send_single);
}

}  // namespace urxe::bench
