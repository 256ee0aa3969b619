// A queue of events, and the descriptor that shows whether there are any.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include <tl/expected.hpp>

#include "verbs/abi/rdma_cm_abi.h"
#include "verbs/preload/private_descriptor.h"

namespace urxe::verbs::rdma_cm {

struct Identifier;
struct Multicast;

// One event that the program has not taken yet.
struct QueuedEvent {
  rdma_ucm_event_resp response{};
  std::shared_ptr<Identifier> id;        // whose it is
  std::shared_ptr<Identifier> new_id;    // of CONNECT_REQUEST: the connection
  std::shared_ptr<Multicast> multicast;  // of MULTICAST_JOIN
};

// What stands behind one descriptor of /dev/infiniband/rdma_cm. The program's descriptor is one end
// of a pair of sockets; a byte waits in it exactly while events wait here.
//
// Not thread-safe but for wait(): the agent's lock is held in all other calls.
class EventChannel {
 public:
  struct Opened {
    std::shared_ptr<EventChannel> channel;
    int fd;  // the program's
  };
  // The error is an errno.
  [[nodiscard]] static tl::expected<Opened, int> open(bool non_blocking);

  // `program_end` and `our_end` are taken over.
  EventChannel(int program_end, int our_end);

  void push(QueuedEvent event);
  // The first event, for a look. Null if there is none.
  [[nodiscard]] QueuedEvent* front() { return events_.empty() ? nullptr : &events_.front(); }
  QueuedEvent pop();
  // Takes out an identifier's events, all or those for which `wanted` says so, in their order.
  // Costs as much as it has events, however many others have.
  std::vector<QueuedEvent> extract(const Identifier& id,
                                   const std::function<bool(const QueuedEvent&)>& wanted = nullptr);

  // Waits until there is an event. Behaves as a system call of the program on its descriptor:
  // EAGAIN if that is O_NONBLOCK, EINTR or started again after a signal, a cancellation point.
  // Returns 0 or a negative errno.
  [[nodiscard]] int wait();

  // Whether `fd` is open on this channel.
  [[nodiscard]] bool is_behind(int fd) const;
  // In a forked child.
  void abandon();

 private:
  using Place = std::list<QueuedEvent>::iterator;

  void show_state();

  PrivateDescriptor program_end_;
  PrivateDescriptor our_end_;
  std::list<QueuedEvent> events_;
  std::unordered_map<const Identifier*, std::deque<Place>> by_id_;  // in their order
  bool shown_ = false;
};

}  // namespace urxe::verbs::rdma_cm
