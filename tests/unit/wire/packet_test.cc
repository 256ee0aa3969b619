#include "net/wire/packet.h"

#include <algorithm>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/frames.h"
#include "tests/support/hex.h"

namespace urxe::wire {
namespace {

using Buffer = std::vector<std::uint8_t>;

// BTH to ICRC of a packet with this opcode, `payload` bytes of 0xDA and the pad that they need. The
// ICRC is nonsense: the parser does not look at it.
Buffer packet_bytes(const OpcodeInfo& info, std::size_t payload) {
  Packet packet = test::packet_of(info.opcode);
  packet.bth.pad_count = pad_count(payload);
  Buffer bytes(kMaxHeaderSize);
  bytes.resize(write_headers(packet, bytes));
  bytes.insert(bytes.end(), payload, 0xDA);
  bytes.insert(bytes.end(), packet.bth.pad_count, 0);
  bytes.insert(bytes.end(), kIcrcSize, 0xCC);
  return bytes;
}

bool takes(const OpcodeInfo& info, std::size_t payload) {
  switch (info.payload) {
    case PayloadRule::none:
      return payload == 0;
    case PayloadRule::eight:
      return payload == 8;
    case PayloadRule::reserved:
      return payload == 16;
    default:
      return true;
  }
}

// A payload size that the opcode allows.
std::size_t allowed_size(const OpcodeInfo& info) {
  return takes(info, 0) ? 0 : takes(info, 8) ? 8 : 16;
}

void check_refused(const Buffer& bytes, ParseError reason) {
  const auto parsed = parse_packet(bytes);
  REQUIRE_FALSE(parsed);
  CHECK(to_string(parsed.error()) == to_string(reason));
}

TEST_CASE("a payload is padded to a multiple of four") {
  CHECK(pad_count(0) == 0);
  CHECK(pad_count(1) == 3);
  CHECK(pad_count(2) == 2);
  CHECK(pad_count(3) == 1);
  CHECK(pad_count(4) == 0);
  CHECK(pad_count(4095) == 1);
}

TEST_CASE("every opcode takes the payload sizes that it allows, and no others") {
  for (const OpcodeInfo& info : all_opcodes()) {
    for (std::size_t size = 0; size <= 40; ++size) {
      INFO(info.name << " with " << size << " bytes");
      const Buffer bytes = packet_bytes(info, size);
      const auto packet = parse_packet(bytes);
      REQUIRE(packet.has_value() == takes(info, size));
      if (!packet) {
        CHECK(packet.error() == ParseError::surplus_payload);
        continue;
      }
      CHECK(packet->info == &info);
      CHECK(packet->payload.size() == size);
      CHECK(packet->payload.data() == bytes.data() + info.header_size());
    }
  }
}

TEST_CASE("the largest packet is taken") {
  const OpcodeInfo& info = wire::info(Opcode::rc_write_only_immediate);
  const Buffer bytes = packet_bytes(info, 4096);
  const auto packet = parse_packet(bytes);
  REQUIRE(packet);
  CHECK(packet->payload.size() == 4096);
}

TEST_CASE("fewer than 16 bytes are too short, whatever they say") {
  for (std::size_t size = 0; size < 16; ++size) {
    check_refused(Buffer(size, 0x04), ParseError::too_short);
  }
}

TEST_CASE("a length that is no multiple of four is refused") {
  for (std::size_t surplus = 1; surplus < 4; ++surplus) {
    Buffer bytes = packet_bytes(info(Opcode::rc_send_only), 8);
    bytes.resize(bytes.size() + surplus);
    check_refused(bytes, ParseError::unaligned);
  }
}

TEST_CASE("a transport version other than 0 is refused") {
  for (std::uint8_t version = 1; version < 16; ++version) {
    Buffer bytes = packet_bytes(info(Opcode::rc_send_only), 8);
    bytes[1] = static_cast<std::uint8_t>(bytes[1] | version);
    check_refused(bytes, ParseError::unknown_version);
  }
}

TEST_CASE("opcodes that are reserved, of RD or of XRC are refused") {
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    if (find_opcode(static_cast<std::uint8_t>(opcode)) != nullptr) continue;
    Buffer bytes = packet_bytes(info(Opcode::rc_send_only), 64);
    bytes[0] = static_cast<std::uint8_t>(opcode);
    INFO("opcode " << opcode);
    check_refused(bytes, ParseError::unknown_opcode);
  }
}

TEST_CASE("headers that the opcode promises and the bytes lack are noticed") {
  for (const OpcodeInfo& info : all_opcodes()) {
    Buffer bytes = packet_bytes(info, 0);
    bytes[1] = 0;
    const std::size_t least = info.header_size() + kIcrcSize;
    for (std::size_t size = kBthSize + kIcrcSize; size < least; size += 4) {
      INFO(info.name << " in " << size << " bytes");
      check_refused(Buffer(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)),
                    ParseError::headers_cut_off);
    }
  }
}

TEST_CASE("a pad count without a payload is refused") {
  for (const OpcodeInfo& info : all_opcodes()) {
    for (std::uint8_t pad = 1; pad < 4; ++pad) {
      INFO(info.name << " with pad " << int{pad});
      Buffer bytes = packet_bytes(info, 0);
      bytes[1] = static_cast<std::uint8_t>(pad << 4);
      check_refused(bytes, ParseError::bad_pad);
    }
  }
}

