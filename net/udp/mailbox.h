// How a process hands packets over to the process that they are for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "net/descriptor.h"
#include "net/udp/slot.h"
#include "net/wire/bytes.h"
#include "net/wire/path.h"

namespace urxe::net {

// Packets of one path, one after the other: all but the last are `segment_size` long.
struct Datagram {
  wire::Path path;
  std::size_t segment_size = 0;
  wire::Bytes bytes;  // borrowed
};

// What packets are handed over to: an abstract Unix socket. Its name belongs to one process of the
// network namespace, until that closes it or dies, however it dies; so holding a mailbox is how a
// process claims what the name stands for.
class Mailbox {
 public:
  // The error is an errno: EADDRINUSE if another process has it.
  [[nodiscard]] static tl::expected<Mailbox, int> open(std::string_view name, KeepDescriptor keep);

  [[nodiscard]] const Descriptor& socket() const { return socket_; }

  // Hands a datagram over to the owner of `name`. Returns 0 or an errno: ECONNREFUSED if nobody has
  // the name, EAGAIN if the owner does not keep up. Never waits.
  [[nodiscard]] int post(std::string_view name, const Datagram& datagram) const;

  // Takes one datagram; it lies in `buffer`, which holds kBufferSize bytes. Nothing if there is
  // none. What other users sent, or what makes no sense, is thrown away and counted.
  [[nodiscard]] std::optional<Datagram> take(wire::MutableBytes buffer);
  [[nodiscard]] std::uint64_t refused() const { return refused_; }

  static constexpr std::size_t kBufferSize = 65536 + 64;

 private:
  explicit Mailbox(Descriptor socket) : socket_(std::move(socket)) {}

  Descriptor socket_;
  std::uint64_t refused_ = 0;
};

// The name of a slot's mailbox.
[[nodiscard]] std::string mailbox_of(Slot slot);

}  // namespace urxe::net
