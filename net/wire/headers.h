// The headers of InfiniBand's transport as values. `parse` takes bytes that are known to be long
// enough (packet.h checks lengths once, from the opcode table); `serialize` fills them.
#pragma once

#include <cstdint>

#include "net/wire/bytes.h"
#include "net/wire/numbers.h"
#include "net/wire/opcode.h"
#include "net/wire/syndrome.h"

namespace urxe::wire {

// Base transport header, IBTA 9.2.
//
//   0                   1                   2                   3
//   0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//  +---------------+-+-+---+-------+-------------------------------+
//  |    OpCode     |S|M|Pad| TVer  |             P_Key             |
//  +-+-+-----------+-+-+---+-------+-------------------------------+
//  |F|B| reserved 6|                 Destination QP                |
//  +-+-+-----------+-----------------------------------------------+
//  |A|  reserved 7 |                      PSN                      |
//  +-+-------------+-----------------------------------------------+
struct Bth {
  std::uint8_t opcode = 0;
  bool solicited = false;
  bool migration = true;  // hardware sends 1; every receiver accepts both
  std::uint8_t pad_count = 0;
  std::uint8_t version = 0;
  PKey pkey = kDefaultPKey;
  bool fecn = false;
  bool becn = false;
  Qpn destination;
  bool ack_request = false;
  Psn psn;

  static Bth parse(Bytes bytes);
  void serialize(MutableBytes bytes) const;
  friend bool operator==(const Bth&, const Bth&) = default;
};

// Datagram extended transport header, IBTA 9.3.1.
//
//  +---------------------------------------------------------------+
//  |                             Q_Key                             |
//  +---------------+-----------------------------------------------+
//  |   reserved    |                   Source QP                   |
//  +---------------+-----------------------------------------------+
struct Deth {
  QKey qkey;
  Qpn source;

  static Deth parse(Bytes bytes);
  void serialize(MutableBytes bytes) const;
  friend bool operator==(const Deth&, const Deth&) = default;
};

// RDMA extended transport header, IBTA 9.3.3.
//
//  +---------------------------------------------------------------+
//  |                    Virtual address (64 bits)                  |
//  |                                                               |
//  +---------------------------------------------------------------+
//  |                             R_Key                             |
//  +---------------------------------------------------------------+
//  |                           DMA length                          |
//  +---------------------------------------------------------------+
struct Reth {
  std::uint64_t address = 0;
  RKey rkey;
  std::uint32_t length = 0;

  static Reth parse(Bytes bytes);
  void serialize(MutableBytes bytes) const;
  friend bool operator==(const Reth&, const Reth&) = default;
};

// Atomic extended transport header, IBTA 9.3.4.
//
//  +---------------------------------------------------------------+
//  |                    Virtual address (64 bits)                  |
//  |                                                               |
//  +---------------------------------------------------------------+
//  |                             R_Key                             |
//  +---------------------------------------------------------------+
//  |                  Swap or add data (64 bits)                   |
//  |                                                               |
//  +---------------------------------------------------------------+
//  |                    Compare data (64 bits)                     |
//  |                                                               |
//  +---------------------------------------------------------------+
struct AtomicEth {
  std::uint64_t address = 0;
  RKey rkey;
  std::uint64_t swap_or_add = 0;
  std::uint64_t compare = 0;

  static AtomicEth parse(Bytes bytes);
  void serialize(MutableBytes bytes) const;
  friend bool operator==(const AtomicEth&, const AtomicEth&) = default;
};

// ACK extended transport header, IBTA 9.3.5.
//
//  +---------------+-----------------------------------------------+
//  |   Syndrome    |                      MSN                      |
//  +---------------+-----------------------------------------------+
struct Aeth {
  Syndrome syndrome;
  Msn msn;

  static Aeth parse(Bytes bytes);
  void serialize(MutableBytes bytes) const;
  friend bool operator==(const Aeth&, const Aeth&) = default;
};

// FLUSH extended transport header, IBTA 1.5 annex A19.
//
//  +---------------------------------------------------+-----+-----+
//  |                    reserved (26)                  |Sel 2|Plt 4|
//  +---------------------------------------------------+-----+-----+
struct Feth {
  static constexpr std::uint8_t kGlobalVisibility = 1U << 0;
  static constexpr std::uint8_t kPersistence = 1U << 1;
  static constexpr std::uint8_t kWholeRegion = 1;

  std::uint8_t placement = 0;    // what must have been reached, as bits
  std::uint8_t selectivity = 0;  // 0: the range of the RETH, 1: the whole memory region

  static Feth parse(Bytes bytes);
  void serialize(MutableBytes bytes) const;
  friend bool operator==(const Feth&, const Feth&) = default;
};

}  // namespace urxe::wire
