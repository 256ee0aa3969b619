#include "net/wire/packet.h"

#include <optional>

namespace urxe::wire {
namespace {

// Reads extension headers one after another, in the order in which they stand on the wire.
void parse_extensions(Packet& packet, Bytes bytes) {
  const OpcodeInfo& info = *packet.info;
  const auto take = [&bytes](std::size_t size) {
    const Bytes taken = bytes.first(size);
    bytes = bytes.subspan(size);
    return taken;
  };
  if (info.has(Header::deth)) packet.deth = Deth::parse(take(kDethSize));
  if (info.has(Header::feth)) packet.feth = Feth::parse(take(kFethSize));
  if (info.has(Header::reth)) packet.reth = Reth::parse(take(kRethSize));
  if (info.has(Header::atomic_eth)) packet.atomic = AtomicEth::parse(take(kAtomicEthSize));
  if (info.has(Header::aeth)) packet.aeth = Aeth::parse(take(kAethSize));
  if (info.has(Header::atomic_ack_eth)) {
    packet.atomic_result = load_be<std::uint64_t>(take(kAtomicAckEthSize), 0);
  }
  if (info.has(Header::immediate)) {
    packet.immediate = load_be<std::uint32_t>(take(kImmediateSize), 0);
  }
  if (info.has(Header::ieth)) {
    packet.invalidate = RKey{load_be<std::uint32_t>(take(kIethSize), 0)};
  }
}

bool payload_is_allowed(const OpcodeInfo& info, std::size_t size) {
  switch (info.payload) {
    case PayloadRule::none:
      return size == 0;
    case PayloadRule::eight:
      return size == 8;
    case PayloadRule::reserved:
      return size == kCnpReservedSize;
    case PayloadRule::exact_mtu:
    case PayloadRule::up_to_mtu:
      return true;
  }
  return false;
}

// Fills `packet` in place: it is large, and a copy would cost as much as the parsing.
std::optional<ParseError> parse_into(Packet& packet, Bytes bytes) {
  if (bytes.size() < kBthSize + kIcrcSize) return ParseError::too_short;
  if (bytes.size() % 4 != 0) return ParseError::unaligned;
  packet.bth = Bth::parse(bytes);
  if (packet.bth.version != 0) return ParseError::unknown_version;
  packet.info = find_opcode(packet.bth.opcode);
  if (packet.info == nullptr) return ParseError::unknown_opcode;
  const std::size_t header_size = packet.info->header_size();
  if (bytes.size() < header_size + kIcrcSize) return ParseError::headers_cut_off;
  const std::size_t padded = bytes.size() - header_size - kIcrcSize;
  if (packet.bth.pad_count > padded) return ParseError::bad_pad;
  packet.payload = bytes.subspan(header_size, padded - packet.bth.pad_count);
  if (!payload_is_allowed(*packet.info, packet.payload.size())) return ParseError::surplus_payload;
  parse_extensions(packet, bytes.subspan(kBthSize));
  return std::nullopt;
}

}  // namespace

std::string_view to_string(ParseError error) {
  switch (error) {
    case ParseError::too_short:
      return "too short";
    case ParseError::unaligned:
      return "length is not a multiple of four";
    case ParseError::unknown_version:
      return "unknown transport version";
    case ParseError::unknown_opcode:
      return "unknown opcode";
    case ParseError::headers_cut_off:
      return "headers cut off";
    case ParseError::bad_pad:
      return "pad count exceeds the payload";
    case ParseError::surplus_payload:
      return "payload that the opcode does not allow";
  }
  return "";
}

tl::expected<Packet, ParseError> parse_packet(Bytes bytes) {
  tl::expected<Packet, ParseError> packet;
  if (const auto error = parse_into(*packet, bytes)) packet = tl::unexpected(*error);
  return packet;
}

std::size_t write_headers(const Packet& packet, MutableBytes bytes) {
  const OpcodeInfo& info = *packet.info;
  std::size_t at = kBthSize;
  const auto put = [&](const auto& header, std::size_t size) {
    header.serialize(bytes.subspan(at, size));
    at += size;
  };
  packet.bth.serialize(bytes);
  if (info.has(Header::deth)) put(packet.deth, kDethSize);
  if (info.has(Header::feth)) put(packet.feth, kFethSize);
  if (info.has(Header::reth)) put(packet.reth, kRethSize);
  if (info.has(Header::atomic_eth)) put(packet.atomic, kAtomicEthSize);
  if (info.has(Header::aeth)) put(packet.aeth, kAethSize);
  if (info.has(Header::atomic_ack_eth)) {
    store_be(bytes, at, packet.atomic_result);
    at += kAtomicAckEthSize;
  }
  if (info.has(Header::immediate)) {
    store_be(bytes, at, packet.immediate);
    at += kImmediateSize;
  }
  if (info.has(Header::ieth)) {
    store_be(bytes, at, packet.invalidate.value());
    at += kIethSize;
  }
  return at;
}

}  // namespace urxe::wire
