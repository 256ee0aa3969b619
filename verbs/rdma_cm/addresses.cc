// Binding, resolving, listening: from IP addresses to devices and paths.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/core.h>
#include <netinet/in.h>

#include "verbs/config/port_status.h"
#include "verbs/rdma_cm/agent.h"
#include "verbs/runtime/mad_router.h"

namespace urxe::verbs::rdma_cm {
namespace {

// Linux's CMA_IBOE_PACKET_LIFETIME: 4.096 us * 2^18, about a second.
constexpr std::uint8_t kPacketLifeTime = 18;
constexpr std::uint32_t kFlowLabelMask = 0xFFFFF;
constexpr std::uint32_t kMaxBacklog = 1024;

// The kernel's cma_get_roce_udp_flow_label: connections spread over the links of a network.
std::uint32_t flow_label_of(const Identifier& id) {
  const std::uint32_t given = id.source.flow_info & kFlowLabelMask;
  if (id.source.family == AF_INET6 && given != 0) return given;
  return (std::uint32_t{id.source.any_port()} * 31 + id.destination.any_port()) & kFlowLabelMask;
}

bool is_of_family(const wire::IpAddress& address, const Identifier& id) {
  if (id.source.is_ib()) return true;
  if (id.source.family == AF_INET) return address.is_v4();
  return !id.af_only || !address.is_v4();
}

}  // namespace

// --- bind

int CmAgent::bind_locked(Identifier& id, const SocketAddress& address, CmDevice* device) {
  if (id.state != IdState::idle) return -EINVAL;
  const bool link_local = address.family == AF_INET6 && address.ip.is_link_local();
  if (link_local && address.scope == 0) return -EINVAL;
  const SocketAddress old = id.source;
  id.source = address;
  if (!id.af_only_is_set) id.af_only = address.family == AF_INET;
  id.destination.family = address.family;
  if (const int failed = ports_.bind(id); failed != 0) {
    id.source = old;
    return failed;
  }
  id.device = device;
  id.source_gid = address.ip;
  id.state = IdState::address_bound;
  return 0;
}

int CmAgent::bind_to(EventChannel& channel, std::uint32_t handle, const SocketAddress& address) {
  CmDevice* device = nullptr;
  const auto index = device_with(address.ip);
  // A loopback address that no device has stands for all devices, as the kernel has it.
  if (!address.is_unspecified() && (index || !address.is_loopback())) {
    if (!index) return address.is_ib() ? -ENODEV : -EADDRNOTAVAIL;
    const auto used = use_device(*index);
    if (!used) return used.error();
    device = *used;
  }
  const std::scoped_lock lock(mutex_);
  const auto id = find(channel, handle);
  return id ? bind_locked(**id, address, device) : id.error();
}

int CmAgent::bind_ip(EventChannel& channel, const Request& request) {
  rdma_ucm_bind_ip command;
  if (const int failed = request.read(command); failed != 0) return failed;
  const auto address = SocketAddress::load(&command.addr, sizeof(command.addr));
  return address ? bind_to(channel, command.id, *address) : -EINVAL;
}

int CmAgent::bind(EventChannel& channel, const Request& request) {
  rdma_ucm_bind command;
  if (const int failed = request.read(command); failed != 0) return failed;
  const auto address = SocketAddress::load(&command.addr, sizeof(command.addr));
  if (command.reserved != 0 || !address || address->size() != command.addr_size) return -EINVAL;
  return bind_to(channel, command.id, *address);
}

// --- resolve

int CmAgent::resolve_ip(EventChannel& channel, const Request& request) {
  rdma_ucm_resolve_ip command;
  if (const int failed = request.read(command); failed != 0) return failed;
  const auto destination = SocketAddress::load(&command.dst_addr, sizeof(command.dst_addr));
  auto source = SocketAddress::load(&command.src_addr, sizeof(command.src_addr));
  if (!destination || (command.src_addr.sin6_family != 0 && !source)) return -EINVAL;
  return resolve(channel, command.id, source.value_or(SocketAddress{}), *destination);
}

int CmAgent::resolve_address(EventChannel& channel, const Request& request) {
  rdma_ucm_resolve_addr command;
  if (const int failed = request.read(command); failed != 0) return failed;
  const auto destination = SocketAddress::load(&command.dst_addr, sizeof(command.dst_addr));
  const auto source = SocketAddress::load(&command.src_addr, sizeof(command.src_addr));
  if (command.reserved != 0 || !destination || destination->size() != command.dst_size) {
    return -EINVAL;
  }
  if (command.src_size != 0 && (!source || source->size() != command.src_size)) return -EINVAL;
  return resolve(channel, command.id, command.src_size != 0 ? *source : SocketAddress{},
                 *destination);
}

// To this host itself: the address of a device stands for the loopback address, unless a device has
// that.
tl::expected<CmAgent::Resolved, int> CmAgent::find_loopback(const SocketAddress& source,
                                                            const SocketAddress& destination,
                                                            CmDevice* bound) {
  std::size_t index = 0;
  if (const auto holder = device_with(destination.ip)) index = *holder;
  if (bound != nullptr) index = bound->index();
  if (devices_.empty()) return tl::unexpected(-ENODEV);
  const auto used = use_device(index);
  if (!used) return tl::unexpected(used.error());
  const auto& addresses = devices_[index].addresses;
  const bool v4 = destination.family == AF_INET;
  const auto found = std::find_if(addresses.begin(), addresses.end(), [&](const auto& address) {
    return address.is_v4() == v4 && (!destination.is_loopback() || address == destination.ip);
  });
  const auto other = std::find_if(addresses.begin(), addresses.end(),
                                  [&](const auto& address) { return address.is_v4() == v4; });
  if (other == addresses.end()) return tl::unexpected(-EADDRNOTAVAIL);
  const wire::IpAddress& own = found != addresses.end() ? *found : *other;
  Resolved resolved{.source = source, .destination = destination, .device = *used};
  resolved.source.family = resolved.destination.family = destination.family;
  resolved.source.ip = resolved.destination.ip = own;
  return resolved;
}

tl::expected<CmAgent::Resolved, int> CmAgent::find_way(const SocketAddress& source,
                                                       const SocketAddress& destination,
                                                       CmDevice* bound) {
  if (destination.is_unspecified()) return find_loopback(source, destination, bound);
  Resolved resolved{.source = source, .destination = destination, .device = bound};
  if (destination.is_ib()) {
    // A GID is an IP address here.
    SocketAddress as_ip =
        SocketAddress::of(destination.ip, 0, destination.ip.is_v4() ? AF_INET : AF_INET6);
    const auto found = options_.find_source(SocketAddress::any(as_ip.family), as_ip);
    if (!found) return tl::unexpected(-found.error());
    if (source.is_unspecified()) resolved.source.ip = found->ip;
  } else {
    const auto found = options_.find_source(source, destination);
    if (!found) return tl::unexpected(-found.error());
    resolved.source.ip = found->ip;
    resolved.source.scope = found->scope;
  }
  if (bound != nullptr) return resolved;
  const auto index = device_with(resolved.source.ip);
  if (!index && destination.is_loopback()) return find_loopback(source, destination, bound);
  if (!index) {
    resolved.failed = -ENODEV;
    return resolved;
  }
  const auto used = use_device(*index);
  if (!used) return tl::unexpected(used.error());
  resolved.device = *used;
  return resolved;
}

int CmAgent::resolve(EventChannel& channel, std::uint32_t handle, const SocketAddress& source,
                     const SocketAddress& destination) {
  SocketAddress from = source;
  CmDevice* bound = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = find(channel, handle);
    if (!found) return found.error();
    Identifier& id = **found;
    if (id.state == IdState::idle) {
      if (from.family == 0) from = SocketAddress::any(destination.family);
      if (from.scope == 0 && destination.family == AF_INET6) from.scope = destination.scope;
      id.destination = destination;
    } else if (id.state == IdState::address_bound) {
      from = id.source;
      bound = id.device;
    } else {
      return -EINVAL;
    }
  }
  if (from.family != destination.family) return -EINVAL;
  const auto resolved = find_way(from, destination, bound);
  if (!resolved) return resolved.error();

