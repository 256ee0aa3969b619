// How much of what raw sockets can do the UDP fabric keeps, with every copy and every ICRC.
//
// One thread sends a batch and receives it, over and over: first with raw sockets, then with two
// fabrics. What counts is the thread's CPU time, kernel included, so a loaded machine does not
// spoil the ratio; both are measured in turns all the same.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <vector>

#include <net/if.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "net/udp/socket_address.h"
#include "net/udp/udp_fabric.h"
#include "net/wire/packet.h"

namespace urxe::bench {
namespace {

constexpr const char* kServer = "127.71.0.1";
constexpr const char* kClient = "127.71.0.2";
constexpr std::uint16_t kRawPort = 4790;
constexpr std::size_t kMessageArea = 1 << 20;  // bytes: the program's memory, on either side
constexpr std::size_t kBatchBytes = 256 * 1024;
constexpr std::size_t kMaxBatch = 512;  // packets

struct Case {
  const char* name;
  std::size_t payload;
  bool segmented;
};

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

wire::IpAddress ip(const char* text) { return *wire::IpAddress::parse(text); }

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

// --- the yardstick

int open_raw(const char* address, int receive_buffer) {
  const int number = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  net::SocketAddress name;
  const socklen_t size = net::to_socket_address(ip(address), kRawPort, 0, name);
  if (bind(number, &name.any, size) != 0) die("bind");
  setsockopt(number, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
  return number;
}

class Raw {
 public:
  Raw(const Case& one, std::size_t batch)
      : size_(one.payload + wire::kBthSize + wire::kIcrcSize),
        per_message_(one.segmented ? std::min<std::size_t>(64, 64000 / size_) : 1),
        messages_(std::max<std::size_t>(1, batch / per_message_)),
        bytes_(64 * 65536),
        from_(open_raw(kClient, 4096)),
        to_(open_raw(kServer, 4 << 20)) {
    const int on = 1;
    const int segment = static_cast<int>(size_);
    if (one.segmented) {
      setsockopt(from_, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
      setsockopt(to_, IPPROTO_UDP, UDP_GRO, &on, sizeof(on));
    }
    net::SocketAddress name;
    const socklen_t size = net::to_socket_address(ip(kServer), kRawPort, 0, name);
    if (connect(from_, &name.any, size) != 0) die("connect");
  }
  ~Raw() {
    close(from_);
    close(to_);
  }
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;

  // Packets that went and came.
  std::size_t turn() {
    std::size_t received = 0;
    for (std::size_t sent = 0; sent < messages_;) {
      const std::size_t count = std::min(messages_ - sent, kAtOnce);
      prepare(count, per_message_ * size_, 0);
      if (sendmmsg(from_, headers_.data(), static_cast<unsigned>(count), 0) < 0) die("sendmmsg");
      sent += count;
    }
    while (true) {
      prepare(per_message_ > 1 ? 2 : kAtOnce, 65536, 65536);
      const int got =
          recvmmsg(to_, headers_.data(), per_message_ > 1 ? 2 : kAtOnce, MSG_DONTWAIT, nullptr);
      if (got <= 0) return received;
      for (int i = 0; i < got; ++i)
        received += headers_[static_cast<std::size_t>(i)].msg_len / size_;
    }
  }

 private:
  static constexpr std::size_t kAtOnce = 64;
  void prepare(std::size_t count, std::size_t length, std::size_t step) {
    for (std::size_t i = 0; i < count; ++i) {
      parts_[i] = {.iov_base = bytes_.data() + i * step, .iov_len = length};
      headers_[i] = {};
      headers_[i].msg_hdr.msg_iov = &parts_[i];
      headers_[i].msg_hdr.msg_iovlen = 1;
    }
  }
  std::size_t size_;
  std::size_t per_message_;
  std::size_t messages_;
  std::vector<std::uint8_t> bytes_;
  int from_;
  int to_;
  std::array<iovec, kAtOnce> parts_{};
  std::array<mmsghdr, kAtOnce> headers_{};
};

// --- the fabric

std::unique_ptr<net::UdpFabric> open_fabric(const char* address, bool segmented) {
  net::UdpOptions options;
  options.addresses.push_back({.address = ip(address), .interface = if_nametoindex("lo")});
  options.segmentation = segmented ? net::Segmentation::always : net::Segmentation::never;
  auto fabric = net::UdpFabric::open(options);
  if (fabric) return std::move(*fabric);
  std::fprintf(stderr, "%s\n", fabric.error().sentence.c_str());
  std::exit(1);
}

// Copies what comes to memory, as a responder does.
class Memory final : public net::Receiver {
 public:
  void on_packet(Time, const wire::Inbound& packet) override {
    if (!packet.icrc_is_right) std::abort();
    const wire::Bytes payload = packet.bytes.subspan(
        wire::kBthSize, packet.bytes.size() - wire::kBthSize - wire::kIcrcSize);
    if (at_ + payload.size() > area_.size()) at_ = 0;
    std::memcpy(area_.data() + at_, payload.data(), payload.size());
    at_ += payload.size();
    ++packets_;
  }
  std::size_t take() { return std::exchange(packets_, 0); }

 private:
  std::vector<std::uint8_t> area_ = std::vector<std::uint8_t>(kMessageArea);
  std::size_t at_ = 0;
  std::size_t packets_ = 0;
};

class Ours {
 public:
  Ours(const Case& one, std::size_t batch)
      : payload_(one.payload),
        batch_(batch),
        from_(open_fabric(kClient, one.segmented)),
        to_(open_fabric(kServer, one.segmented)),
        path_{.source = ip(kClient), .destination = ip(kServer), .source_port = 0xC123},
        area_(kMessageArea + one.payload, 0x5A) {
    packet_.info = &wire::info(wire::Opcode::rc_write_middle);
    packet_.bth.opcode = static_cast<std::uint8_t>(wire::Opcode::rc_write_middle);
    packet_.bth.destination = net::first_qpn_of(to_->slots().front().slot);
  }

  std::size_t turn() {
    const Time now{};
    for (std::size_t i = 0; i < batch_; ++i) {
      const wire::MutableBytes slot = from_->reserve();
      if (slot.empty()) break;
      packet_.bth.psn = wire::Psn{psn_++};
      const std::size_t header = wire::write_headers(packet_, slot);
      std::memcpy(slot.data() + header, area_.data() + psn_ * payload_ % kMessageArea, payload_);
      from_->commit(now, {.path = &path_, .size = header + payload_});
    }
    from_->flush(now);
    while (to_->receive(now, memory_, 128).packets > 0) {
    }
    return memory_.take();
  }

 private:
  std::size_t payload_;
  std::size_t batch_;
  std::unique_ptr<net::UdpFabric> from_;
  std::unique_ptr<net::UdpFabric> to_;
  wire::Path path_;
  std::vector<std::uint8_t> area_;
  wire::Packet packet_;
  std::uint32_t psn_ = 0;
  Memory memory_;
};

// Nanoseconds of CPU per packet.
template <typename Side>
double measure(Side& side, double seconds) {
  side.turn();
  std::size_t packets = 0;
  const double begin = cpu_seconds();
  double end = begin;
  while (end - begin < seconds) {
    packets += side.turn();
    end = cpu_seconds();
  }
  return (end - begin) / static_cast<double>(packets) * 1e9;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void compare(const Case& one, int rounds, double seconds) {
  const std::size_t batch = std::clamp<std::size_t>(kBatchBytes / one.payload, 1, kMaxBatch);
  Raw raw(one, batch);
  Ours ours(one, batch);
  std::vector<double> raw_times;
  std::vector<double> our_times;
  std::vector<double> ratios;
  for (int i = 0; i < rounds; ++i) {
    raw_times.push_back(measure(raw, seconds));
    our_times.push_back(measure(ours, seconds));
    ratios.push_back(raw_times.back() / our_times.back());
  }
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  std::printf("%-24s raw %7.1f ns   fabric %7.1f ns a packet   ratio %.2f (%.2f ... %.2f)\n",
              one.name, median(raw_times), median(our_times), median(ratios), *least, *most);
  std::fflush(stdout);
}

}  // namespace
}  // namespace urxe::bench

// udp_fabric [ROUNDS [SECONDS [CASE]]]
int main(int argc, char** argv) {
  using namespace urxe::bench;
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 7;
  const double seconds = argc > 2 ? std::strtod(argv[2], nullptr) : 0.1;
  const int only = argc > 3 ? std::atoi(argv[3]) : -1;
  int number = 0;
  for (const Case& one :
       {Case{"4096 B, whole buffers", 4096, true}, Case{"1024 B, whole buffers", 1024, true},
        Case{"64 B, whole buffers", 64, true}, Case{"4096 B, single packets", 4096, false},
        Case{"64 B, single packets", 64, false}}) {
    if (only < 0 || only == number) compare(one, rounds, seconds);
    ++number;
  }
  return 0;
}
