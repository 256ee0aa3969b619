// How a process hands packets over to the process that they are for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// Datagrams on their way to one mailbox, in one letter: a mailbox holds few letters
// (net.unix.max_dgram_qlen), of whatever length.
class Letter {
 public:
  static constexpr std::size_t kMaxSize = 128 * 1024;

  // False if it has no room.
  bool add(const Datagram& datagram);
  [[nodiscard]] wire::Bytes bytes() const { return bytes_; }
  [[nodiscard]] bool is_empty() const { return bytes_.empty(); }
  void clear() { bytes_.clear(); }

  // Takes the first datagram off a letter that came; nothing at its end, or if it makes no sense.
  [[nodiscard]] static std::optional<Datagram> take(wire::Bytes& letter);

 private:
  std::vector<std::uint8_t> bytes_;
};

// What packets are handed over to: an abstract Unix socket. Its name belongs to one process of the
// network namespace, until that closes it or dies, however it dies; so holding a mailbox is how a
// process claims what the name stands for.
class Mailbox {
 public:
  // The error is an errno: EADDRINUSE if another process has it.
  [[nodiscard]] static tl::expected<Mailbox, int> open(std::string_view name, KeepDescriptor keep);
  // One that has no name yet. The error is an errno.
  [[nodiscard]] static tl::expected<Mailbox, int> create(KeepDescriptor keep);
  // Gives it its name. Returns 0 or an errno: EADDRINUSE if another has it; then try another name.
  [[nodiscard]] int claim(std::string_view name) const;

  [[nodiscard]] const Descriptor& socket() const { return socket_; }

  // Sends a letter to the owner of `name`. Returns 0 or an errno: ECONNREFUSED if nobody has the
  // name, EAGAIN if the owner does not keep up. Never waits.
  [[nodiscard]] int post(std::string_view name, wire::Bytes letter) const;

  // Takes one letter; it lies in `buffer`, which holds Letter::kMaxSize bytes. Nothing if there is
  // none. What other users sent is thrown away and counted.
  [[nodiscard]] std::optional<wire::Bytes> take(wire::MutableBytes buffer);
  [[nodiscard]] std::uint64_t refused() const { return refused_; }

 private:
  explicit Mailbox(Descriptor socket) : socket_(std::move(socket)) {}

  Descriptor socket_;
  std::uint64_t refused_ = 0;
};

// The name of a slot's mailbox.
[[nodiscard]] std::string mailbox_of(Slot slot);
[[nodiscard]] bool is_slot_mailbox(std::string_view mailbox);
// The mailbox of a name that a process may claim (UdpFabric::claim_name).
[[nodiscard]] std::string mailbox_of_name(const std::string& name);

}  // namespace urxe::net
