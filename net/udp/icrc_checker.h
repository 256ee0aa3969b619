// Whether a packet that came through a UDP socket is what was sent.
#pragma once

#include <cstdint>
#include <optional>

#include "net/wire/bytes.h"
#include "net/wire/icrc.h"
#include "net/wire/path.h"

namespace urxe::net {

// A socket hides the IPv4 identification, which the ICRC covers: one that makes it right will do.
// The packets of a buffer that the kernel split are numbered from 0, as our sender's are: that is
// tried first.
class IcrcChecker {
 public:
  // The next packet is the first of its datagram.
  void begin_datagram() { next_id_ = 0; }

  // `packet`: BTH to ICRC, both whole.
  [[nodiscard]] bool is_right(const wire::Path& path, wire::Bytes packet);

 private:
  // Of the last packet: the next one is likely to need the same.
  wire::Path path_;
  std::size_t size_ = 0;
  std::optional<wire::IcrcSeed> seed_;
  std::uint16_t next_id_ = 0;
  wire::Ipv4IdSolver solver_;
};

}  // namespace urxe::net
