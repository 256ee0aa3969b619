#include "net/wire/headers.h"

#include <algorithm>

namespace urxe::wire {
namespace {

constexpr std::uint8_t kSolicitedBit = 0x80;
constexpr std::uint8_t kMigrationBit = 0x40;
constexpr std::uint8_t kFecnBit = 0x80;
constexpr std::uint8_t kBecnBit = 0x40;
constexpr std::uint8_t kAckRequestBit = 0x80;

constexpr std::uint8_t flag(bool set, std::uint8_t bit) { return set ? bit : std::uint8_t{0}; }

}  // namespace

Bth Bth::parse(Bytes bytes) {
  return {
      .opcode = bytes[0],
      .solicited = (bytes[1] & kSolicitedBit) != 0,
      .migration = (bytes[1] & kMigrationBit) != 0,
      .pad_count = static_cast<std::uint8_t>(bytes[1] >> 4 & 3),
      .version = static_cast<std::uint8_t>(bytes[1] & 0xF),
      .pkey = PKey{load_be<std::uint16_t>(bytes, 2)},
      .fecn = (bytes[4] & kFecnBit) != 0,
      .becn = (bytes[4] & kBecnBit) != 0,
      .destination = Qpn{load_be<std::uint32_t, 3>(bytes, 5)},
      .ack_request = (bytes[8] & kAckRequestBit) != 0,
      .psn = Psn{load_be<std::uint32_t, 3>(bytes, 9)},
  };
}

void Bth::serialize(MutableBytes bytes) const {
  bytes[0] = opcode;
  bytes[1] =
      static_cast<std::uint8_t>(flag(solicited, kSolicitedBit) | flag(migration, kMigrationBit) |
                                (pad_count & 3) << 4 | (version & 0xF));
  store_be(bytes, 2, pkey.value());
  bytes[4] = static_cast<std::uint8_t>(flag(fecn, kFecnBit) | flag(becn, kBecnBit));
  store_be<std::uint32_t, 3>(bytes, 5, destination.value());
  bytes[8] = flag(ack_request, kAckRequestBit);
  store_be<std::uint32_t, 3>(bytes, 9, psn.value());
}

Deth Deth::parse(Bytes bytes) {
  return {.qkey = QKey{load_be<std::uint32_t>(bytes, 0)},
          .source = Qpn{load_be<std::uint32_t, 3>(bytes, 5)}};
}

void Deth::serialize(MutableBytes bytes) const {
  store_be(bytes, 0, qkey.value());
  store_be(bytes, 4, source.value());
}

Reth Reth::parse(Bytes bytes) {
  return {.address = load_be<std::uint64_t>(bytes, 0),
          .rkey = RKey{load_be<std::uint32_t>(bytes, 8)},
          .length = load_be<std::uint32_t>(bytes, 12)};
}

void Reth::serialize(MutableBytes bytes) const {
  store_be(bytes, 0, address);
  store_be(bytes, 8, rkey.value());
  store_be(bytes, 12, length);
}

AtomicEth AtomicEth::parse(Bytes bytes) {
  return {.address = load_be<std::uint64_t>(bytes, 0),
          .rkey = RKey{load_be<std::uint32_t>(bytes, 8)},
          .swap_or_add = load_be<std::uint64_t>(bytes, 12),
          .compare = load_be<std::uint64_t>(bytes, 20)};
}

void AtomicEth::serialize(MutableBytes bytes) const {
  store_be(bytes, 0, address);
  store_be(bytes, 8, rkey.value());
  store_be(bytes, 12, swap_or_add);
  store_be(bytes, 20, compare);
}

Aeth Aeth::parse(Bytes bytes) {
  return {.syndrome = Syndrome{bytes[0]}, .msn = Msn{load_be<std::uint32_t, 3>(bytes, 1)}};
}

void Aeth::serialize(MutableBytes bytes) const {
  bytes[0] = syndrome.bits();
  store_be<std::uint32_t, 3>(bytes, 1, msn.value());
}

Feth Feth::parse(Bytes bytes) {
  return {.placement = static_cast<std::uint8_t>(bytes[3] & 0xF),
          .selectivity = static_cast<std::uint8_t>(bytes[3] >> 4 & 3)};
}

void Feth::serialize(MutableBytes bytes) const {
  std::fill_n(bytes.begin(), 3, std::uint8_t{0});
  bytes[3] = static_cast<std::uint8_t>((selectivity & 3) << 4 | (placement & 0xF));
}

}  // namespace urxe::wire
