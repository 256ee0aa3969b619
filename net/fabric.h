// The port through which a device's packets leave and come: sockets, a simulated network, or a
// decorator over either.
#pragma once

#include <cstddef>
#include <vector>

#include <poll.h>

#include "net/wire/bytes.h"
#include "net/wire/path.h"
#include "net/wire/time.h"

namespace urxe::net {

// The largest packet: a 4096-byte payload, the longest headers before one, and the ICRC.
inline constexpr std::size_t kMaxPacketSize = 4096 + 64;

// Who takes what a fabric receives.
class Receiver {
 public:
  virtual ~Receiver() = default;
  // `packet` is borrowed for the call. The receiver may send through the fabric meanwhile.
  virtual void on_packet(Time now, const wire::Inbound& packet) = 0;
  // The network says that management packets to `destination` do not arrive: nobody has that
  // address, or nobody there has RoCEv2's port.
  virtual void on_unreachable(Time, const wire::IpAddress&) {}
};

// What one call of Fabric::receive did.
struct ReceiveResult {
  std::size_t packets = 0;
  bool more = false;  // the budget ended it: there may be more at once
};

// One device's way to its network. Not thread-safe: the owner's lock is held in every call.
//
// Sending is reserve, fill, commit, any number of times, then flush. A batch may be cut by the
// fabric wherever it likes; the order of the packets is kept.
class Fabric {
 public:
  virtual ~Fabric() = default;

  // A slot of kMaxPacketSize bytes for one packet, the same one until commit. Empty while the
  // fabric can take no more (its socket is full): wait until wait_for says writable, then flush and
  // go on.
  virtual wire::MutableBytes reserve() = 0;
  // The slot holds `packet.size` bytes of a packet without ICRC. The fabric adds the ICRC.
  virtual void commit(Time now, const wire::Outbound& packet) = 0;
  // Sends what was committed. False: some of it waits for a writable socket.
  virtual bool flush(Time now) = 0;

  // Hands over what has arrived, at most about `budget` packets. Never blocks.
  virtual ReceiveResult receive(Time now, Receiver& receiver, std::size_t budget) = 0;

  // When flush and receive want to be called although no descriptor says so (delayed packets).
  [[nodiscard]] virtual Time next_deadline() const { return kNever; }

  // Adds the descriptors to wait on, with the events that are of interest now.
  virtual void wait_for(std::vector<pollfd>& descriptors) const = 0;

  // UD multicast: the addresses to receive besides the device's own. Returns 0 or an errno.
  virtual int join(const wire::IpAddress& group) = 0;
  virtual int leave(const wire::IpAddress& group) = 0;
};

}  // namespace urxe::net
