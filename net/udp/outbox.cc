#include "net/udp/outbox.h"

#include <algorithm>

namespace urxe::net {

bool Outbox::add(const std::string& name, const Datagram& datagram, std::uint64_t packets) {
  Entry* const entry = entry_for(name);
  if (entry == nullptr || !entry->letter.add(datagram)) return false;
  entry->packets += packets;
  entry->destination = datagram.path.destination;
  return true;
}

Outbox::Entry* Outbox::entry_for(const std::string& name) {
  auto entry = std::find_if(entries_.begin(), entries_.end(),
                            [&](const Entry& held) { return held.name == name; });
  if (entry == entries_.end() && entries_.size() < kMaxEntries) {
    entry = entries_.insert(entry, Entry{.name = name});
  }
  if (entry == entries_.end()) {
    entry = std::find_if(entries_.begin(), entries_.end(),
                         [](const Entry& held) { return held.letter.is_empty(); });
  }
  if (entry == entries_.end()) return nullptr;
  entry->name = name;
  return &*entry;
}

}  // namespace urxe::net
