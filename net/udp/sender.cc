#include "net/udp/sender.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/core.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "net/udp/sockets.h"
#include "net/wire/opcode.h"

namespace urxe::net {
namespace {

// The most that one message to the kernel may hold: the payload of a UDP datagram over IPv4.
constexpr std::size_t kMaxRun = 65507;
// What is collected at most before it is sent; it stays in a processor's cache.
constexpr std::size_t kBatchSize = 2 * kMaxRun;
constexpr std::size_t kBufferSize = kBatchSize + kMaxPacketSize;
// With so much a full run is sent at once, else it waits for more.
constexpr std::size_t kEnough = kMaxRun / 2;
// The kernel's own limit (UDP_MAX_SEGMENTS) before Linux 6.9.
constexpr std::uint32_t kMaxSegments = 64;
// Messages in one call of sendmmsg.
constexpr std::size_t kMaxMessages = 64;

// Whether the kernel's refusal of a message may be due to its having to split it. On a route
// without checksum offload, through IPsec for example, it says EIO.
bool is_about_segments(int code) {
  return code == EINVAL || code == EIO || code == EMSGSIZE || code == EOPNOTSUPP ||
         code == ENOPROTOOPT;
}

const char* remedy_for(int code) {
  switch (code) {
    case EMSGSIZE:
      return " (the interface's MTU is too small for this path MTU)";
    case EPERM:
      return " (a firewall?)";
    case ENETUNREACH:
    case EHOSTUNREACH:
      return " (see: ip route get)";
    default:
      return "";
  }
}

template <typename Value>
void add_control(msghdr& message, int level, int type, Value value) {
  auto* part =
      reinterpret_cast<cmsghdr*>(static_cast<char*>(message.msg_control) + message.msg_controllen);
  part->cmsg_level = level;
  part->cmsg_type = type;
  part->cmsg_len = CMSG_LEN(sizeof(value));
  std::memcpy(CMSG_DATA(part), &value, sizeof(value));
  message.msg_controllen += CMSG_SPACE(sizeof(value));
}

}  // namespace

Sender::Sender(const UdpOptions& options, bool can_segment)
    : options_(options),
      captures_(options.keep_descriptor),
      can_segment_(can_segment && options.segmentation != Segmentation::never),
      buffer_(new std::uint8_t[kBufferSize]),
      messages_(kMaxMessages),
      headers_(kMaxMessages) {
  runs_.reserve(kMaxMessages);
}

void Sender::add(const LocalAddress& local, const Descriptor& receiver) {
  addresses_.push_back(std::make_unique<SendAddress>());
  addresses_.back()->local = local;
  addresses_.back()->receiver = &receiver;
}

// --- collecting

wire::MutableBytes Sender::reserve(Time now) {
  if (runs_.empty()) {
    segments_ = can_segment_ && (options_.segmentation == Segmentation::always ||
                                 !captures_.somebody_captures(now));
  }
  if (is_time_to_send()) send();
  if (full_) return {};
  reserved_at_ = used_;
  return {buffer_.get() + used_, kMaxPacketSize};
}

bool Sender::is_time_to_send() const {
  if (runs_.empty()) return false;
  const Run& run = runs_.back();
  const bool run_is_full = run.count == kMaxSegments || run.size + run.segment_size > kMaxRun;
  return (run_is_full && used_ >= kEnough) || used_ >= kBatchSize || runs_.size() >= kMaxMessages;
}

bool Sender::extends_last(const wire::Outbound& packet, std::size_t size, wire::Qpn qpn) const {
  if (!segments_ || runs_.empty() || full_) return false;
  const Run& run = runs_.back();
  // Who picks a socket by the QPN picks it once for all of a message.
  return run.count < kMaxSegments && size <= run.segment_size &&
         run.size == run.count * run.segment_size && run.size + size <= kMaxRun &&
         slot_of(qpn) == run.peer_slot && is_management(qpn) == run.is_management &&
         packet.path->source_port == run.wanted_port &&
         packet.path->destination == run.path.destination &&
         packet.path->source == run.path.source &&
         packet.path->traffic_class == run.path.traffic_class &&
         packet.path->hop_limit == run.path.hop_limit;
}

void Sender::commit(Time, const wire::Outbound& packet) {
  const std::size_t size = packet.size + wire::kIcrcSize;
  if (reserved_at_ != used_) {  // a flush came between
    std::memmove(buffer_.get() + used_, buffer_.get() + reserved_at_, packet.size);
    reserved_at_ = used_;
  }
  const wire::Qpn qpn = destination_qpn({buffer_.get() + used_, packet.size});
  if (extends_last(packet, size, qpn)) {
    Run& run = runs_.back();
    run.size += size;
    ++run.count;
  } else if (!start_run(packet, size, qpn)) {
    ++counters_.errors;
    counters_.last_error = EADDRNOTAVAIL;
    return;
  }
  write_icrc(packet);
  used_ += size;
}

bool Sender::start_run(const wire::Outbound& packet, std::size_t size, wire::Qpn qpn) {
  SendAddress* const address = find(packet.path->source);
  if (address == nullptr) return false;
  const bool is_management = net::is_management(qpn);
  const auto [socket, port] = is_management ? manager_of(*address, packet.path->source_port)
                                            : socket_for(*address, packet.path->source_port);
  wire::Path path = *packet.path;
  path.source_port = port;
  runs_.push_back({.path = path,
                   .wanted_port = packet.path->source_port,
                   .peer_slot = slot_of(qpn),
                   .socket = socket,
                   .interface = address->local.interface,
                   .begin = used_,
                   .size = size,
                   .segment_size = size,
                   .count = 1,
                   .seed = wire::IcrcSeed(path, size),
                   .is_management = is_management});
  return true;
}

SendAddress* Sender::find(const wire::IpAddress& source) {
  for (const auto& address : addresses_) {
    if (address->local.address == source) return address.get();
  }
  return nullptr;
}

std::pair<const Descriptor*, std::uint16_t> Sender::socket_for(SendAddress& address,
                                                               std::uint16_t wanted_port) {
  SendAddress::PortSocket& chosen = address.ports[wanted_port % SendAddress::kPorts];
  if (!chosen.tried) {
    chosen.tried = true;
    chosen.port = wanted_port;
    if (wanted_port != 0 && wanted_port != wire::kRoceUdpPort) {
      chosen.socket = open_sender(address.local, wanted_port, options_);
    }
  }
  if (!chosen.socket.is_open()) return {address.receiver, wire::kRoceUdpPort};
  return {&chosen.socket, chosen.port};
}

std::pair<const Descriptor*, std::uint16_t> Sender::manager_of(SendAddress& address,
                                                               std::uint16_t wanted_port) {
  SendAddress::PortSocket& manager = address.manager;
  if (!manager.tried) {
    manager.tried = true;
    manager.socket = open_manager(address.local, manager.port, options_);
    if (manager.socket.is_open() && on_manager_) on_manager_(manager.socket);
  }
  if (!manager.socket.is_open()) return socket_for(address, wanted_port);
  return {&manager.socket, manager.port};
}

std::optional<wire::IpAddress> Sender::take_unreachable() {
  for (const auto& address : addresses_) {
    if (!address->manager.socket.is_open()) continue;
    if (const auto destination = net::take_unreachable(address->manager.socket.number())) {
      return destination;
    }
  }
  return std::nullopt;
}

// The packet is the last one of the last run, and still in the cache.
void Sender::write_icrc(const wire::Outbound& packet) {
  const Run& run = runs_.back();
  const std::size_t size = packet.size + wire::kIcrcSize;
  const wire::Ipv4Fragment fragment{.id = static_cast<std::uint16_t>(run.count - 1)};
  const std::uint32_t seed = size == run.segment_size
                                 ? run.seed.value(fragment)
                                 : wire::IcrcSeed(run.path, size).value(fragment);
  const wire::MutableBytes bytes(buffer_.get() + used_, size);
  wire::store_icrc(bytes, wire::icrc(seed, bytes.first(packet.size)) ^ packet.icrc_error);
}

// --- sending

bool Sender::flush(Time) {
  full_ = false;
  send();
  return !full_;
}

int Sender::full_socket() const { return full_ ? runs_[sent_].socket->number() : -1; }

void Sender::send() {
  while (sent_ < runs_.size()) {
    if (!send_some()) {
      full_ = true;
      return;
    }
  }
  runs_.clear();
  sent_ = 0;
  used_ = 0;
}

// One call: as many runs as leave by one socket.
bool Sender::send_some() {
  const Descriptor* const socket = runs_[sent_].socket;
  unsigned count = 0;
  while (count < kMaxMessages && sent_ + count < runs_.size() &&
         runs_[sent_ + count].socket == socket) {
    fill(headers_[count], messages_[count], runs_[sent_ + count]);
    ++count;
  }
  const int done = sendmmsg(socket->number(), headers_.data(), count, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (done <= 0) return handle_refusal(done == 0 ? EIO : errno);
  for (int i = 0; i < done; ++i) counters_.packets += runs_[sent_++].count;
  return true;
}

void Sender::fill(mmsghdr& header, Message& message, const Run& run) {
  message.bytes = {.iov_base = buffer_.get() + run.begin, .iov_len = run.size};
  msghdr& to = header.msg_hdr;
  to = {};
  to.msg_name = &message.address;
  to.msg_namelen =
      to_socket_address(run.path.destination, wire::kRoceUdpPort, run.interface, message.address);
  to.msg_iov = &message.bytes;
  to.msg_iovlen = 1;
  to.msg_control = message.control.data();
  const bool v4 = run.path.source.is_v4();
  if (run.path.traffic_class != 0) {
    add_control<int>(to, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TOS : IPV6_TCLASS,
                     run.path.traffic_class);
  }
  if (run.path.hop_limit != wire::kDefaultHopLimit && run.path.hop_limit != 0) {
    add_control<int>(to, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TTL : IPV6_HOPLIMIT,
                     run.path.hop_limit);
  }
  if (run.count > 1) {
    add_control<std::uint16_t>(to, IPPROTO_UDP, UDP_SEGMENT,
                               static_cast<std::uint16_t>(run.segment_size));
  }
  if (to.msg_controllen == 0) to.msg_control = nullptr;
}

bool Sender::handle_refusal(int code) {
  if (code == EAGAIN || code == EINTR) return code == EINTR;
  // What an earlier packet met is told to the one that leaves next, which was not sent then.
  if (runs_[sent_].is_management && !std::exchange(runs_[sent_].was_retried, true)) return true;
  if (runs_[sent_].count > 1 && is_about_segments(code)) {
    split_first();
  } else {
    drop_first(code);
  }
  return true;
}

// Sends a run's packets one by one, with the identification that they have then.
void Sender::split_first() {
  can_segment_ = segments_ = false;
  const Run whole = runs_[sent_];
  std::vector<Run> singles;
  for (std::uint32_t i = 0; i < whole.count; ++i) {
    Run single = whole;
    single.begin = whole.begin + i * whole.segment_size;
    single.size = single.segment_size =
        std::min(whole.segment_size, whole.begin + whole.size - single.begin);
    single.count = 1;
    single.seed = wire::IcrcSeed(whole.path, single.size);
    single.was_split = true;
    // The difference keeps what a fault injector did to it.
    const wire::MutableBytes bytes(buffer_.get() + single.begin, single.size);
    const wire::Bytes covered = bytes.first(single.size - wire::kIcrcSize);
    const wire::Ipv4Fragment fragment{.id = static_cast<std::uint16_t>(i)};
    const std::uint32_t before = wire::icrc(single.seed.value(fragment), covered);
    const std::uint32_t after = wire::icrc(single.seed.value({}), covered);
    wire::store_icrc(bytes, wire::load_icrc(bytes) ^ before ^ after);
    singles.push_back(single);
  }
  const auto at = runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(sent_));
  runs_.insert(at, singles.begin(), singles.end());
}

void Sender::drop_first(int code) {
  // It was not the splitting that the kernel refused.
  if (runs_[sent_].was_split) can_segment_ = options_.segmentation != Segmentation::never;
  if (code != counters_.last_error) explain(runs_[sent_], code);
  counters_.errors += runs_[sent_++].count;
  counters_.last_error = code;
}

void Sender::explain(const Run& run, int code) const {
  if (options_.explain == nullptr) return;
  options_.explain(fmt::format("the kernel refuses packets of {} bytes from {} to {}: {}{}",
                               run.segment_size, run.path.source.to_string(),
                               run.path.destination.to_string(), std::strerror(code),
                               remedy_for(code)));
}

}  // namespace urxe::net
