#include "verbs/rdma_cm/ports.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

namespace urxe::verbs::rdma_cm {
namespace {

// Linux's default net.ipv4.ip_local_port_range.
constexpr std::uint32_t kFirstEphemeral = 32768;
constexpr std::uint32_t kEphemeralPorts = 60999 - kFirstEphemeral + 1;

constexpr std::uint64_t kPortSpaceMask = 0xFFFFFFFFFFFF0000;

// The port space of an address. AF_IB has it in its service id, as far as it is given.
std::optional<wire::PortSpace> space_of(const Identifier& id) {
  if (!id.source.is_ib()) return id.space;
  const std::uint64_t mask = id.source.service_mask & kPortSpaceMask;
  const std::uint64_t given = id.source.service & mask;
  const auto fits = [&](wire::PortSpace space) {
    const bool allowed = id.space == wire::PortSpace::ib || id.space == space;
    return allowed && given == (wire::service_id(space, 0).value & mask);
  };
  for (const auto space : {wire::PortSpace::ib, wire::PortSpace::tcp, wire::PortSpace::udp}) {
    if (fits(space)) return space;
  }
  return std::nullopt;
}

bool same_address(const SocketAddress& a, const SocketAddress& b) {
  return a.family == b.family && a.ip == b.ip;
}

}  // namespace

void PortTable::insert(Identifier& id, PortKey key) {
  if (id.source.is_ib()) {
    id.source.service |= wire::service_id(key.first, 0).value;
    id.source.service_mask |= kPortSpaceMask;
  }
  id.source.set_port(key.second);
  id.port = key;
  owners_[key].push_back(&id);
}

void PortTable::release(Identifier& id) {
  if (!id.port) return;
  const auto entry = owners_.find(*std::exchange(id.port, std::nullopt));
  std::erase(entry->second, &id);
  if (entry->second.empty()) owners_.erase(entry);
}

// The kernel's cma_check_port.
int PortTable::check(const Identifier& id, PortKey key, bool reuse) const {
  const auto found = owners_.find(key);
  if (found == owners_.end()) return 0;
  for (const Identifier* other : found->second) {
    if (other == &id || (reuse && other->reuse_address)) continue;
    if (id.af_only && other->af_only && id.source.family != other->source.family) continue;
    if (id.source.is_unspecified() || other->source.is_unspecified()) return -EADDRNOTAVAIL;
    if (same_address(id.source, other->source)) return -EADDRINUSE;
  }
  return 0;
}

int PortTable::check_exclusive(const Identifier& id) const {
  const auto space = space_of(id);
  return space ? check(id, {*space, id.source.any_port()}, false) : -EPROTONOSUPPORT;
}

// The kernel's cma_port_is_unique: an ephemeral port may serve several connections that differ.
bool PortTable::is_unique(const Identifier& id, PortKey key) const {
  const auto found = owners_.find(key);
  if (found == owners_.end()) return true;
  return std::all_of(found->second.begin(), found->second.end(), [&](const Identifier* other) {
    const auto ports_differ = id.destination.any_port() != 0 &&
                              other->destination.any_port() != 0 &&
                              id.destination.any_port() != other->destination.any_port();
    const auto differ = [](const SocketAddress& a, const SocketAddress& b) {
      return !a.is_unspecified() && !b.is_unspecified() && !same_address(a, b);
    };
    return ports_differ || differ(id.source, other->source) ||
           differ(id.destination, other->destination);
  });
}

int PortTable::bind_ephemeral(Identifier& id, wire::PortSpace space) {
  for (std::uint32_t tried = 0; tried < kEphemeralPorts; ++tried) {
    const auto port = static_cast<std::uint16_t>(kFirstEphemeral + next_++ % kEphemeralPorts);
    if (!is_unique(id, {space, port})) continue;
    insert(id, {space, port});
    return 0;
  }
  return -EADDRNOTAVAIL;
}

int PortTable::bind(Identifier& id) {
  const auto space = space_of(id);
  if (!space) return -EPROTONOSUPPORT;
  const std::uint16_t port = id.source.any_port();
  if (port == 0) return bind_ephemeral(id, *space);
  const PortKey key{*space, port};
  if (const int failed = check(id, key, id.reuse_address); failed != 0) return failed;
  insert(id, key);
  return 0;
}

}  // namespace urxe::verbs::rdma_cm
