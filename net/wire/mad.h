// Management datagrams: what queue pair 1 of every port sends and receives (IBTA 13.4).
#pragma once

#include <cstdint>

#include "net/wire/bytes.h"

namespace urxe::wire {

inline constexpr std::size_t kMadSize = 256;
inline constexpr std::size_t kMadHeaderSize = 24;
inline constexpr std::size_t kMadDataSize = kMadSize - kMadHeaderSize;

// IBTA 13.4.4. Of the others RoCE has no use.
inline constexpr std::uint8_t kCommunicationManagement = 0x07;

// The common MAD header, IBTA 13.4.2.
//
//  +---------------+---------------+---------------+---------------+
//  | Base version  |  Mgmt class   | Class version |    Method     |
//  +---------------+---------------+---------------+---------------+
//  |            Status             |        Class specific         |
//  +-------------------------------+-------------------------------+
//  |                    Transaction ID (64 bits)                   |
//  |                                                               |
//  +-------------------------------+-------------------------------+
//  |         Attribute ID          |           reserved            |
//  +-------------------------------+-------------------------------+
//  |                      Attribute modifier                       |
//  +---------------------------------------------------------------+
struct MadHeader {
  std::uint8_t base_version = 1;
  std::uint8_t management_class = 0;
  std::uint8_t class_version = 0;
  std::uint8_t method = 0;
  std::uint16_t status = 0;
  std::uint64_t transaction = 0;
  std::uint16_t attribute = 0;
  std::uint32_t attribute_modifier = 0;

  static MadHeader parse(Bytes bytes);
  void serialize(MutableBytes bytes) const;
  friend bool operator==(const MadHeader&, const MadHeader&) = default;
};

}  // namespace urxe::wire
