#include "tests/bench/yardstick/message_cost.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <vector>

#include <netinet/udp.h>
#include <sys/socket.h>

namespace urxe::bench {
namespace {

constexpr std::size_t kUnit = 65536;
constexpr std::size_t kReth = 16;   // in a WRITE's first packet
constexpr std::size_t kFrame = 16;  // BTH and ICRC
constexpr std::size_t kLargestPacket = 4096 + kFrame;
constexpr std::size_t kLargest = 65507;    // that one message may be
constexpr std::size_t kMostSegments = 64;  // UDP_MAX_SEGMENTS of kernels before 6.11
constexpr int kRounds = 300;
constexpr int kMessages = 16;  // sent before they are received: far less than the buffer holds
constexpr int kSocketBuffer = 4 * 1024 * 1024;

struct Message {
  std::size_t size;
  std::size_t segment;
};
struct Shape {
  const char* name;
  std::vector<Message> messages;
};
struct Cost {
  double send, receive;  // microseconds for kUnit bytes
};

double cpu_microseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

class Loop {
 public:
  explicit Loop(const std::string& address) : bytes_(kUnit, 'x') {
    sockaddr_in to = address_of(address, 0);
    socklen_t size = sizeof(to);
    set_option(receiver_, SOL_SOCKET, SO_RCVBUF, kSocketBuffer);
    set_option(receiver_, IPPROTO_UDP, UDP_GRO, 1);
    check(bind(receiver_, reinterpret_cast<sockaddr*>(&to), size), "bind");
    check(getsockname(receiver_, reinterpret_cast<sockaddr*>(&to_), &size), "getsockname");
  }

  Cost measure(const Shape& shape) {
    std::size_t bytes = 0;
    for (const Message& message : shape.messages) bytes += message.size * kMessages;
    Cost best{1e9, 1e9};
    for (int round = 0; round < kRounds; ++round) {
      const double begin = cpu_microseconds();
      for (int i = 0; i < kMessages; ++i) {
        for (const Message& message : shape.messages) send(message);
      }
      const double sent = cpu_microseconds();
      for (std::size_t got = 0; got < bytes;) {
        got += static_cast<std::size_t>(
            check(static_cast<int>(recv(receiver_, bytes_.data(), bytes_.size(), 0)), "recv"));
      }
      best.send = std::min(best.send, sent - begin);
      best.receive = std::min(best.receive, cpu_microseconds() - sent);
    }
    const double units = static_cast<double>(bytes) / kUnit;
    return {best.send / units, best.receive / units};
  }

 private:
  // Not connected, as a socket of RoCEv2 has to be: else the IPv4 identification is unpredictable.
  void send(const Message& message) {
    iovec part{.iov_base = bytes_.data(), .iov_len = message.size};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(std::uint16_t))> control{};
    msghdr header{};
    header.msg_name = &to_;
    header.msg_namelen = sizeof(to_);
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (message.segment < message.size) {
      header.msg_control = control.data();
      header.msg_controllen = control.size();
      cmsghdr* const head = CMSG_FIRSTHDR(&header);
      *head = {.cmsg_len = CMSG_LEN(sizeof(std::uint16_t)),
               .cmsg_level = IPPROTO_UDP,
               .cmsg_type = UDP_SEGMENT};
      const auto segment = static_cast<std::uint16_t>(message.segment);
      std::memcpy(CMSG_DATA(head), &segment, sizeof(segment));
    }
    check(static_cast<int>(sendmsg(sender_, &header, 0)), "sendmsg");
  }

  int receiver_ = open_socket(SOCK_DGRAM);
  int sender_ = open_socket(SOCK_DGRAM);
  sockaddr_in to_{};
  std::vector<char> bytes_;
};

}  // namespace

int print_message_costs(const Options& options) {
  const std::size_t packet = std::min(options.size, kLargestPacket);
  const std::size_t first = packet + kReth;
  const std::size_t most = std::min(kLargest / packet, kMostSegments);
  const std::size_t packets = kUnit / (packet - kFrame);
  const std::array shapes{
      Shape{"as large as they can be", {{most * packet, packet}}},
      Shape{"WRITEs of 64 KiB", {{first + packet, first}, {(packets - 2) * packet, packet}}},
      Shape{"single packets", {{packet, packet}}},
  };
  Loop loop(options.address);
  for (const Shape& shape : shapes) {
    const Cost cost = loop.measure(shape);
    std::printf("%-26s send %6.2f us  receive %6.2f us for 64 KiB\n", shape.name, cost.send,
                cost.receive);
  }
  return 0;
}

}  // namespace urxe::bench
