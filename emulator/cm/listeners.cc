#include "emulator/cm/listeners.h"

#include <algorithm>

namespace urxe::emulator {

ListenerId ListenerTable::add(const ListenSpec& spec) {
  const ListenerId id{next_id_++};
  listeners_.push_back({.id = id, .spec = spec});
  return id;
}

void ListenerTable::remove(ListenerId id) {
  std::erase_if(listeners_, [id](const Listener& listener) { return listener.id == id; });
}

bool ListenerTable::matches(const ListenSpec& spec, QpType type, wire::Bytes private_data) {
  if (spec.type != type) return false;
  if (!wire::has_ip_header(spec.service)) return true;
  if (!spec.address && spec.family == ListenSpec::Family::any) return true;
  const auto header = wire::IpCmHeader::parse(private_data);
  if (!header) return false;
  if (spec.address) return header->destination == *spec.address;
  return header->destination.is_v4() == (spec.family == ListenSpec::Family::v4);
}

tl::expected<ListenerId, ListenerTable::Miss> ListenerTable::claim(wire::ServiceId service,
                                                                   QpType type,
                                                                   wire::Bytes private_data) {
  Miss miss = Miss::no_such_service;
  for (Listener& listener : listeners_) {
    if (listener.spec.service != service) continue;
    miss = Miss::wrong_address_or_type;
    if (!matches(listener.spec, type, private_data)) continue;
    if (listener.waiting >= listener.spec.backlog) return tl::unexpected(Miss::backlog_is_full);
    ++listener.waiting;
    return listener.id;
  }
  return tl::unexpected(miss);
}

void ListenerTable::release(ListenerId id) {
  for (Listener& listener : listeners_) {
    if (listener.id == id && listener.waiting > 0) --listener.waiting;
  }
}

}  // namespace urxe::emulator