TEST_CASE("a pad makes a fixed payload too short") {
  for (const OpcodeInfo& info : all_opcodes()) {
    if (info.payload != PayloadRule::eight && info.payload != PayloadRule::reserved) continue;
    Buffer bytes = packet_bytes(info, allowed_size(info));
    bytes[1] = 0x10;
    INFO(info.name);
    check_refused(bytes, ParseError::surplus_payload);
  }
}

TEST_CASE("the first error in the order of the headers is the one that is told") {
  Buffer bytes(17, 0xFF);  // unaligned, and all else is wrong too
  check_refused(bytes, ParseError::unaligned);
  bytes.resize(16);
  check_refused(bytes, ParseError::unknown_version);
  bytes[1] = 0x30;
  check_refused(bytes, ParseError::unknown_opcode);
  bytes[0] = static_cast<std::uint8_t>(Opcode::rc_compare_swap);
  check_refused(bytes, ParseError::headers_cut_off);
  bytes[0] = static_cast<std::uint8_t>(Opcode::rc_send_only);
  check_refused(bytes, ParseError::bad_pad);
}

// All extension headers at once, each field with a value of its own.
Packet full_packet(Opcode opcode) {
  Packet packet = test::packet_of(opcode);
  packet.bth.destination = Qpn{0x123456};
  packet.bth.psn = Psn{0xFEDCBA};
  packet.deth = {.qkey = QKey{0x11121314}, .source = Qpn{0x151617}};
  packet.reth = {.address = 0x2122232425262728, .rkey = RKey{0x292A2B2C}, .length = 0x2D2E2F30};
  packet.atomic = {.address = 0x3132333435363738,
                   .rkey = RKey{0x393A3B3C},
                   .swap_or_add = 0x4142434445464748,
                   .compare = 0x5152535455565758};
  packet.aeth = {.syndrome = Syndrome{0x61}, .msn = Msn{0x626364}};
  packet.feth = {.placement = 3, .selectivity = 1};
  packet.atomic_result = 0x7172737475767778;
  packet.immediate = 0x81828384;
  packet.invalidate = RKey{0x91929394};
  return packet;
}

// The extension headers of full_packet, as they stand on the wire.
std::string extensions_of(const OpcodeInfo& info) {
  std::string hex;
  if (info.has(Header::deth)) hex += "1112131400151617";
  if (info.has(Header::feth)) hex += "00000013";
  if (info.has(Header::reth)) hex += "2122232425262728292a2b2c2d2e2f30";
  if (info.has(Header::atomic_eth)) {
    hex += "3132333435363738393a3b3c41424344454647485152535455565758";
  }
  if (info.has(Header::aeth)) hex += "61626364";
  if (info.has(Header::atomic_ack_eth)) hex += "7172737475767778";
  if (info.has(Header::immediate)) hex += "81828384";
  if (info.has(Header::ieth)) hex += "91929394";
  return hex;
}

TEST_CASE("every opcode's headers are written in their order, and nothing behind them") {
  for (const OpcodeInfo& info : all_opcodes()) {
    INFO(info.name);
    Buffer bytes(kMaxHeaderSize + 4, 0xEE);
    const std::size_t size = write_headers(full_packet(info.opcode), bytes);
    REQUIRE(size == info.header_size());
    CHECK(test::to_hex(Bytes(bytes).subspan(kBthSize, size - kBthSize)) == extensions_of(info));
    CHECK(std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(size), bytes.end(),
                      [](std::uint8_t byte) { return byte == 0xEE; }));
  }
}

// What the opcode does not carry must keep its default: a reader who forgets to ask gets zeros.
TEST_CASE("every opcode's headers are read, and the values of others stay as they were") {
  const Packet empty;
  for (const OpcodeInfo& info : all_opcodes()) {
    INFO(info.name);
    const Packet sent = full_packet(info.opcode);
    Buffer bytes(kMaxHeaderSize);
    bytes.resize(write_headers(sent, bytes));
    bytes.insert(bytes.end(), allowed_size(info) + kIcrcSize, 0);
    const auto got = parse_packet(bytes);
    REQUIRE(got);
    CHECK(got->bth == sent.bth);
    CHECK(got->deth == (info.has(Header::deth) ? sent : empty).deth);
    CHECK(got->feth == (info.has(Header::feth) ? sent : empty).feth);
    CHECK(got->reth == (info.has(Header::reth) ? sent : empty).reth);
    CHECK(got->atomic == (info.has(Header::atomic_eth) ? sent : empty).atomic);
    CHECK(got->aeth == (info.has(Header::aeth) ? sent : empty).aeth);
    CHECK(got->atomic_result == (info.has(Header::atomic_ack_eth) ? sent : empty).atomic_result);
    CHECK(got->immediate == (info.has(Header::immediate) ? sent : empty).immediate);
    CHECK(got->invalidate == (info.has(Header::ieth) ? sent : empty).invalidate);
  }
}

TEST_CASE("every reason for refusing a packet has its own sentence") {
  std::set<std::string_view> sentences;
  for (int error = 0; error <= static_cast<int>(ParseError::surplus_payload); ++error) {
    sentences.insert(to_string(static_cast<ParseError>(error)));
  }
  CHECK(sentences.size() == 7);
  CHECK_FALSE(sentences.contains(""));
}

}  // namespace
}  // namespace urxe::wire
