// What a program may ask about an identifier: addresses, paths, GIDs.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <endian.h>
#include <netinet/in.h>

#include "verbs/rdma_cm/agent.h"

namespace urxe::verbs::rdma_cm {
namespace {

constexpr std::uint16_t kDefaultPKey = 0xFFFF;
// ib_sa_selector: exactly this.
constexpr std::uint8_t kEqual = 2;

void copy_gid(const wire::IpAddress& from, std::uint8_t (&to)[16]) {
  std::copy(from.bytes().begin(), from.bytes().end(), to);
}

// The service id that an address of an identifier stands for (the kernel's rdma_get_service_id).
std::uint64_t service_of(const Identifier& id, const SocketAddress& address) {
  return address.is_ib() ? address.service : wire::service_id(id.space, address.port).value;
}

template <typename Response>
void fill_device(const Identifier& id, Response& response) {
  if (id.device == nullptr) return;
  response.node_guid = htobe64(id.device->config().guid);
  response.port_num = kPort;
  response.ibdev_index = id.device->config().uverbs_number;
}

ib_user_path_rec user_path(const Identifier& id) {
  ib_user_path_rec path{};
  copy_gid(id.destination_gid, path.dgid);
  copy_gid(id.source_gid, path.sgid);
  path.pkey = htons(kDefaultPKey);
  if (!id.has_route) return path;
  path.flow_label = htonl(id.vector.flow_label);
  path.reversible = 1;
  path.mtu = id.path_mtu;
  path.hop_limit = id.vector.hop_limit;
  path.traffic_class = id.vector.traffic_class;
  path.mtu_selector = path.rate_selector = path.packet_life_time_selector = kEqual;
  path.packet_life_time = id.packet_life_time;
  return path;
}

// A PathRecord as the subnet administrator sends it (IBTA 15.2.5.16).
std::array<std::uint8_t, 64> packed_path(const Identifier& id) {
  std::array<std::uint8_t, 64> bytes{};
  const wire::MutableBytes out(bytes);
  constexpr std::uint8_t kReversible = 0x80;
  constexpr std::uint8_t kExactly = kEqual << 6;
  wire::store_be(out, 0, service_of(id, id.destination));
  std::copy(id.destination_gid.bytes().begin(), id.destination_gid.bytes().end(),
            bytes.begin() + 8);
  std::copy(id.source_gid.bytes().begin(), id.source_gid.bytes().end(), bytes.begin() + 24);
  wire::store_be(out, 44, id.vector.flow_label << 8 | id.vector.hop_limit);
  bytes[48] = id.vector.traffic_class;
  bytes[49] = kReversible;
  wire::store_be(out, 50, kDefaultPKey);
  bytes[54] = static_cast<std::uint8_t>(kExactly | id.path_mtu);
  bytes[55] = kExactly;
  bytes[56] = static_cast<std::uint8_t>(kExactly | id.packet_life_time);
  return bytes;
}

rdma_ucm_query_addr_resp addresses_of(const Identifier& id) {
  rdma_ucm_query_addr_resp response{};
  id.source.store(&response.src_addr);
  response.src_size = static_cast<std::uint16_t>(id.source.size());
  id.destination.store(&response.dst_addr);
  response.dst_size = static_cast<std::uint16_t>(id.destination.size());
  fill_device(id, response);
  if (id.device != nullptr) response.pkey = htons(kDefaultPKey);
  return response;
}

// The same as AF_IB addresses.
rdma_ucm_query_addr_resp gids_of(const Identifier& id) {
  rdma_ucm_query_addr_resp response{};
  fill_device(id, response);
  if (id.device != nullptr) response.pkey = htons(kDefaultPKey);
  const auto as_ib = [&](const SocketAddress& address, const wire::IpAddress& gid) {
    if (address.is_ib()) return address;
    return SocketAddress{.family = abi::kAfIb,
                         .ip = id.device != nullptr ? gid : wire::IpAddress{},
                         .pkey = id.device != nullptr ? kDefaultPKey : std::uint16_t{0},
                         .service = service_of(id, address)};
  };
  as_ib(id.source, id.source_gid).store(&response.src_addr);
  as_ib(id.destination, id.destination_gid).store(&response.dst_addr);
  response.src_size = response.dst_size = sizeof(abi::SocketAddressIb);
  return response;
}

int answer_path(const Identifier& id, const Request& request, std::uint64_t address) {
  rdma_ucm_query_path_resp head;  // ends in an array without a size, which takes no initializer
  std::memset(&head, 0, sizeof(head));
  if (request.out() < sizeof(head)) return -ENOSPC;
  head.num_paths = id.has_route ? 1 : 0;
  std::array<std::uint8_t, sizeof(head) + sizeof(ib_path_rec_data)> response{};
  std::memcpy(response.data(), &head, sizeof(head));
  std::size_t size = sizeof(head);
  if (id.has_route && request.out() >= response.size()) {
    ib_path_rec_data path{};
    path.flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
    const auto record = packed_path(id);
    std::memcpy(path.path_rec, record.data(), record.size());
    std::memcpy(response.data() + sizeof(head), &path, sizeof(path));
    size = response.size();
  }
  return Request::write_bytes(address, std::span(response).first(size));
}

}  // namespace

int CmAgent::query_route(EventChannel& channel, const Request& request) {
  rdma_ucm_query command;
  if (request.out() < offsetof(rdma_ucm_query_route_resp, ibdev_index)) return -ENOSPC;
  if (const int failed = request.read(command); failed != 0) return failed;
  rdma_ucm_query_route_resp response{};
  {
    const std::scoped_lock lock(mutex_);
    const auto found = find(channel, command.id);
    if (!found) return found.error();
    const Identifier& id = **found;
    // Room for IP addresses only: who uses AF_IB asks otherwise.
    if (!id.source.is_ib()) id.source.store(&response.src_addr);
    if (!id.destination.is_ib()) id.destination.store(&response.dst_addr);
    fill_device(id, response);
    if (id.device != nullptr) {
      response.num_paths = id.has_route ? 1 : 0;
      response.ib_route[0] = user_path(id);
    }
  }
  return request.write(command.response, response);
}

int CmAgent::query(EventChannel& channel, const Request& request) {
  rdma_ucm_query command;
  if (const int failed = request.read(command); failed != 0) return failed;
  const std::scoped_lock lock(mutex_);
  const auto found = find(channel, command.id);
  if (!found) return found.error();
  const Identifier& id = **found;
  const bool has_room = request.out() >= offsetof(rdma_ucm_query_addr_resp, ibdev_index);
  switch (command.option) {
    case RDMA_USER_CM_QUERY_ADDR:
      return has_room ? request.write(command.response, addresses_of(id)) : -ENOSPC;
    case RDMA_USER_CM_QUERY_PATH:
      return answer_path(id, request, command.response);
    case RDMA_USER_CM_QUERY_GID:
      return has_room ? request.write(command.response, gids_of(id)) : -ENOSPC;
    default:
      return -ENOSYS;
  }
}

}  // namespace urxe::verbs::rdma_cm
