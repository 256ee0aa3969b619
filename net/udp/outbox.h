// Letters that are being written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/udp/mailbox.h"
#include "net/wire/address.h"

namespace urxe::net {

// Owner: a UdpFabric, which posts everything before it ends a reception.
class Outbox {
 public:
  struct Entry {
    std::string name;
    Letter letter;
    std::uint64_t packets = 0;    // that are handed over
    wire::IpAddress destination;  // of the last of them
  };

  // Adds a datagram of `packets` packets, 0 if it is a note. False if posted must be called before.
  bool add(const std::string& name, const Datagram& datagram, std::uint64_t packets);

  // Calls `posted` with each entry and what became of its letter: 0 or an errno.
  template <typename Posted>
  void post_all(const Mailbox& from, Posted posted) {
    for (Entry& entry : entries_) {
      if (entry.letter.is_empty()) continue;
      posted(entry, from.post(entry.name, entry.letter.bytes()));
      entry.letter.clear();
      entry.packets = 0;
    }
  }

 private:
  static constexpr std::size_t kMaxEntries = 8;

  [[nodiscard]] Entry* entry_for(const std::string& name);

  std::vector<Entry> entries_;  // those without a letter may be used for another name
};

}  // namespace urxe::net
