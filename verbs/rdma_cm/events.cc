// From what happens on devices to what the program is told.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include <netinet/in.h>

#include "verbs/rdma_cm/agent.h"

namespace urxe::verbs::rdma_cm {
namespace {

using emulator::CmEventKind;

template <typename Parameters>
void set_private_data(Parameters& parameters, wire::Bytes data) {
  std::copy(data.begin(), data.end(), parameters.private_data);
  parameters.private_data_len = static_cast<std::uint8_t>(data.size());
}

rdma_ucm_event_resp parameters_of(const wire::CmReq& req, std::uint32_t modifier,
                                  std::size_t offset) {
  rdma_ucm_event_resp response{};
  rdma_ucm_conn_param& conn = response.param.conn;
  set_private_data(conn, wire::Bytes(req.private_data).subspan(offset));
  conn.responder_resources = req.initiator_depth;
  conn.initiator_depth = req.responder_resources;
  conn.flow_control = req.flow_control ? 1 : 0;
  conn.retry_count = req.retry_count;
  conn.rnr_retry_count = req.rnr_retry_count;
  conn.srq = req.srq ? 1 : 0;
  conn.qp_num = req.local_qpn.value();
  response.ece = {.vendor_id = req.vendor_id, .attr_mod = modifier};
  return response;
}

rdma_ucm_event_resp parameters_of(const wire::CmRep& rep, std::uint32_t modifier) {
  rdma_ucm_event_resp response{};
  rdma_ucm_conn_param& conn = response.param.conn;
  set_private_data(conn, rep.private_data);
  conn.responder_resources = rep.initiator_depth;
  conn.initiator_depth = rep.responder_resources;
  conn.flow_control = rep.flow_control ? 1 : 0;
  conn.rnr_retry_count = rep.rnr_retry_count;
  conn.srq = rep.srq ? 1 : 0;
  conn.qp_num = rep.local_qpn.value();
  response.ece = {.vendor_id = rep.vendor_id, .attr_mod = modifier};
  return response;
}

// The addresses of a connection that came to a listener. False: the request makes no sense.
bool set_addresses(Identifier& id, const Identifier& listener, wire::Bytes private_data,
                   wire::ServiceId service, const wire::Path& path) {
  id.source_gid = path.source;
  id.destination_gid = path.destination;
  if (listener.source.is_ib()) {
    id.source = {.family = abi::kAfIb,
                 .ip = path.source,
                 .pkey = wire::kDefaultPKey.value(),
                 .service = service.value,
                 .service_mask = ~std::uint64_t{0}};
    id.destination = {
        .family = abi::kAfIb, .ip = path.destination, .pkey = wire::kDefaultPKey.value()};
    return true;
  }
  const auto header = wire::IpCmHeader::parse(private_data);
  if (!header) return false;
  const sa_family_t family = header->destination.is_v4() ? AF_INET : AF_INET6;
  id.source = SocketAddress::of(header->destination, listener.source.port, family);
  id.destination = SocketAddress::of(header->source, header->source_port, family);
  return true;
}

}  // namespace

CmAgent::IdPointer CmAgent::find_listener(const CmDevice& device,
                                          emulator::ListenerId listener) const {
  for (const auto& [handle, id] : ids_) {
    for (const Listening& listening : id->listening) {
      if (listening.device == &device && listening.listener == listener) return id;
    }
  }
  return nullptr;
}

void CmAgent::publish(const IdPointer& id, abi::CmEventType type, std::int32_t status,
                      const rdma_ucm_event_resp& parameters) {
  QueuedEvent event{.response = parameters, .id = id, .new_id = {}, .multicast = {}};
  event.response.uid = id->uid;
  event.response.id = id->handle;
  event.response.event = static_cast<std::uint32_t>(type);
  event.response.status = static_cast<std::uint32_t>(status);
  id->channel->push(std::move(event));
}

void CmAgent::handle_event(CmDevice& device, emulator::Device& engine,
                           const emulator::CmEvent& event) {
  const std::scoped_lock lock(mutex_);
  switch (event.kind) {
    case CmEventKind::request_received:
    case CmEventKind::resolution_requested:
      return handle_request(device, engine, event);
    case CmEventKind::resolved:
    case CmEventKind::resolution_timed_out:
      if (const IdPointer id = find_by_communication(device, event.id)) {
        handle_resolution(id, event);
      }
      return;
    default:
      if (const IdPointer id = find_by_communication(device, event.id)) {
        handle_connection(id, event);
      }
  }
}

// As the kernel's cma_process_remove and ucma_close_id: an identifier that was bound to the device
// is told, and is good for nothing any more. One that listens on all devices hears nothing.
void CmAgent::handle_removal(CmDevice& device, emulator::Device& engine) {
  const std::scoped_lock lock(mutex_);
  for (const auto& [handle, id] : ids_) {
    if (id->device != &device || id->removed) continue;
    id->removed = true;
    if (id->uid != 0) publish(id, abi::CmEventType::device_removal, 0);
    if (id->communication) {
      by_communication_.erase({&device, *id->communication});
      engine.cm().release(options_.now(), *id->communication);
      id->communication.reset();
    }
    for (const Listening& listening : id->listening) {
      engine.cm().stop_listening(listening.listener);
    }
    std::move(id->listening.begin(), id->listening.end(), std::back_inserter(removed_.listening));
    id->listening.clear();
    ports_.release(*id);
  }
}

// The kernel says so when a bond fails over to a port of another address.
void CmAgent::handle_link_address(const CmDevice& device) {
  const std::scoped_lock lock(mutex_);
  for (const auto& [handle, id] : ids_) {
    if (id->device != &device || id->removed || id->uid == 0) continue;
    publish(id, abi::CmEventType::addr_change, 0);
  }
}

void CmAgent::handle_request(CmDevice& device, emulator::Device& engine,
                             const emulator::CmEvent& event) {
  const IdPointer listener = find_listener(device, event.listener);
  if (listener == nullptr) return engine.cm().release(options_.now(), event.id);
  const IdPointer id = add_identifier(*listener->channel, listener->space, listener->type);
  id->device = &device;
  const auto* req = std::get_if<wire::CmReq>(&event.message.body);
  const auto* sidr = std::get_if<wire::CmSidrReq>(&event.message.body);
  const wire::Bytes data =
      req != nullptr ? wire::Bytes(req->private_data) : wire::Bytes(sidr->private_data);
  const wire::ServiceId service = req != nullptr ? req->service : sidr->service;
  if (!set_addresses(*id, *listener, data, service, event.path)) {
    ids_.erase(id->handle);
    return engine.cm().release(options_.now(), event.id);
  }
  set_communication(id, event.id);
  id->state = IdState::connect;
  const std::size_t offset = listener->source.is_ib() ? 0 : wire::kIpCmHeaderSize;
  QueuedEvent queued{.response = {}, .id = listener, .new_id = id, .multicast = {}};
  if (req != nullptr) {
    queued.response = parameters_of(*req, event.message.attribute_modifier, offset);
    id->has_route = true;
    id->vector = engine.cm().find(event.id)->vector;
    id->path_mtu = req->path_mtu;
    id->packet_life_time =
        req->primary.ack_timeout > 0 ? static_cast<std::uint8_t>(req->primary.ack_timeout - 1) : 0;
  } else {
    set_private_data(queued.response.param.ud, data.subspan(offset));
  }
  queued.response.uid = listener->uid;
  queued.response.id = id->handle;
  queued.response.event = static_cast<std::uint32_t>(abi::CmEventType::connect_request);
  listener->channel->push(std::move(queued));
}

void CmAgent::handle_connection(const IdPointer& id, const emulator::CmEvent& event) {
  const bool ends_time_wait = event.kind == CmEventKind::time_wait_ended;
  if (id->state != (ends_time_wait ? IdState::disconnect : IdState::connect)) return;
  const auto tell = [&](abi::CmEventType type, std::int32_t status,
                        const rdma_ucm_event_resp& parameters = {}) {
    // A connection that the program has not accepted has no name there.
    if (id->uid != 0) publish(id, type, status, parameters);
  };
  switch (event.kind) {
    case CmEventKind::reply_received:
      return tell(abi::CmEventType::connect_response, 0,
                  parameters_of(std::get<wire::CmRep>(event.message.body),
                                event.message.attribute_modifier));
    case CmEventKind::established:
      return tell(abi::CmEventType::established, 0);
    case CmEventKind::rejected: {
      const auto& rej = std::get<wire::CmRej>(event.message.body);
      rdma_ucm_event_resp parameters{};
      set_private_data(parameters.param.conn, rej.private_data);
      return tell(abi::CmEventType::rejected, static_cast<std::int32_t>(rej.reason), parameters);
    }
    case CmEventKind::request_timed_out:
    case CmEventKind::reply_timed_out:
      return tell(abi::CmEventType::unreachable, -ETIMEDOUT);
    case CmEventKind::disconnect_requested:
    case CmEventKind::disconnected:
      id->state = IdState::disconnect;
      return tell(abi::CmEventType::disconnected, 0);
    case CmEventKind::disconnect_timed_out:
      id->state = IdState::disconnect;
      return tell(abi::CmEventType::disconnected, -ETIMEDOUT);
    case CmEventKind::time_wait_ended:
      return tell(abi::CmEventType::timewait_exit, 0);
    default:
      return;
  }
}

void CmAgent::handle_resolution(const IdPointer& id, const emulator::CmEvent& event) {
  if (id->state != IdState::connect) return;
  if (event.kind == CmEventKind::resolution_timed_out) {
    return publish(id, abi::CmEventType::unreachable, -ETIMEDOUT);
  }
  const auto& rep = std::get<wire::CmSidrRep>(event.message.body);
  rdma_ucm_event_resp parameters{};
  rdma_ucm_ud_param& ud = parameters.param.ud;
  set_private_data(ud, rep.private_data);
  if (rep.status != wire::SidrStatus::success) {
    return publish(id, abi::CmEventType::unreachable, static_cast<std::int32_t>(rep.status),
                   parameters);
  }
  id->qkey = rep.qkey;
  ud.ah_attr = ah_attributes(id->vector);
  ud.qp_num = rep.qpn.value();
  ud.qkey = rep.qkey.value();
  publish(id, abi::CmEventType::established, 0, parameters);
}

}  // namespace urxe::verbs::rdma_cm
