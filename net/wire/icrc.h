// The invariant CRC: CRC-32 over what no router changes (IBTA 7.8.1, annex A17.3.3).
//
// It covers the IP header, so only who knows that header can compute it. A UDP socket hides the
// IPv4 identification of what it receives; CRCs are linear, so it can be solved for.
#pragma once

#include <cstdint>
#include <optional>

#include "net/wire/bytes.h"
#include "net/wire/frame.h"
#include "net/wire/path.h"

namespace urxe::wire {

// The CRC after the masked local route header, IP and UDP headers of a packet: all of the ICRC that
// does not depend on the RoCEv2 packet itself. For packets of one path and one size it differs only
// by the IPv4 identification.
class IcrcSeed {
 public:
  // `roce_size`: BTH to ICRC, both included.
  IcrcSeed(const Path& path, std::size_t roce_size);

  // The seed for an IPv4 identification and DF bit. For IPv6 it is always the same.
  [[nodiscard]] std::uint32_t value(Ipv4Fragment fragment) const;
  [[nodiscard]] bool depends_on_id() const { return v4_; }

 private:
  std::uint32_t base_;  // identification 0, DF set
  bool v4_;
};

// The ICRC of a packet: `packet` is BTH to pad, at least kBthSize. It stands on the wire least
// significant byte first.
[[nodiscard]] std::uint32_t icrc(std::uint32_t seed, Bytes packet);

[[nodiscard]] std::uint32_t load_icrc(Bytes packet_with_icrc);
void store_icrc(MutableBytes packet_with_icrc, std::uint32_t icrc);

// Whether the last four bytes are the ICRC of the rest. What is too short for a packet has none.
[[nodiscard]] bool icrc_matches(std::uint32_t seed, Bytes packet_with_icrc);

// Finds the IPv4 identification that makes an ICRC right. A corrupted packet has a chance of 2^-15
// to find one too (2^16 identifications, DF set or not, in 2^32 CRCs).
class Ipv4IdSolver {
 public:
  // `computed` is the packet's ICRC for identification 0 and DF set, `received` what it carries.
  [[nodiscard]] std::optional<Ipv4Fragment> solve(std::uint32_t computed, std::uint32_t received,
                                                  std::size_t roce_size);

 private:
  std::size_t size_ = 0;      // the size that `factor_` is for
  std::uint32_t factor_ = 0;  // takes a CRC difference back to the identification
};

}  // namespace urxe::wire
