#include "tests/support/bring_up.h"

#include <stdexcept>

namespace urxe::test {

using namespace emulator;

namespace {

AttributeMask needed(QpType type, QpState state) {
  const bool rc = type == QpType::rc;
  const bool connected = rc || type == QpType::uc;
  AttributeMask mask{};
  switch (state) {
    case QpState::init:
      mask = kAttrPKeyIndex | (connected ? kAttrAccess : kAttrQKey);
      if (type != QpType::gsi) mask |= kAttrPort;
      break;
    case QpState::ready_to_receive:
      if (connected) {
        mask = kAttrAddressVector | kAttrPathMtu | kAttrDestinationQpn | kAttrReceivePsn;
      }
      if (rc) mask |= kAttrMaxDestReadAtomic | kAttrMinRnrTimer;
      break;
    case QpState::ready_to_send:
      mask = kAttrSendPsn;
      if (rc) mask |= kAttrTimeout | kAttrRetryCount | kAttrRnrRetry | kAttrMaxReadAtomic;
      break;
    default:
      break;
  }
  return mask;
}

}  // namespace

void step_to(QueuePair& qp, QpAttributes attributes, QpState state) {
  attributes.state = state;
  const auto done = qp.modify(attributes, needed(qp.type(), state) | kAttrState);
  if (!done) throw std::runtime_error(done.error().sentence);
}

void bring_up(QueuePair& qp, QpAttributes attributes) {
  for (const QpState state : {QpState::init, QpState::ready_to_receive, QpState::ready_to_send}) {
    step_to(qp, attributes, state);
  }
}

}  // namespace urxe::test
