// A port's GID table and how an address vector becomes a path (IBTA annex A17.4, A17.9).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "emulator/address_vector.h"
#include "emulator/error.h"
#include "net/wire/address.h"
#include "net/wire/numbers.h"
#include "net/wire/path.h"

namespace urxe::emulator {

inline constexpr std::uint32_t kGidTableSize = 1024;

class GidTable {
 public:
  // Replaces the table; index i is gids[i]. At most kGidTableSize.
  void assign(std::vector<wire::IpAddress> gids) { gids_ = std::move(gids); }
  [[nodiscard]] const std::vector<wire::IpAddress>& gids() const { return gids_; }
  [[nodiscard]] bool holds(std::uint32_t index) const {
    return index < gids_.size() && !gids_[index].is_unspecified();
  }
  [[nodiscard]] bool contains(const wire::IpAddress& address) const;
  [[nodiscard]] std::optional<std::uint32_t> index_of(const wire::IpAddress& address) const;

  // The path that packets of an address vector take. The UDP source port carries the flow's
  // entropy: it comes from the flow label or, without one, from both queue pair numbers.
  [[nodiscard]] Result<wire::Path> path_of(const AddressVector& vector, wire::Qpn local,
                                           wire::Qpn remote) const;

 private:
  std::vector<wire::IpAddress> gids_;
};

// Linux's rdma_flow_label_to_udp_sport and rdma_calc_flow_label (include/rdma/ib_verbs.h).
[[nodiscard]] std::uint16_t source_port_of(std::uint32_t flow_label, wire::Qpn local,
                                           wire::Qpn remote);

}  // namespace urxe::emulator
