// Management datagrams that nobody takes yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "net/descriptor.h"
#include "net/udp/mailbox.h"
#include "net/wire/path.h"
#include "net/wire/time.h"

namespace urxe::net {

// Owner: a UdpFabric. A request for a name that no process has waits here for a moment: programs
// that listen anew for each connection (perftest) leave a gap, and a server that was started
// together with its clients comes late. So does a message for a process whose mailbox is full.
// Bounded in time and number, because anybody may ask.
class HeldRequests {
 public:
  static constexpr Duration kGrace = std::chrono::milliseconds(500);
  static constexpr std::size_t kMost = 1024;

  struct Request {
    std::string name;  // of a mailbox
    wire::Path path;
    std::vector<std::uint8_t> bytes;
    Time until;

    [[nodiscard]] Datagram datagram() const {
      return {.path = path, .segment_size = bytes.size(), .bytes = bytes};
    }
  };

  explicit HeldRequests(KeepDescriptor keep);

  // Readable when look() is to be called. Not open if the process has no descriptor left; then
  // nothing is held.
  [[nodiscard]] const Descriptor& timer() const { return timer_; }

  // False if there is no room.
  [[nodiscard]] bool hold(Time now, const std::string& name, const Datagram& packet);

  // Calls `is_settled(request)` for each, which forgets those for which it says so.
  template <typename IsSettled>
  void look(IsSettled is_settled) {
    std::erase_if(requests_, is_settled);
    set_timer();
  }

 private:
  void set_timer() const;

  Descriptor timer_;
  std::vector<Request> requests_;
};

}  // namespace urxe::net
