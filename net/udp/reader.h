// Many datagrams with one call.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include <sys/socket.h>

#include "net/udp/mailbox.h"
#include "net/udp/socket_address.h"
#include "net/wire/address.h"
#include "net/wire/bytes.h"

namespace urxe::net {

// A socket that receives what is sent to one address: ours, or a group's.
struct ReceiveSocket {
  wire::IpAddress address;
  Descriptor socket;
  bool is_group = false;
  std::uint32_t id = 0;
  std::uint32_t overflows = 0;  // the kernel's count of datagrams that found no room
};

// Owner: a UdpFabric. One for all of its sockets.
class Reader {
 public:
  Reader();

  // Reads once, without blocking; returns how many datagrams there are. They stay until the next
  // call.
  std::size_t read(ReceiveSocket& from);
  // Whether that filled all there is: probably more waits.
  [[nodiscard]] bool was_full() const { return was_full_; }

  [[nodiscard]] const Datagram& datagram(std::size_t index) const { return datagrams_[index]; }

  // Packets that a socket had no room for.
  [[nodiscard]] std::uint64_t overflows() const { return overflows_; }

  // A buffer for one letter; the datagrams that were read are gone then.
  [[nodiscard]] wire::MutableBytes letter_buffer() { return {buffer_.get(), Letter::kMaxSize}; }

 private:
  struct Message {
    SocketAddress source;
    iovec bytes;
    alignas(8) std::array<char, 128> control;
  };

  static constexpr std::size_t kDepth = 32;
  // Where the kernel coalesces, few buffers are enough, and those stay in the cache.
  static constexpr std::size_t kDepthCoalesced = 4;
  static constexpr std::size_t kDatagramSize = 65536;

  void read_control(ReceiveSocket& from, std::size_t index);

  std::unique_ptr<std::uint8_t[]> buffer_;  // kDepth times kDatagramSize, touched as needed
  std::array<Message, kDepth> messages_;
  std::array<mmsghdr, kDepth> headers_;
  std::array<Datagram, kDepth> datagrams_;
  std::size_t depth_ = kDepth;
  bool was_full_ = false;
  std::uint64_t overflows_ = 0;
};

}  // namespace urxe::net
