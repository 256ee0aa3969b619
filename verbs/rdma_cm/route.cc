#include "verbs/rdma_cm/route.h"

#include <cerrno>

#include <netinet/in.h>
#include <sys/socket.h>

#include "net/descriptor.h"

namespace urxe::verbs::rdma_cm {
namespace {

constexpr std::uint16_t kAnyPort = 4791;  // nothing is sent

}  // namespace

// A UDP socket that is connected has been routed, and nothing was sent.
tl::expected<SocketAddress, int> find_source(const SocketAddress& source,
                                             const SocketAddress& destination) {
  const int number = socket(destination.family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (number < 0) return tl::unexpected(errno);
  const net::Descriptor socket{number};
  sockaddr_storage storage{};
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (!source.is_unspecified()) {
    SocketAddress bound = source;
    bound.port = 0;
    bound.store(&storage);
    if (bind(number, address, static_cast<socklen_t>(bound.size())) != 0) {
      return tl::unexpected(errno);
    }
  }
  SocketAddress peer = destination;
  peer.port = kAnyPort;
  peer.store(&storage);
  if (connect(number, address, static_cast<socklen_t>(peer.size())) != 0) {
    return tl::unexpected(errno);
  }
  socklen_t size = sizeof(storage);
  if (getsockname(number, address, &size) != 0) return tl::unexpected(errno);
  auto found = SocketAddress::load(&storage, size);
  if (!found) return tl::unexpected(EAFNOSUPPORT);
  found->port = source.port;
  return *found;
}

}  // namespace urxe::verbs::rdma_cm
