// The table of queue pair state transitions: IBTA 11.2.5.2 as Linux's ib_core reads it.
#include <array>

#include "emulator/qp_attributes.h"

namespace urxe::emulator {
namespace {

using enum QpState;
using enum QpType;

struct Row {
  QpState from;
  QpState to;
  QpType type;
  AttributeMask required;
  AttributeMask optional;
};

constexpr AttributeMask kNone{};
constexpr AttributeMask kToInit = kAttrPKeyIndex | kAttrPort | kAttrAccess;
constexpr AttributeMask kToInitDatagram = kAttrPKeyIndex | kAttrPort | kAttrQKey;
constexpr AttributeMask kToInitGsi = kAttrPKeyIndex | kAttrQKey;
constexpr AttributeMask kToRtr =
    kAttrAddressVector | kAttrPathMtu | kAttrDestinationQpn | kAttrReceivePsn;
constexpr AttributeMask kToRtrRc = kToRtr | kAttrMaxDestReadAtomic | kAttrMinRnrTimer;
constexpr AttributeMask kToRtsRc =
    kAttrTimeout | kAttrRetryCount | kAttrRnrRetry | kAttrSendPsn | kAttrMaxReadAtomic;
constexpr AttributeMask kConnected =
    kAttrCurrentState | kAttrAlternatePath | kAttrAccess | kAttrMigrationState;
constexpr AttributeMask kDatagram = kAttrCurrentState | kAttrQKey;

constexpr std::array kRows{
    Row{reset, init, rc, kToInit, kNone},
    Row{reset, init, uc, kToInit, kNone},
    Row{reset, init, ud, kToInitDatagram, kNone},
    Row{reset, init, gsi, kToInitGsi, kNone},

    Row{init, init, rc, kNone, kToInit},
    Row{init, init, uc, kNone, kToInit},
    Row{init, init, ud, kNone, kToInitDatagram},
    Row{init, init, gsi, kNone, kToInitGsi},

    Row{init, ready_to_receive, rc, kToRtrRc, kAttrAlternatePath | kAttrAccess | kAttrPKeyIndex},
    Row{init, ready_to_receive, uc, kToRtr, kAttrAlternatePath | kAttrAccess | kAttrPKeyIndex},
    Row{init, ready_to_receive, ud, kNone, kAttrPKeyIndex | kAttrQKey},
    Row{init, ready_to_receive, gsi, kNone, kAttrPKeyIndex | kAttrQKey},

    Row{ready_to_receive, ready_to_send, rc, kToRtsRc, kConnected | kAttrMinRnrTimer},
    Row{ready_to_receive, ready_to_send, uc, kAttrSendPsn, kConnected},
    Row{ready_to_receive, ready_to_send, ud, kAttrSendPsn, kDatagram},
    Row{ready_to_receive, ready_to_send, gsi, kAttrSendPsn, kDatagram},

    Row{ready_to_send, ready_to_send, rc, kNone, kConnected | kAttrMinRnrTimer},
    Row{ready_to_send, ready_to_send, uc, kNone, kConnected},
    Row{ready_to_send, ready_to_send, ud, kNone, kDatagram},
    Row{ready_to_send, ready_to_send, gsi, kNone, kDatagram},

    Row{ready_to_send, send_queue_drain, rc, kNone, kAttrDrainNotify},
    Row{ready_to_send, send_queue_drain, uc, kNone, kAttrDrainNotify},
    Row{ready_to_send, send_queue_drain, ud, kNone, kAttrDrainNotify},
    Row{ready_to_send, send_queue_drain, gsi, kNone, kAttrDrainNotify},

    Row{send_queue_drain, ready_to_send, rc, kNone, kConnected | kAttrMinRnrTimer},
    Row{send_queue_drain, ready_to_send, uc, kNone, kConnected},
    Row{send_queue_drain, ready_to_send, ud, kNone, kDatagram},
    Row{send_queue_drain, ready_to_send, gsi, kNone, kDatagram},

    Row{send_queue_drain, send_queue_drain, rc, kNone,
        kAttrPort | kAttrAddressVector | kAttrTimeout | kAttrRetryCount | kAttrRnrRetry |
            kAttrMaxReadAtomic | kAttrMaxDestReadAtomic | kAttrAlternatePath | kAttrAccess |
            kAttrPKeyIndex | kAttrMinRnrTimer | kAttrMigrationState},
    Row{send_queue_drain, send_queue_drain, uc, kNone,
        kAttrAddressVector | kAttrAlternatePath | kAttrAccess | kAttrPKeyIndex |
            kAttrMigrationState},
    Row{send_queue_drain, send_queue_drain, ud, kNone, kAttrPKeyIndex | kAttrQKey},
    Row{send_queue_drain, send_queue_drain, gsi, kNone, kAttrPKeyIndex | kAttrQKey},

    Row{send_queue_error, ready_to_send, rc, kNone, kNone},  // never in SQE, but so it is written
    Row{send_queue_error, ready_to_send, uc, kNone, kAttrCurrentState | kAttrAccess},
    Row{send_queue_error, ready_to_send, ud, kNone, kDatagram},
    Row{send_queue_error, ready_to_send, gsi, kNone, kDatagram},
};

// From every state a queue pair may be reset; from every state but RESET it may be put in error.
constexpr bool is_always_allowed(QpState from, QpState to) {
  return to == reset || (to == error && from != reset);
}

const Row* find_row(QpState from, QpState to, QpType type) {
  for (const Row& row : kRows) {
    if (row.from == from && row.to == to && row.type == type) return &row;
  }
  return nullptr;
}

}  // namespace

TransitionCheck check_transition(QpState from, QpState to, QpType type, AttributeMask given) {
  const Row* row = find_row(from, to, type);
  const AttributeMask required = row != nullptr ? row->required : kNone;
  const AttributeMask optional = row != nullptr ? row->optional : kNone;
  return {.exists = row != nullptr || is_always_allowed(from, to),
          .missing = required.without(given),
          .surplus = given.without(required | optional | kAttrState)};
}

}  // namespace urxe::emulator
