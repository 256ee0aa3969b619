// Who waits for requests to which service.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "emulator/cm/event.h"
#include "emulator/types.h"
#include "net/wire/cm.h"

namespace urxe::emulator {

struct ListenSpec {
  wire::ServiceId service;
  // For IP port spaces: only requests to this address, or only of this family.
  std::optional<wire::IpAddress> address{};
  enum class Family : std::uint8_t { any, v4, v6 } family = Family::any;
  QpType type = QpType::rc;      // of the queue pairs that are to be connected
  std::uint32_t backlog = 1024;  // requests that the user has not taken yet
};

// Owner: the connection manager. Not thread-safe.
class ListenerTable {
 public:
  enum class Miss : std::uint8_t { no_such_service, wrong_address_or_type, backlog_is_full };

  ListenerId add(const ListenSpec& spec);
  void remove(ListenerId id);
  // The listener for a request, which counts against its backlog from now on.
  [[nodiscard]] tl::expected<ListenerId, Miss> claim(wire::ServiceId service, QpType type,
                                                     wire::Bytes private_data);
  // The user has taken a request, or it is gone.
  void release(ListenerId id);
  [[nodiscard]] std::size_t size() const { return listeners_.size(); }

 private:
  struct Listener {
    ListenerId id;
    ListenSpec spec;
    std::uint32_t waiting = 0;
  };
  [[nodiscard]] static bool matches(const ListenSpec& spec, QpType type, wire::Bytes private_data);

  std::vector<Listener> listeners_;
  std::uint32_t next_id_ = 1;
};

}  // namespace urxe::emulator