  const std::scoped_lock lock(mutex_);
  const auto found = find(channel, handle);
  if (!found) return found.error();
  Identifier& id = **found;
  if (id.state == IdState::idle) {
    if (const int failed = bind_locked(id, from, nullptr); failed != 0) return failed;
  }
  if (id.state != IdState::address_bound) return -EINVAL;
  id.destination = resolved->destination;
  if (resolved->failed != 0) {
    publish(*found, abi::CmEventType::addr_error, resolved->failed);
    return 0;
  }
  const std::uint16_t port = id.source.port;
  if (!id.source.is_ib()) id.source = resolved->source;
  id.source.ip = resolved->source.ip;
  if (!id.source.is_ib()) id.source.port = port;
  id.source_gid = resolved->source.ip;
  id.destination_gid = resolved->destination.ip;
  id.device = resolved->device;
  id.state = IdState::address_resolved;
  publish(*found, abi::CmEventType::addr_resolved, 0);
  return 0;
}

void CmAgent::set_route(Identifier& id) {
  const auto& addresses = id.device->config().addresses;
  const auto index = std::find(addresses.begin(), addresses.end(), id.source_gid);
  id.vector = {.destination = id.destination_gid,
               .flow_label = flow_label_of(id),
               .source_gid_index = static_cast<std::uint8_t>(index - addresses.begin()),
               .hop_limit = wire::kDefaultHopLimit,
               .traffic_class = id.type_of_service.value_or(0),
               .global = true};
  const std::uint8_t timeout = id.ack_timeout.value_or(0);
  id.packet_life_time = timeout > 0 ? static_cast<std::uint8_t>(timeout - 1) : kPacketLifeTime;
  id.path_mtu =
      static_cast<std::uint8_t>(emulator::mtu_within(port_status(id.device->config()).active_mtu));
  id.has_route = true;
}

