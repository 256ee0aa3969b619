// A communication identifier: what a program's rdma_cm_id stands for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/address_vector.h"
#include "emulator/cm/event.h"
#include "emulator/types.h"
#include "net/wire/cm.h"
#include "verbs/rdma_cm/socket_address.h"

namespace urxe::verbs::rdma_cm {

class CmDevice;
class EventChannel;

// The kernel's rdma_cm_state, less the states in which it waits for others: addresses and routes
// are resolved at once here.
enum class IdState : std::uint8_t {
  idle,
  address_bound,
  address_resolved,
  route_resolved,
  connect,
  disconnect,
  listen,
  destroyed,  // the program has given it up; somebody still looks at it
};

using PortKey = std::pair<wire::PortSpace, std::uint16_t>;

// A multicast group that an identifier joined.
struct Multicast {
  std::uint32_t handle = 0;
  std::uint64_t uid = 0;
  SocketAddress address;
  std::uint32_t id = 0;  // the identifier's handle
  std::uint32_t events_reported = 0;
};

// What an identifier that listens has on one device.
struct Listening {
  CmDevice* device = nullptr;
  emulator::ListenerId listener;
  std::vector<std::string> names;  // that were claimed, so that other processes hand over requests
};

// Owner: the agent, under its lock.
struct Identifier {
  std::uint32_t handle = 0;
  std::uint64_t uid = 0;  // 0: the program has not accepted it yet, and wants no events
  EventChannel* channel = nullptr;
  std::uint32_t events_reported = 0;
  wire::PortSpace space{};
  emulator::QpType type{};
  IdState state = IdState::idle;

  SocketAddress source;
  SocketAddress destination;
  std::optional<PortKey> port;  // that it owns
  bool reuse_address = false;
  bool af_only = false;
  bool af_only_is_set = false;
  std::optional<std::uint8_t> type_of_service;
  std::optional<std::uint8_t> ack_timeout;

  CmDevice* device = nullptr;  // once it is bound to one
  bool removed = false;        // the device went away: it can only be destroyed
  wire::IpAddress source_gid;
  wire::IpAddress destination_gid;
  bool has_route = false;
  emulator::AddressVector vector;  // with the route
  std::uint8_t packet_life_time = 0;
  std::uint8_t path_mtu = 0;  // ib_mtu

  wire::Psn starting_psn;
  wire::Qpn qpn;
  bool srq = false;
  wire::QKey qkey;
  std::uint32_t ece_vendor = 0;
  std::uint32_t ece_modifier = 0;
  std::optional<wire::CommId> communication;

  std::vector<Listening> listening;
  std::vector<std::shared_ptr<Multicast>> groups;
};

}  // namespace urxe::verbs::rdma_cm
