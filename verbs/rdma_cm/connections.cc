// Connecting, accepting, rejecting, ending.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

#include "verbs/rdma_cm/agent.h"

namespace urxe::verbs::rdma_cm {
namespace {

// RDMA_UDP_QKEY of Linux: what UD queue pairs of rdma_cm use unless a program says otherwise.
constexpr wire::QKey kUdpQKey{0x01234567};
constexpr std::uint32_t kCommunicationEstablished = 4;  // ib_event_type

emulator::QpOffer offer_of(const Identifier& id, const rdma_ucm_conn_param& parameters,
                           wire::Bytes data) {
  return {.qpn = id.qpn,
          .starting_psn = id.starting_psn,
          .responder_resources = parameters.responder_resources,
          .initiator_depth = parameters.initiator_depth,
          .retry_count = parameters.retry_count,
          .rnr_retry_count = parameters.rnr_retry_count,
          .flow_control = parameters.flow_control != 0,
          .srq = id.srq,
          .ece_vendor = id.ece_vendor,
          .ece_modifier = id.ece_modifier,
          .private_data = data};
}

// What the program sends, behind the addresses if those go along.
std::vector<std::uint8_t> request_data(const Identifier& id,
                                       const rdma_ucm_conn_param& parameters) {
  std::vector<std::uint8_t> data(id.source.is_ib() ? 0 : wire::kIpCmHeaderSize);
  if (!data.empty()) {
    wire::IpCmHeader{
        .source_port = id.source.port, .source = id.source.ip, .destination = id.destination.ip}
        .serialize(data);
  }
  data.insert(data.end(), parameters.private_data,
              parameters.private_data + parameters.private_data_len);
  return data;
}

wire::ServiceId service_asked_for(const Identifier& id) {
  return id.destination.is_ib() ? wire::ServiceId{id.destination.service}
                                : wire::service_id(id.space, id.destination.port);
}

ib_uverbs_qp_attr to_user(const emulator::QpSetup& setup) {
  const emulator::QpAttributes& from = setup.attributes;
  ib_uverbs_qp_attr attributes{};
  attributes.qp_attr_mask = setup.mask.bits();
  attributes.qp_state = static_cast<std::uint32_t>(from.state);
  attributes.path_mtu =
      setup.mask.has(emulator::kAttrPathMtu) ? static_cast<std::uint32_t>(from.path_mtu) : 0;
  attributes.qkey = from.qkey.value();
  attributes.rq_psn = from.receive_psn.value();
  attributes.sq_psn = from.send_psn.value();
  attributes.dest_qp_num = from.destination.value();
  attributes.qp_access_flags = from.access.bits();
  if (setup.mask.has(emulator::kAttrAddressVector)) {
    attributes.ah_attr = ah_attributes(from.vector);
  }
  attributes.max_rd_atomic = from.max_read_atomic;
  attributes.max_dest_rd_atomic = from.max_dest_read_atomic;
  attributes.min_rnr_timer = from.min_rnr_timer;
  attributes.port_num = kPort;
  attributes.timeout = from.timeout;
  attributes.retry_cnt = from.retry_count;
  attributes.rnr_retry = from.rnr_retry;
  return attributes;
}

// Before there is a connection, and always for UD: the kernel's cma_ib_init_qp_attr.
emulator::QpSetup plain_setup(const Identifier& id, emulator::QpState target) {
  emulator::QpSetup setup;
  setup.mask = emulator::kAttrState | emulator::kAttrPKeyIndex | emulator::kAttrPort;
  setup.attributes.state = target;
  if (id.type == emulator::QpType::ud) {
    setup.mask |= emulator::kAttrQKey;
    setup.attributes.qkey = id.qkey;
  } else {
    setup.mask |= emulator::kAttrAccess;
  }
  return setup;
}

void default_qkey(Identifier& id) {
  if (id.qkey == wire::QKey{}) id.qkey = kUdpQKey;
}

}  // namespace

int CmAgent::connect_locked(const IdPointer& pointer, emulator::Device& device,
                            const rdma_ucm_connect& command) {
  Identifier& id = *pointer;
  if (id.state != IdState::route_resolved) return -EINVAL;
  id.qpn = wire::Qpn{command.conn_param.qp_num};
  id.srq = command.conn_param.srq != 0;
  id.ece_vendor = command.ece.vendor_id;
  id.ece_modifier = command.ece.attr_mod;
  const auto data = request_data(id, command.conn_param);
  const auto communication =
      id.type == emulator::QpType::ud
          ? device.cm().resolve(
                options_.now(),
                {.service = service_asked_for(id), .vector = id.vector, .private_data = data})
          : device.cm().connect(options_.now(),
                                {.service = service_asked_for(id),
                                 .vector = id.vector,
                                 .type = id.type,
                                 .path_mtu = static_cast<emulator::Mtu>(id.path_mtu),
                                 .packet_life_time = id.packet_life_time,
                                 .offer = offer_of(id, command.conn_param, data)});
  if (!communication) return errno_of(communication.error());
  set_communication(pointer, *communication);
  id.state = IdState::connect;
  return 0;
}

int CmAgent::connect(EventChannel& channel, const Request& request) {
  rdma_ucm_connect command;
  if (request.in() < offsetof(rdma_ucm_connect, ece)) return -EINVAL;
  if (const int failed = request.read(command); failed != 0) return failed;
  if (command.conn_param.valid == 0) return -EINVAL;
  return on_device(channel, command.id, [&](const IdPointer& id, emulator::Device& device) {
    return connect_locked(id, device, command);
  });
}

int CmAgent::accept_locked(Identifier& id, emulator::Device& device,
                           const rdma_ucm_accept& command) {
  if (id.state != IdState::connect || !id.communication) return -EINVAL;
  const rdma_ucm_conn_param& parameters = command.conn_param;
  const wire::Bytes data(parameters.private_data, parameters.private_data_len);
  id.ece_vendor = command.ece.vendor_id;
  id.ece_modifier = command.ece.attr_mod;
  if (parameters.valid != 0) {
    id.qpn = wire::Qpn{parameters.qp_num};
    id.srq = parameters.srq != 0;
  }
  emulator::Result<void> done;
  if (id.type == emulator::QpType::ud) {
    const bool given = parameters.valid != 0;
    if (given && id.source.is_ib() && parameters.qkey != 0) id.qkey = wire::QKey{parameters.qkey};
    default_qkey(id);
    done = device.cm().answer(
        options_.now(), *id.communication,
        {.qpn = id.qpn, .qkey = id.qkey, .private_data = given ? data : wire::Bytes{}});
  } else if (parameters.valid != 0) {
    done = device.cm().accept(options_.now(), *id.communication, offer_of(id, parameters, data));
  } else {
    done = device.cm().confirm(options_.now(), *id.communication);
  }
  if (done) {
    if (parameters.valid != 0) id.uid = command.uid;
    return 0;
  }
  static_cast<void>(device.cm().reject(options_.now(), *id.communication,
                                       wire::RejectReason::consumer_defined, {}));
  return errno_of(done.error());
}

int CmAgent::accept(EventChannel& channel, const Request& request) {
  rdma_ucm_accept command;
  if (request.in() < offsetof(rdma_ucm_accept, ece)) return -EINVAL;
  if (const int failed = request.read(command); failed != 0) return failed;
  return on_device(channel, command.id, [&](const IdPointer& id, emulator::Device& device) {
    return accept_locked(*id, device, command);
  });
}

int CmAgent::reject(EventChannel& channel, const Request& request) {
  rdma_ucm_reject command;
  if (const int failed = request.read(command); failed != 0) return failed;
  auto reason = wire::RejectReason::consumer_defined;
  if (command.reason != 0) reason = static_cast<wire::RejectReason>(command.reason);
  if (reason != wire::RejectReason::consumer_defined &&
      reason != wire::RejectReason::vendor_option_not_supported) {
    return -EINVAL;
  }
  const wire::Bytes data(command.private_data, command.private_data_len);
  return on_device(channel, command.id, [&](const IdPointer& id, emulator::Device& device) {
    if (!id->communication) return -EINVAL;
    const auto done =
        id->type == emulator::QpType::ud
            ? device.cm().answer(options_.now(), *id->communication,
                                 {.status = wire::SidrStatus::rejected, .private_data = data})
            : device.cm().reject(options_.now(), *id->communication, reason, data);
    return done ? 0 : errno_of(done.error());
  });
}

int CmAgent::disconnect(EventChannel& channel, const Request& request) {
  rdma_ucm_disconnect command;
  if (const int failed = request.read(command); failed != 0) return failed;
  return on_device(channel, command.id, [&](const IdPointer& id, emulator::Device& device) {
    if (!id->communication) return -EINVAL;
    // Success, as the kernel has it, even if there is nothing to end any more.
    static_cast<void>(device.cm().disconnect(options_.now(), *id->communication));
    return 0;
  });
}

int CmAgent::notify(EventChannel& channel, const Request& request) {
  rdma_ucm_notify command;
  if (const int failed = request.read(command); failed != 0) return failed;
  return on_device(channel, command.id, [&](const IdPointer& id, emulator::Device& device) {
    if (!id->communication || command.event != kCommunicationEstablished) return -EINVAL;
    const Identifier& known = *id;
    const emulator::Connection* connection = device.cm().find(*known.communication);
    if (connection != nullptr && connection->state == emulator::CmState::established) {
      return -EISCONN;
    }
    return device.cm().note_established(options_.now(), *known.communication) ? 0 : -EINVAL;
  });
}

int CmAgent::init_qp_attributes(EventChannel& channel, const Request& request) {
  rdma_ucm_init_qp_attr command;
  if (request.out() < sizeof(ib_uverbs_qp_attr)) return -ENOSPC;
  if (const int failed = request.read(command); failed != 0) return failed;
  if (command.qp_state >= emulator::kQpStates) return -EINVAL;
  const auto target = static_cast<emulator::QpState>(command.qp_state);
  ib_uverbs_qp_attr response{};
  const int failed =
      on_device(channel, command.id, [&](const IdPointer& id, emulator::Device& device) {
        if (id->type == emulator::QpType::ud) default_qkey(*id);
        emulator::QpSetup setup = plain_setup(*id, target);
        if (id->communication && id->type != emulator::QpType::ud) {
          const auto agreed = device.cm().qp_setup(*id->communication, target);
          if (!agreed) return errno_of(agreed.error());
          setup = *agreed;
        }
        if (target == emulator::QpState::ready_to_receive) {
          setup.attributes.receive_psn = id->starting_psn;
        }
        if (setup.mask.has(emulator::kAttrTimeout) && id->ack_timeout) {
          setup.attributes.timeout = *id->ack_timeout;
        }
        response = to_user(setup);
        return 0;
      });
  return failed != 0 ? failed : request.write(command.response, response);
}

}  // namespace urxe::verbs::rdma_cm