int CmAgent::resolve_route(EventChannel& channel, const Request& request) {
  rdma_ucm_resolve_route command;
  if (const int failed = request.read(command); failed != 0) return failed;
  const std::scoped_lock lock(mutex_);
  const auto id = find(channel, command.id);
  if (!id) return id.error();
  if ((*id)->device == nullptr || command.timeout_ms == 0) return -EINVAL;
  if ((*id)->state != IdState::address_resolved) return -EINVAL;
  set_route(**id);
  (*id)->state = IdState::route_resolved;
  publish(*id, abi::CmEventType::route_resolved, 0);
  return 0;
}

// --- listen

std::vector<std::string> CmAgent::names_to_claim(const Identifier& id, const DeviceConfig& config) {
  std::vector<std::string> names;
  const wire::ServiceId service = id.source.is_ib() ? wire::ServiceId{id.source.service}
                                                    : wire::service_id(id.space, id.source.port);
  for (const wire::IpAddress& address : config.addresses) {
    const bool listens = id.device == nullptr ? is_of_family(address, id) : address == id.source.ip;
    if (listens) names.push_back(service_name(service, address));
  }
  return names;
}

emulator::ListenSpec CmAgent::listen_spec(const Identifier& id, std::uint32_t backlog) {
  emulator::ListenSpec spec{.service = id.source.is_ib()
                                           ? wire::ServiceId{id.source.service}
                                           : wire::service_id(id.space, id.source.port),
                            .type = id.type,
                            .backlog = backlog};
  if (id.source.is_ib()) return spec;
  if (id.device != nullptr) spec.address = id.source.ip;
  using Family = emulator::ListenSpec::Family;
  spec.family = id.source.family == AF_INET ? Family::v4 : id.af_only ? Family::v6 : Family::any;
  return spec;
}

// The listener comes before its names, with which requests begin to come.
int CmAgent::listen_on(const IdPointer& id, CmDevice& device, std::uint32_t backlog) {
  emulator::ListenerId listener;
  {
    const auto access = device.host().access();
    const std::scoped_lock lock(mutex_);
    if (id->state != IdState::listen) return -EINVAL;
    listener = access->cm().listen(listen_spec(*id, backlog));
    id->listening.push_back({.device = &device, .listener = listener, .names = {}});
  }
  std::vector<std::string> names;
  int failed = 0;
  for (const std::string& name : names_to_claim(*id, device.config())) {
    failed = -device.lease().claim_name(name);
    if (failed != 0) break;
    names.push_back(name);
  }
  {
    const std::scoped_lock lock(mutex_);
    const auto mine =
        std::find_if(id->listening.begin(), id->listening.end(), [&](const Listening& listening) {
          return listening.device == &device && listening.listener == listener;
        });
    if (mine != id->listening.end()) {
      mine->names = std::move(names);
      return failed;
    }
  }
  // The program destroyed it meanwhile, and what it had then is gone.
  for (const std::string& name : names) device.lease().release_name(name);
  return -EINVAL;
}

int CmAgent::listen(EventChannel& channel, const Request& request) {
  rdma_ucm_listen command;
  if (const int failed = request.read(command); failed != 0) return failed;
  const auto wanted = static_cast<std::int32_t>(command.backlog);
  const std::uint32_t backlog = wanted <= 0 ? kMaxBacklog : std::min(command.backlog, kMaxBacklog);
  IdPointer id;
  std::vector<std::size_t> indexes;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = find(channel, command.id);
    if (!found) return found.error();
    id = *found;
    if (id->state == IdState::idle) {
      const int failed = bind_locked(*id, SocketAddress::any(AF_INET), nullptr);
      if (failed != 0) return failed;
    }
    if (id->state != IdState::address_bound) return -EINVAL;
    if (id->reuse_address) {
      if (const int failed = ports_.check_exclusive(*id); failed != 0) return failed;
      id->reuse_address = false;
    }
    if (id->device != nullptr) indexes.push_back(id->device->index());
    id->state = IdState::listen;
  }
  if (indexes.empty()) {
    for (std::size_t index = 0; index < devices_.size(); ++index) indexes.push_back(index);
  }
  int failed = 0;
  for (const std::size_t index : indexes) {
    const auto device = use_device(index);
    failed = device ? listen_on(id, **device, backlog) : device.error();
    if (failed != 0) break;
  }
  if (failed == 0) return 0;
  Leftovers left;
  {
    const std::scoped_lock lock(mutex_);
    left.listening.swap(id->listening);
    if (id->state == IdState::listen) id->state = IdState::address_bound;
  }
  clean_up(left);
  return failed;
}

}  // namespace urxe::verbs::rdma_cm
