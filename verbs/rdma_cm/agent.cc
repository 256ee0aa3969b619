#include "verbs/rdma_cm/agent.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/types.h>

namespace urxe::verbs::rdma_cm {

int errno_of(const emulator::Error& error) {
  switch (error.failure) {
    case emulator::Failure::no_memory:
      return -ENOMEM;
    case emulator::Failure::in_use:
      return -EBUSY;
    case emulator::Failure::not_supported:
      return -EOPNOTSUPP;
    case emulator::Failure::not_permitted:
      return -EPERM;
    case emulator::Failure::invalid:
    case emulator::Failure::not_found:
      break;
  }
  return -EINVAL;
}

ib_uverbs_ah_attr ah_attributes(const emulator::AddressVector& vector) {
  ib_uverbs_ah_attr attributes{};
  std::copy(vector.destination.bytes().begin(), vector.destination.bytes().end(),
            attributes.grh.dgid);
  attributes.grh.flow_label = vector.flow_label;
  attributes.grh.sgid_index = vector.source_gid_index;
  attributes.grh.hop_limit = vector.hop_limit;
  attributes.grh.traffic_class = vector.traffic_class;
  attributes.sl = vector.service_level;
  attributes.is_global = 1;
  attributes.port_num = kPort;
  return attributes;
}

void CmDevice::cm_event(emulator::Device& device, const emulator::CmEvent& event) {
  agent_.handle_event(*this, device, event);
}

void CmDevice::device_removed(emulator::Device& device) { agent_.handle_removal(*this, device); }

void CmDevice::link_address_changed() { agent_.handle_link_address(*this); }

CmAgent::CmAgent(const std::vector<DeviceConfig>& devices, AgentOptions options)
    : devices_(devices), options_(std::move(options)), ports_(options_.random()) {
  pool_.resize(devices_.size());
}

// --- channels

tl::expected<EventChannel::Opened, int> CmAgent::open_channel(bool non_blocking) {
  auto opened = EventChannel::open(non_blocking);
  if (!opened) return opened;
  const std::scoped_lock lock(mutex_);
  channels_.push_back(opened->channel);
  return opened;
}

void CmAgent::close_channel(EventChannel& channel) {
  Leftovers left;
  bool last = false;
  std::shared_ptr<EventChannel> closed;
  {
    const std::scoped_lock lock(mutex_);
    std::vector<IdPointer> mine;
    for (const auto& [handle, id] : ids_) {
      if (id->channel == &channel) mine.push_back(id);
    }
    for (const IdPointer& id : mine) bury(*id, left);
    const auto found = std::find_if(channels_.begin(), channels_.end(),
                                    [&](const auto& other) { return other.get() == &channel; });
    if (found != channels_.end()) {
      closed = std::move(*found);
      channels_.erase(found);
    }
    last = channels_.empty();
  }
  clean_up(left);
  clean_up_removed();
  if (!last) return;
  // Nobody uses rdma_cm any more, so it keeps no device running.
  const std::scoped_lock lock(pool_mutex_);
  {
    const std::scoped_lock still_unused(mutex_);
    if (!channels_.empty()) return;
  }
  for (auto& device : pool_) device.reset();
}

void CmAgent::end() {
  const std::scoped_lock lock(pool_mutex_);
  for (const auto& device : pool_) {
    if (device != nullptr) device->host().access()->cm().release_all(options_.now());
  }
}

void CmAgent::after_fork_in_child() {
  for (const auto& channel : channels_) channel->abandon();
  mutex_.unlock();
}

std::size_t CmAgent::identifiers() {
  const std::scoped_lock lock(mutex_);
  return ids_.size();
}

// --- devices

tl::expected<CmDevice*, int> CmAgent::use_device(std::size_t index) {
  const std::scoped_lock lock(pool_mutex_);
  auto& device = pool_[index];
  if (device == nullptr) {
    auto lease = options_.open_device(index);
    if (!lease) return tl::unexpected(-lease.error());
    device = std::make_unique<CmDevice>(*this, devices_[index], index, std::move(*lease));
  }
  return device.get();
}

std::optional<std::size_t> CmAgent::device_with(const wire::IpAddress& address) const {
  for (std::size_t index = 0; index < devices_.size(); ++index) {
    const auto& addresses = devices_[index].addresses;
    if (std::find(addresses.begin(), addresses.end(), address) != addresses.end()) return index;
  }
  return std::nullopt;
}

// --- identifiers

tl::expected<CmAgent::IdPointer, int> CmAgent::find(const EventChannel& channel,
                                                    std::uint32_t handle) const {
  auto found = find_any(channel, handle);
  if (found && (*found)->removed) return tl::unexpected(-ENXIO);
  return found;
}

tl::expected<CmAgent::IdPointer, int> CmAgent::find_any(const EventChannel& channel,
                                                        std::uint32_t handle) const {
  const auto found = ids_.find(handle);
  if (found == ids_.end()) return tl::unexpected(-ENOENT);
  if (found->second->channel != &channel) return tl::unexpected(-EINVAL);
  return found->second;
}

CmAgent::IdPointer CmAgent::add_identifier(EventChannel& channel, wire::PortSpace space,
                                           emulator::QpType type) {
  const auto id = std::make_shared<Identifier>();
  while (ids_.contains(next_handle_)) ++next_handle_;
  id->handle = next_handle_++;
  id->channel = &channel;
  id->space = space;
  id->type = type;
  id->starting_psn = wire::Psn{options_.random()};
  ids_.emplace(id->handle, id);
  return id;
}

CmAgent::IdPointer CmAgent::find_by_communication(const CmDevice& device, wire::CommId id) const {
  const auto found = by_communication_.find({&device, id});
  return found == by_communication_.end() ? nullptr : found->second;
}

void CmAgent::set_communication(const IdPointer& id, wire::CommId communication) {
  if (id->communication) by_communication_.erase({id->device, *id->communication});
  id->communication = communication;
  by_communication_[{id->device, communication}] = id;
}

// It is no longer to be found, nor are its events. What it has on devices is for clean_up.
void CmAgent::bury(Identifier& id, Leftovers& left) {
  if (id.state == IdState::destroyed) return;
  id.state = IdState::destroyed;
  const IdPointer keep = ids_.at(id.handle);
  ids_.erase(id.handle);
  ports_.release(id);
  for (const auto& group : id.groups) groups_.erase(group->handle);
  if (id.communication) {
    by_communication_.erase({id.device, *id.communication});
    left.communications.emplace_back(id.device, *id.communication);
  }
  std::move(id.listening.begin(), id.listening.end(), std::back_inserter(left.listening));
  id.listening.clear();
  const auto events = id.channel->extract(id);
  // Connections that the program was not told of.
  for (const QueuedEvent& event : events) {
    if (event.new_id != nullptr) bury(*event.new_id, left);
  }
}

void CmAgent::clean_up(const Leftovers& left) {
  for (const Listening& listening : left.listening) {
    for (const std::string& name : listening.names) listening.device->lease().release_name(name);
    listening.device->host().access()->cm().stop_listening(listening.listener);
  }
  for (const auto& [device, communication] : left.communications) {
    device->host().access()->cm().release(options_.now(), communication);
  }
}

void CmAgent::clean_up_removed() {
  Leftovers left;
  {
    const std::scoped_lock lock(mutex_);
    std::swap(left, removed_);
  }
  clean_up(left);
}

// --- commands

int CmAgent::execute(EventChannel& channel, std::uint32_t command, const Request& request) {
  static constexpr std::array<Command, RDMA_USER_CM_CMD_JOIN_MCAST + 1> kCommands = [] {
    std::array<Command, RDMA_USER_CM_CMD_JOIN_MCAST + 1> commands{};
    commands.fill(&CmAgent::not_implemented);
    commands[RDMA_USER_CM_CMD_CREATE_ID] = &CmAgent::create_id;
    commands[RDMA_USER_CM_CMD_DESTROY_ID] = &CmAgent::destroy_id;
    commands[RDMA_USER_CM_CMD_BIND_IP] = &CmAgent::bind_ip;
    commands[RDMA_USER_CM_CMD_RESOLVE_IP] = &CmAgent::resolve_ip;
    commands[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = &CmAgent::resolve_route;
    commands[RDMA_USER_CM_CMD_QUERY_ROUTE] = &CmAgent::query_route;
    commands[RDMA_USER_CM_CMD_CONNECT] = &CmAgent::connect;
    commands[RDMA_USER_CM_CMD_LISTEN] = &CmAgent::listen;
    commands[RDMA_USER_CM_CMD_ACCEPT] = &CmAgent::accept;
    commands[RDMA_USER_CM_CMD_REJECT] = &CmAgent::reject;
    commands[RDMA_USER_CM_CMD_DISCONNECT] = &CmAgent::disconnect;
    commands[RDMA_USER_CM_CMD_INIT_QP_ATTR] = &CmAgent::init_qp_attributes;
    commands[RDMA_USER_CM_CMD_GET_EVENT] = &CmAgent::take_event;
    commands[RDMA_USER_CM_CMD_SET_OPTION] = &CmAgent::set_option;
    commands[RDMA_USER_CM_CMD_NOTIFY] = &CmAgent::notify;
    commands[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = &CmAgent::join_ip_multicast;
    commands[RDMA_USER_CM_CMD_LEAVE_MCAST] = &CmAgent::leave_multicast;
    commands[RDMA_USER_CM_CMD_MIGRATE_ID] = &CmAgent::migrate;
    commands[RDMA_USER_CM_CMD_QUERY] = &CmAgent::query;
    commands[RDMA_USER_CM_CMD_BIND] = &CmAgent::bind;
    commands[RDMA_USER_CM_CMD_RESOLVE_ADDR] = &CmAgent::resolve_address;
    commands[RDMA_USER_CM_CMD_JOIN_MCAST] = &CmAgent::join_multicast;
    return commands;
  }();
  if (command >= kCommands.size()) return -EINVAL;
  clean_up_removed();
  return (this->*kCommands[command])(channel, request);
}

int CmAgent::not_implemented(EventChannel&, const Request&) { return -ENOSYS; }

int CmAgent::create_id(EventChannel& channel, const Request& request) {
  rdma_ucm_create_id command;
  if (request.out() < sizeof(rdma_ucm_create_id_resp)) return -ENOSPC;
  if (const int failed = request.read(command); failed != 0) return failed;
  auto type = emulator::QpType::rc;
  const auto space = static_cast<wire::PortSpace>(command.ps);
  switch (space) {
    case wire::PortSpace::tcp:
      break;
    case wire::PortSpace::udp:
    case wire::PortSpace::ipoib:
      type = emulator::QpType::ud;
      break;
    case wire::PortSpace::ib:
      type = static_cast<emulator::QpType>(command.qp_type);
      break;
    default:
      return -EINVAL;
  }
  const std::scoped_lock lock(mutex_);
  const IdPointer id = add_identifier(channel, space, type);
  id->uid = command.uid;
  const int failed = request.write(command.response, rdma_ucm_create_id_resp{.id = id->handle});
  if (failed != 0) ids_.erase(id->handle);
  return failed;
}

int CmAgent::destroy_id(EventChannel& channel, const Request& request) {
  rdma_ucm_destroy_id command;
  if (request.out() < sizeof(rdma_ucm_destroy_id_resp)) return -ENOSPC;
  if (const int failed = request.read(command); failed != 0) return failed;
  Leftovers left;
  rdma_ucm_destroy_id_resp response{};
  {
    const std::scoped_lock lock(mutex_);
    const auto id = find_any(channel, command.id);
    if (!id) return id.error();
    bury(**id, left);
    response.events_reported = (*id)->events_reported;
  }
  clean_up(left);
  return request.write(command.response, response);
}

int CmAgent::take_event(EventChannel& channel, const Request& request) {
  constexpr std::size_t kOldestSize = offsetof(rdma_ucm_event_resp, reserved);
  rdma_ucm_get_event command;
  if (request.out() < kOldestSize) return -ENOSPC;
  if (const int failed = request.read(command); failed != 0) return failed;
  QueuedEvent event;
  while (true) {
    {
      const std::scoped_lock lock(mutex_);
      if (const QueuedEvent* front = channel.front()) {
        const int failed = request.write(command.response, front->response);
        if (failed != 0) return failed;
        event = channel.pop();
        ++event.id->events_reported;
        if (event.multicast != nullptr) ++event.multicast->events_reported;
        break;
      }
    }
    if (const int failed = channel.wait(); failed != 0) return failed;
  }
  if (event.new_id != nullptr && event.new_id->communication) {
    event.new_id->device->host().access()->cm().taken(*event.new_id->communication);
  }
  return 0;
}

}  // namespace urxe::verbs::rdma_cm
