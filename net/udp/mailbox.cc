#include "net/udp/mailbox.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace urxe::net {
namespace {

constexpr std::uint32_t kMagic = 0x55525831;  // "URX1"; another layout needs another
constexpr int kSendBuffer = 4 * 1024 * 1024;
// A buffer that the kernel coalesced holds far fewer; a letter must not keep us busy for long.
constexpr std::size_t kMaxSegments = 4096;
// Of these, too: other users may write to us.
constexpr int kMaxRefusals = 16;

// What comes before a datagram. Only processes of one machine see it.
struct Head {
  std::uint32_t magic = kMagic;
  std::uint32_t size = 0;  // of the datagram
  std::uint32_t segment_size = 0;
  std::array<std::uint8_t, wire::IpAddress::kSize> source{};
  std::array<std::uint8_t, wire::IpAddress::kSize> destination{};
  std::uint32_t flow_label = 0;
  std::uint16_t source_port = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
};

Head head_of(const Datagram& datagram) {
  const wire::Path& path = datagram.path;
  return {.size = static_cast<std::uint32_t>(datagram.bytes.size()),
          .segment_size = static_cast<std::uint32_t>(datagram.segment_size),
          .source = path.source.bytes(),
          .destination = path.destination.bytes(),
          .flow_label = path.flow_label,
          .source_port = path.source_port,
          .traffic_class = path.traffic_class,
          .hop_limit = path.hop_limit};
}

bool makes_sense(const Head& head, std::size_t available) {
  return head.magic == kMagic && head.size <= available && head.segment_size != 0 &&
         head.segment_size <= head.size && head.size / head.segment_size <= kMaxSegments;
}

// An abstract name begins with a zero byte and has no end but its length.
socklen_t to_unix_address(std::string_view name, sockaddr_un& out) {
  out = {.sun_family = AF_UNIX};
  const std::size_t size = std::min(name.size(), sizeof(out.sun_path) - 1);
  std::copy_n(name.begin(), size, out.sun_path + 1);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
}

bool is_from_us(msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(part), sizeof(sender));
    return sender.uid == geteuid() || sender.uid == getuid();
  }
  return false;
}

}  // namespace

tl::expected<Mailbox, int> Mailbox::create(KeepDescriptor keep) {
  Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), keep);
  if (!socket.is_open()) return tl::unexpected(errno);
  const int on = 1;
  setsockopt(socket.number(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
  setsockopt(socket.number(), SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof(kSendBuffer));
  return Mailbox(std::move(socket));
}

int Mailbox::claim(std::string_view name) const {
  sockaddr_un address;
  const socklen_t size = to_unix_address(name, address);
  const auto* const to = reinterpret_cast<const sockaddr*>(&address);
  return bind(socket_.number(), to, size) == 0 ? 0 : errno;
}

tl::expected<Mailbox, int> Mailbox::open(std::string_view name, KeepDescriptor keep) {
  auto mailbox = create(keep);
  if (!mailbox) return mailbox;
  if (const int failed = mailbox->claim(name); failed != 0) return tl::unexpected(failed);
  return mailbox;
}

int Mailbox::post(std::string_view name, wire::Bytes letter) const {
  sockaddr_un address;
  const socklen_t size = to_unix_address(name, address);
  return sendto(socket_.number(), letter.data(), letter.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                reinterpret_cast<const sockaddr*>(&address), size) >= 0
             ? 0
             : errno;
}

std::optional<wire::Bytes> Mailbox::take(wire::MutableBytes buffer) {
  for (int tries = 0; tries < kMaxRefusals; ++tries) {
    iovec part{.iov_base = buffer.data(), .iov_len = buffer.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control;
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t size = recvmsg(socket_.number(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size < 0) return std::nullopt;
    if ((message.msg_flags & MSG_TRUNC) == 0 && is_from_us(message)) {
      return buffer.first(static_cast<std::size_t>(size));
    }
    ++refused_;
  }
  return std::nullopt;
}

bool Letter::add(const Datagram& datagram) {
  const Head head = head_of(datagram);
  const std::size_t size = sizeof(head) + datagram.bytes.size();
  if (bytes_.size() + size > kMaxSize) return false;
  const std::size_t at = bytes_.size();
  bytes_.resize(at + size);
  std::memcpy(bytes_.data() + at, &head, sizeof(head));
  std::copy(datagram.bytes.begin(), datagram.bytes.end(),
            bytes_.begin() + static_cast<std::ptrdiff_t>(at + sizeof(head)));
  return true;
}

std::optional<Datagram> Letter::take(wire::Bytes& letter) {
  Head head;
  if (letter.size() < sizeof(head)) return std::nullopt;
  std::memcpy(&head, letter.data(), sizeof(head));
  if (!makes_sense(head, letter.size() - sizeof(head))) return std::nullopt;
  const Datagram datagram{.path = {.source = wire::IpAddress(head.source),
                                   .destination = wire::IpAddress(head.destination),
                                   .source_port = head.source_port,
                                   .traffic_class = head.traffic_class,
                                   .hop_limit = head.hop_limit,
                                   .flow_label = head.flow_label},
                          .segment_size = head.segment_size,
                          .bytes = letter.subspan(sizeof(head), head.size)};
  letter = letter.subspan(sizeof(head) + head.size);
  if (datagram.path.source.is_v4() != datagram.path.destination.is_v4()) return std::nullopt;
  return datagram;
}

constexpr std::string_view kSlotMailbox = "urxe/slot/";

std::string mailbox_of(Slot slot) {
  return std::string(kSlotMailbox) + std::to_string(slot.value());
}

bool is_slot_mailbox(std::string_view mailbox) { return mailbox.starts_with(kSlotMailbox); }

std::string mailbox_of_name(const std::string& name) { return "urxe/name/" + name; }

}  // namespace urxe::net
