// How the processes that share an address divide the queue pair numbers among themselves.
#pragma once

#include <cstdint>

#include "net/wire/bytes.h"
#include "net/wire/numbers.h"

namespace urxe::net {

// A share of the queue pair numbers. A QPN is a slot above an index:
//
//     | slot, 10 bits | index, 14 bits |
//
// A slot belongs to one process of a network namespace, whatever its addresses are.
using Slot = wire::Number<struct SlotTag, std::uint32_t, 10>;

inline constexpr unsigned kIndexBits = 14;
// The last slot is not given out: it holds the QPN of multicast packets.
inline constexpr std::uint32_t kSlotCount = (1U << 10) - 1;

// QPNs 0 and 1 stand for the SMI and the GSI of every process, so no slot uses its first two.
inline constexpr std::uint32_t kReservedQpns = 2;
inline constexpr std::uint32_t kQpnsPerSlot = (1U << kIndexBits) - kReservedQpns;

[[nodiscard]] constexpr wire::Qpn first_qpn_of(Slot slot) {
  return wire::Qpn{(slot.value() << kIndexBits) + kReservedQpns};
}
[[nodiscard]] constexpr Slot slot_of(wire::Qpn qpn) { return Slot{qpn.value() >> kIndexBits}; }
// A packet's destination QPN, from a BTH that need not be looked at otherwise.
[[nodiscard]] constexpr wire::Qpn destination_qpn(wire::Bytes packet) {
  return wire::Qpn{wire::load_be<std::uint32_t, 3>(packet, 5)};
}
// QPNs that say nothing about a slot.
[[nodiscard]] constexpr bool is_management(wire::Qpn qpn) { return qpn.value() < kReservedQpns; }

}  // namespace urxe::net
