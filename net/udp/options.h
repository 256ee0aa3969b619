// How a device's sockets are set up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/descriptor.h"
#include "net/wire/address.h"

namespace urxe::net {

// One of the device's addresses, and the interface (its index) that has it.
struct LocalAddress {
  wire::IpAddress address;
  unsigned interface = 0;
};

enum class Segmentation : std::uint8_t {
  automatic,  // the kernel splits whole buffers (UDP_SEGMENT), unless somebody captures
  always,     // the same, whoever captures
  never,      // one datagram per packet
};

struct UdpOptions {
  std::vector<LocalAddress> addresses;
  // Whole buffers cost the least by far; a capture on loopback or a bridge shows them unsplit.
  Segmentation segmentation = Segmentation::automatic;
  // Takes received packets in whole buffers (UDP_GRO), where the kernel can. Off for tests of the
  // other way.
  bool coalesced_reception = true;
  // Bytes, as the kernel counts them before it doubles the number. More than rmem_max is had with
  // CAP_NET_ADMIN only. The default holds what a window of 1 MB needs in packets of 1 KB.
  int receive_buffer = 4 * 1024 * 1024;
  // Bytes that wait for a network card: a few whole buffers.
  int send_buffer = 1024 * 1024;
  // Is given a sentence when the kernel begins to refuse packets for another reason than before;
  // nullptr: nobody. Called within the fabric's calls; it must not call the fabric.
  void (*explain)(const std::string& sentence) = nullptr;
  // Who keeps the descriptors; nullptr for nobody but the fabric.
  KeepDescriptor keep_descriptor = nullptr;
};

}  // namespace urxe::net
