// The sockets of a device, each with the options that RoCEv2 needs.
#pragma once

#include <cstdint>
#include <optional>

#include <tl/expected.hpp>

#include "net/descriptor.h"
#include "net/error.h"
#include "net/udp/options.h"
#include "net/wire/address.h"

namespace urxe::net {

// All of them have IP_MTU_DISCOVER = PROBE and stay unconnected: DF is set then and the IPv4
// identification is 0, or 0, 1, 2 ... within a buffer that the kernel splits (Linux,
// ip_select_ident_segs), so that the ICRC is known before the packet is sent. They never block.

// Receives what is sent to an address of ours, and shares the port with processes of this user. It
// may be sent from, too: then 4791 is the source port.
[[nodiscard]] tl::expected<Descriptor, Error> open_receiver(const LocalAddress& local,
                                                            const UdpOptions& options);

// Only sends, from a source port of its own. -1 and nothing else if another user has that port.
[[nodiscard]] Descriptor open_sender(const LocalAddress& local, std::uint16_t source_port,
                                     const UdpOptions& options);

// The same for management packets, whose fate is of interest: what the network says of packets that
// did not arrive waits in its error queue. It shares its port with nobody, or another socket might
// get that; so it takes any of the dynamic ports, and says which.
[[nodiscard]] Descriptor open_manager(const LocalAddress& local, std::uint16_t& source_port,
                                      const UdpOptions& options);

// Takes one destination from the error queue of such a socket; nothing if it is empty.
[[nodiscard]] std::optional<wire::IpAddress> take_unreachable(int socket);

// Receives what is sent to a group on an interface, as every other member of this host does. The
// error is an errno.
[[nodiscard]] tl::expected<Descriptor, int> open_group(const LocalAddress& group,
                                                       const UdpOptions& options);

// Whether the kernel splits buffers (UDP_SEGMENT, Linux 4.18).
[[nodiscard]] bool can_segment(int socket);

// The receive buffer as the kernel counts it: its own overhead included.
[[nodiscard]] int receive_buffer_of(int socket);

}  // namespace urxe::net
