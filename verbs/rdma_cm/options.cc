// Options, multicast groups, and moving between event channels.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include <netinet/in.h>

#include "verbs/rdma_cm/agent.h"

namespace urxe::verbs::rdma_cm {
namespace {

constexpr std::size_t kMaxOption = 4096;  // bytes
constexpr wire::QKey kUdpQKey{0x01234567};

template <typename T>
std::optional<T> value_of(const std::vector<std::uint8_t>& bytes) {
  if (bytes.size() != sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

}  // namespace

// --- options

int CmAgent::set_id_option(Identifier& id, std::uint32_t name,
                           const std::vector<std::uint8_t>& bytes) {
  const auto byte = value_of<std::uint8_t>(bytes);
  const auto number = value_of<int>(bytes);
  switch (name) {
    case RDMA_OPTION_ID_TOS:
      if (!byte) return -EINVAL;
      id.type_of_service = byte;
      return 0;
    case RDMA_OPTION_ID_REUSEADDR:
      if (!number) return -EINVAL;
      if ((*number == 0 || id.state == IdState::listen) && id.state != IdState::idle) {
        return -EINVAL;
      }
      id.reuse_address = *number != 0;
      return 0;
    case RDMA_OPTION_ID_AFONLY:
      if (!number) return -EINVAL;
      if (id.state != IdState::idle && id.state != IdState::address_bound) return -EINVAL;
      id.af_only = *number != 0;
      id.af_only_is_set = true;
      return 0;
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      if (!byte || id.type != emulator::QpType::rc) return -EINVAL;
      id.ack_timeout = byte;
      return 0;
    default:
      return -ENOSYS;
  }
}

// A path that the program has from elsewhere. There is only one here, so it is not looked at.
int CmAgent::set_ib_path(const IdPointer& id, const std::vector<std::uint8_t>& value) {
  if (value.size() % sizeof(ib_path_rec_data) != 0) return -EINVAL;
  bool has_primary = false;
  for (std::size_t at = 0; at < value.size(); at += sizeof(ib_path_rec_data)) {
    std::uint32_t flags = 0;
    std::memcpy(&flags, value.data() + at, sizeof(flags));
    has_primary |= flags == (IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL);
  }
  if (!has_primary || id->device == nullptr) return -EINVAL;
  if (id->state != IdState::address_resolved) return -EINVAL;
  set_route(*id);
  id->state = IdState::route_resolved;
  publish(id, abi::CmEventType::route_resolved, 0);
  return 0;
}

int CmAgent::set_option(EventChannel& channel, const Request& request) {
  rdma_ucm_set_option command;
  if (const int failed = request.read(command); failed != 0) return failed;
  if (command.optlen > kMaxOption) return -EINVAL;
  std::vector<std::uint8_t> value(command.optlen);
  if (!GuardedMemory().read(command.optval, value)) return -EFAULT;
  const std::scoped_lock lock(mutex_);
  const auto id = find(channel, command.id);
  if (!id) return id.error();
  if (command.level == RDMA_OPTION_ID) return set_id_option(**id, command.optname, value);
  const bool is_path = command.level == RDMA_OPTION_IB && command.optname == RDMA_OPTION_IB_PATH;
  return is_path ? set_ib_path(*id, value) : -ENOSYS;
}

// --- multicast

int CmAgent::join(EventChannel& channel, const Request& request, const rdma_ucm_join_mcast& command,
                  const SocketAddress& address) {
  if (request.out() < sizeof(rdma_ucm_create_id_resp)) return -ENOSPC;
  if (command.join_flags != RDMA_MC_JOIN_FLAG_FULLMEMBER &&
      command.join_flags != RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER) {
    return -EINVAL;
  }
  const std::scoped_lock lock(mutex_);
  const auto found = find(channel, command.id);
  if (!found) return found.error();
  Identifier& id = **found;
  if (id.device == nullptr || id.type != emulator::QpType::ud || address.is_unspecified()) {
    return -EINVAL;
  }
  if (id.state != IdState::address_bound && id.state != IdState::address_resolved) return -EINVAL;
  const auto group = std::make_shared<Multicast>();
  while (groups_.contains(next_group_)) ++next_group_;
  group->handle = next_group_++;
  group->uid = command.uid;
  group->address = address;
  group->id = id.handle;
  const int failed = request.write(command.response, rdma_ucm_create_id_resp{.id = group->handle});
  if (failed != 0) return failed;
  groups_.emplace(group->handle, group);
  id.groups.push_back(group);
  if (id.qkey == wire::QKey{}) id.qkey = kUdpQKey;

  const auto& addresses = id.device->config().addresses;
  const auto index = std::find(addresses.begin(), addresses.end(), id.source_gid);
  QueuedEvent event{.response = {}, .id = *found, .new_id = {}, .multicast = group};
  event.response.uid = group->uid;
  event.response.id = group->handle;
  event.response.event = static_cast<std::uint32_t>(abi::CmEventType::multicast_join);
  rdma_ucm_ud_param& ud = event.response.param.ud;
  ud.qp_num = wire::kMulticastQpn.value();
  ud.qkey = id.qkey.value();
  ud.ah_attr =
      ah_attributes({.destination = address.ip,
                     .source_gid_index = static_cast<std::uint8_t>(index - addresses.begin()),
                     .hop_limit = wire::kDefaultHopLimit,
                     .traffic_class = id.type_of_service.value_or(0),
                     .global = true});
  id.channel->push(std::move(event));
  return 0;
}

int CmAgent::join_ip_multicast(EventChannel& channel, const Request& request) {
  rdma_ucm_join_ip_mcast command;
  if (const int failed = request.read(command); failed != 0) return failed;
  const auto address = SocketAddress::load(&command.addr, sizeof(command.addr));
  if (!address) return -EINVAL;
  rdma_ucm_join_mcast wanted{};
  wanted.response = command.response;
  wanted.uid = command.uid;
  wanted.id = command.id;
  wanted.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER;
  return join(channel, request, wanted, *address);
}

int CmAgent::join_multicast(EventChannel& channel, const Request& request) {
  rdma_ucm_join_mcast command;
  if (const int failed = request.read(command); failed != 0) return failed;
  const auto address = SocketAddress::load(&command.addr, sizeof(command.addr));
  if (!address || address->size() != command.addr_size) return -EINVAL;
  return join(channel, request, command, *address);
}

int CmAgent::leave_multicast(EventChannel& channel, const Request& request) {
  rdma_ucm_destroy_id command;
  if (request.out() < sizeof(rdma_ucm_destroy_id_resp)) return -ENOSPC;
  if (const int failed = request.read(command); failed != 0) return failed;
  const std::scoped_lock lock(mutex_);
  const auto found = groups_.find(command.id);
  if (found == groups_.end()) return -ENOENT;
  const std::shared_ptr<Multicast> group = found->second;
  const auto id = find(channel, group->id);
  if (!id) return id.error();
  groups_.erase(found);
  std::erase((*id)->groups, group);
  static_cast<void>(
      channel.extract(**id, [&](const QueuedEvent& event) { return event.multicast == group; }));
  return request.write(command.response,
                       rdma_ucm_destroy_id_resp{.events_reported = group->events_reported});
}

// --- from one channel to another

int CmAgent::migrate(EventChannel& channel, const Request& request) {
  rdma_ucm_migrate_id command;
  if (const int failed = request.read(command); failed != 0) return failed;
  const std::scoped_lock lock(mutex_);
  const int fd = static_cast<int>(command.fd);
  const auto from = std::find_if(channels_.begin(), channels_.end(),
                                 [fd](const auto& other) { return other->is_behind(fd); });
  if (from == channels_.end()) return -EINVAL;
  const auto found = find(**from, command.id);
  if (!found) return found.error();
  Identifier& id = **found;
  id.channel = &channel;
  const bool to_itself = from->get() == &channel;
  if (!to_itself) {
    auto events = (*from)->extract(id);
    for (QueuedEvent& event : events) {
      if (event.new_id != nullptr) event.new_id->channel = &channel;
      channel.push(std::move(event));
    }
  }
  return request.write(command.response,
                       rdma_ucm_migrate_resp{.events_reported = id.events_reported});
}

}  // namespace urxe::verbs::rdma_cm
