// Which of this host's addresses leads to a destination.
#pragma once

#include <functional>

#include <tl/expected.hpp>

#include "verbs/rdma_cm/socket_address.h"

namespace urxe::verbs::rdma_cm {

// The source address that packets to `destination` get; `source` is what the program bound itself
// to, or unspecified. The error is an errno: ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL ...
using FindSource = std::function<tl::expected<SocketAddress, int>(
    const SocketAddress& source, const SocketAddress& destination)>;

// Asks the kernel's routing table.
[[nodiscard]] tl::expected<SocketAddress, int> find_source(const SocketAddress& source,
                                                           const SocketAddress& destination);

}  // namespace urxe::verbs::rdma_cm
