// Where the fields of communication management stand in their MADs: typed anew from IBTA 12.6 and
// 12.11, so that a test does not ask the parser that it tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/wire/cm.h"

namespace urxe::test {

// Which values of a field are worth a try.
enum class FieldKind : std::uint8_t {
  number,
  id,       // of a communication: also those of others
  qpn,      // also those of others
  choice,   // of few: all values
  reason,   // of a REJ
  address,  // 128 bits: also that of the peer, and a stranger's
};

struct MadField {
  const char* name;
  std::size_t byte;  // of the MAD
  unsigned bit;      // below the most significant one
  unsigned width;    // in bits
  FieldKind kind = FieldKind::number;
};

[[nodiscard]] inline std::uint64_t load_field(std::span<const std::uint8_t> mad,
                                              const MadField& field) {
  std::uint64_t value = 0;
  for (std::size_t at = 8 * field.byte + field.bit, end = at + field.width; at < end; ++at) {
    value = value << 1 | (mad[at / 8] >> (7 - at % 8) & 1U);
  }
  return value;
}

inline void store_field(std::span<std::uint8_t> mad, const MadField& field, std::uint64_t value) {
  for (std::size_t i = 0; i < field.width; ++i) {
    const std::size_t at = 8 * field.byte + field.bit + i;
    const std::size_t below = field.width - 1 - i;
    const auto mask = static_cast<std::uint8_t>(0x80U >> at % 8);
    const bool set = (value >> (below < 64 ? below : 63) & 1U) != 0;
    mad[at / 8] = static_cast<std::uint8_t>(set ? mad[at / 8] | mask : mad[at / 8] & ~mask);
  }
}

// Of every MAD (IBTA 13.4.2), then those of the message.
[[nodiscard]] std::vector<MadField> fields_of(wire::CmAttribute attribute);

inline constexpr MadField kFirstId{"local id", 24, 0, 32, FieldKind::id};
inline constexpr MadField kSecondId{"remote id", 28, 0, 32, FieldKind::id};

}  // namespace urxe::test
