// A RoCEv2 packet from the BTH to the ICRC: parsed into values, or written header by header.
#pragma once

#include <cstdint>
#include <string_view>

#include <tl/expected.hpp>

#include "net/wire/bytes.h"
#include "net/wire/headers.h"
#include "net/wire/numbers.h"
#include "net/wire/opcode.h"

namespace urxe::wire {

// Why bytes are not a packet.
enum class ParseError : std::uint8_t {
  too_short,        // no room for a BTH and an ICRC
  unaligned,        // the length is not a multiple of four
  unknown_version,  // TVer is not 0
  unknown_opcode,   // reserved, or of a service that urxe lacks (RD, XRC)
  headers_cut_off,  // the opcode promises headers that do not fit
  bad_pad,          // the pad count exceeds the payload
  surplus_payload,  // the opcode allows no payload, or another amount
};
[[nodiscard]] std::string_view to_string(ParseError error);

// The result of parsing. Which of the extension headers mean anything, `info->headers` says.
struct Packet {
  Bth bth;
  const OpcodeInfo* info = nullptr;
  Deth deth;
  Reth reth;
  AtomicEth atomic;
  Aeth aeth;
  Feth feth;
  std::uint64_t atomic_result = 0;  // AtomicAckETH: what stood there before
  std::uint32_t immediate = 0;      // host order of the big-endian field
  RKey invalidate;                  // IETH
  Bytes payload;                    // without the pad; borrowed from the parsed bytes
};

// Takes a UDP payload: BTH to ICRC. Checks every length that the packet itself decides; what
// depends on a QP (the path MTU) is the transport's to check. The ICRC is not looked at.
[[nodiscard]] tl::expected<Packet, ParseError> parse_packet(Bytes bytes);

// Writes BTH and extension headers as `packet.info` wants them; returns their size. `bytes` has at
// least kMaxHeaderSize.
std::size_t write_headers(const Packet& packet, MutableBytes bytes);

[[nodiscard]] constexpr std::uint8_t pad_count(std::size_t payload_size) {
  return static_cast<std::uint8_t>(-payload_size & 3);
}

}  // namespace urxe::wire
