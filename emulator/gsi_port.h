// Queue pair 1, the general services interface (IBTA 13.5.1, 3.9.5): MADs as datagrams.
#pragma once

#include <optional>

#include "emulator/cm/manager.h"
#include "emulator/counters.h"
#include "emulator/gid_table.h"
#include "emulator/qp_table.h"
#include "net/wire/packet.h"
#include "net/wire/path.h"
#include "net/wire/time.h"

namespace urxe::emulator {

// Owner: the device. Not thread-safe.
class GsiPort {
 public:
  // `gids` and `counters` outlive this.
  GsiPort(const GidTable& gids, QpnRange qpns, const DeviceOptions& options, Counters& counters)
      : cm_(gids, qpns, options), counters_(counters) {}

  [[nodiscard]] ConnectionManager& cm() { return cm_; }
  [[nodiscard]] const ConnectionManager& cm() const { return cm_; }

  void handle_packet(Time now, const wire::Packet& packet, const wire::Inbound& inbound);
  [[nodiscard]] std::optional<wire::Outbound> poll_transmit(wire::MutableBytes slot);

 private:
  ConnectionManager cm_;
  Counters& counters_;
  wire::Psn next_psn_;
};

}  // namespace urxe::emulator
