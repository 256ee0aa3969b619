// A queue pair's attributes and the rules for changing them (IBTA 11.2.5.2, table 91).
#pragma once

#include <cstdint>

#include "emulator/address_vector.h"
#include "emulator/types.h"
#include "net/wire/numbers.h"

namespace urxe::emulator {

// ib_qp_attr_mask.
using AttributeMask = Flags<struct AttributeMaskTag>;
inline constexpr AttributeMask kAttrState{1U << 0};
inline constexpr AttributeMask kAttrCurrentState{1U << 1};
inline constexpr AttributeMask kAttrDrainNotify{1U << 2};
inline constexpr AttributeMask kAttrAccess{1U << 3};
inline constexpr AttributeMask kAttrPKeyIndex{1U << 4};
inline constexpr AttributeMask kAttrPort{1U << 5};
inline constexpr AttributeMask kAttrQKey{1U << 6};
inline constexpr AttributeMask kAttrAddressVector{1U << 7};
inline constexpr AttributeMask kAttrPathMtu{1U << 8};
inline constexpr AttributeMask kAttrTimeout{1U << 9};
inline constexpr AttributeMask kAttrRetryCount{1U << 10};
inline constexpr AttributeMask kAttrRnrRetry{1U << 11};
inline constexpr AttributeMask kAttrReceivePsn{1U << 12};
inline constexpr AttributeMask kAttrMaxReadAtomic{1U << 13};
inline constexpr AttributeMask kAttrAlternatePath{1U << 14};
inline constexpr AttributeMask kAttrMinRnrTimer{1U << 15};
inline constexpr AttributeMask kAttrSendPsn{1U << 16};
inline constexpr AttributeMask kAttrMaxDestReadAtomic{1U << 17};
inline constexpr AttributeMask kAttrMigrationState{1U << 18};
inline constexpr AttributeMask kAttrCapabilities{1U << 19};
inline constexpr AttributeMask kAttrDestinationQpn{1U << 20};
inline constexpr AttributeMask kAttrRateLimit{1U << 25};

struct QpCapabilities {
  std::uint32_t max_send_wr = 0;
  std::uint32_t max_recv_wr = 0;
  std::uint32_t max_send_sge = 0;
  std::uint32_t max_recv_sge = 0;
  std::uint32_t max_inline_data = 0;  // bytes
};

struct QpAttributes {
  QpState state = QpState::reset;
  QpState current_state = QpState::reset;
  Mtu path_mtu = Mtu::bytes256;
  std::uint8_t migration_state = 0;  // kept, never acted upon
  wire::QKey qkey;
  wire::Psn receive_psn;
  wire::Psn send_psn;
  wire::Qpn destination;
  Access access;
  QpCapabilities capabilities;
  AddressVector vector;
  AddressVector alternate_vector;
  std::uint16_t pkey_index = 0;
  std::uint16_t alternate_pkey_index = 0;
  bool drain_notify = false;
  bool draining = false;
  std::uint8_t max_read_atomic = 0;       // as requester
  std::uint8_t max_dest_read_atomic = 0;  // as responder
  std::uint8_t min_rnr_timer = 0;         // code 0...31
  std::uint8_t port = 1;
  std::uint8_t timeout = 0;      // 4.096 us * 2^timeout; 0: never
  std::uint8_t retry_count = 0;  // 0...7
  std::uint8_t rnr_retry = 0;    // 0...7; 7: for ever
  std::uint8_t alternate_port = 0;
  std::uint8_t alternate_timeout = 0;
};

// Whether a queue pair of this type may go from one state to the other with these attributes given.
struct TransitionCheck {
  bool exists = false;    // the transition itself
  AttributeMask missing;  // required, not given
  AttributeMask surplus;  // given, neither required nor optional
  [[nodiscard]] bool ok() const { return exists && missing.empty() && surplus.empty(); }
};
[[nodiscard]] TransitionCheck check_transition(QpState from, QpState to, QpType type,
                                               AttributeMask given);

}  // namespace urxe::emulator
