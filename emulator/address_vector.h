// Address vectors: how a program says where packets go (IBTA 11.2.2.1, ib_ah_attr).
#pragma once

#include <cstdint>

#include "net/wire/address.h"

namespace urxe::emulator {

struct AddressVector {
  wire::IpAddress destination;   // the remote GID
  std::uint32_t flow_label = 0;  // 20 bits
  std::uint8_t source_gid_index = 0;
  std::uint8_t hop_limit = 0;  // 0: the device's default
  std::uint8_t traffic_class = 0;
  std::uint8_t port = 1;
  bool global = false;  // RoCE knows no other: must be set

  // Kept for queries only.
  std::uint8_t service_level = 0;
  std::uint8_t static_rate = 0;
  std::uint8_t source_path_bits = 0;
  std::uint16_t destination_lid = 0;
};

}  // namespace urxe::emulator
