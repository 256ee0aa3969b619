#include "emulator/cm/connection.h"

#include <algorithm>

namespace urxe::emulator {

Duration cm_timeout(unsigned exponent) {
  return std::chrono::milliseconds(std::int64_t{1} << (exponent > 8 ? exponent - 8 : 0));
}

// IBTA 12.7.34: twice the packet life time and the peer's delay, rounded to a power of two.
std::uint8_t cm_ack_timeout(unsigned ack_delay, unsigned life_time) {
  unsigned timeout = life_time + 1;
  if (timeout >= ack_delay) {
    timeout += ack_delay + 1 >= timeout ? 1 : 0;
  } else {
    timeout = ack_delay + (timeout + 1 >= ack_delay ? 1 : 0);
  }
  return static_cast<std::uint8_t>(std::min(timeout, 31U));
}

QpSetup Connection::setup_of_init() const {
  QpSetup setup;
  setup.mask = kAttrState | kAttrAccess | kAttrPKeyIndex | kAttrPort;
  setup.attributes.state = QpState::init;
  setup.attributes.access = kRemoteWrite;
  if (responder_resources > 0) setup.attributes.access |= kRemoteRead | kRemoteAtomic;
  return setup;
}

QpSetup Connection::setup_of_ready_to_receive() const {
  QpSetup setup;
  setup.mask =
      kAttrState | kAttrAddressVector | kAttrPathMtu | kAttrDestinationQpn | kAttrReceivePsn;
  setup.attributes.state = QpState::ready_to_receive;
  setup.attributes.vector = vector;
  setup.attributes.path_mtu = static_cast<Mtu>(path_mtu);
  setup.attributes.destination = remote_qpn;
  setup.attributes.receive_psn = receive_psn;
  if (type == QpType::rc) {
    setup.mask |= kAttrMaxDestReadAtomic | kAttrMinRnrTimer;
    setup.attributes.max_dest_read_atomic = responder_resources;
  }
  return setup;
}

QpSetup Connection::setup_of_ready_to_send() const {
  QpSetup setup;
  setup.mask = kAttrState | kAttrSendPsn;
  setup.attributes.state = QpState::ready_to_send;
  setup.attributes.send_psn = send_psn;
  if (type == QpType::rc) {
    setup.mask |= kAttrRetryCount | kAttrRnrRetry | kAttrMaxReadAtomic | kAttrTimeout;
    setup.attributes.retry_count = retry_count;
    setup.attributes.rnr_retry = rnr_retry_count;
    setup.attributes.max_read_atomic = initiator_depth;
    setup.attributes.timeout = ack_timeout;
  }
  return setup;
}

std::optional<QpSetup> Connection::qp_setup(QpState target) const {
  switch (state) {
    case CmState::request_sent:
    case CmState::request_acknowledged:
      if (target == QpState::init) return setup_of_init();
      return std::nullopt;
    case CmState::request_received:
    case CmState::reply_sent:
    case CmState::reply_acknowledged:
    case CmState::reply_received:
    case CmState::established:
      if (target == QpState::init) return setup_of_init();
      if (target == QpState::ready_to_receive) return setup_of_ready_to_receive();
      if (target == QpState::ready_to_send) return setup_of_ready_to_send();
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace urxe::emulator
