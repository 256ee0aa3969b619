#include "emulator/gid_table.h"

#include <algorithm>

#include <fmt/core.h>

namespace urxe::emulator {
namespace {

constexpr std::uint32_t kFlowLabelMask = 0xFFFFF;
constexpr std::uint16_t kFirstDynamicPort = 0xC000;

}  // namespace

std::uint16_t source_port_of(std::uint32_t flow_label, wire::Qpn local, wire::Qpn remote) {
  std::uint64_t label = flow_label & kFlowLabelMask;
  if (label == 0) {
    label = std::uint64_t{local.value()} * remote.value();
    label ^= label >> 20;
    label ^= label >> 40;
    label &= kFlowLabelMask;
  }
  const std::uint64_t folded = (label & 0x3FFF) ^ ((label & 0xFC000) >> 14);
  return static_cast<std::uint16_t>(folded | kFirstDynamicPort);
}

bool GidTable::contains(const wire::IpAddress& address) const {
  return std::find(gids_.begin(), gids_.end(), address) != gids_.end();
}

std::optional<std::uint32_t> GidTable::index_of(const wire::IpAddress& address) const {
  const auto found = std::find(gids_.begin(), gids_.end(), address);
  if (found == gids_.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - gids_.begin());
}

Result<wire::Path> GidTable::path_of(const AddressVector& vector, wire::Qpn local,
                                     wire::Qpn remote) const {
  if (!vector.global) {
    return fail(Failure::invalid,
                "the address vector has no GRH (is_global = 0), which RoCE needs");
  }
  if (!holds(vector.source_gid_index)) {
    return fail(Failure::invalid, fmt::format("source GID index {} is empty, the table holds {}",
                                              vector.source_gid_index, gids_.size()));
  }
  const wire::IpAddress& source = gids_[vector.source_gid_index];
  if (source.is_v4() != vector.destination.is_v4()) {
    return fail(
        Failure::invalid,
        fmt::format("GID {} ({}) cannot reach {}: one is IPv4, the other IPv6",
                    vector.source_gid_index, source.to_string(), vector.destination.to_string()));
  }
  return wire::Path{
      .source = source,
      .destination = vector.destination,
      .source_port = source_port_of(vector.flow_label, local, remote),
      .traffic_class = vector.traffic_class,
      .hop_limit = vector.hop_limit != 0 ? vector.hop_limit : wire::kDefaultHopLimit,
      .flow_label = vector.flow_label & kFlowLabelMask,
  };
}

}  // namespace urxe::emulator
