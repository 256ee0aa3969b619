// A completion channel or an asynchronous event file: a descriptor from which the program reads
// events without us.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>

#include <sys/stat.h>
#include <tl/expected.hpp>

#include "verbs/preload/private_descriptor.h"

namespace urxe::verbs::uverbs {

// A pair of sockets that keep records apart: the program has one end, and reads, polls and epolls
// it as it would the kernel's file. One read returns one event. We hold the other end, and a second
// descriptor of the program's, to take back the events of an object that is destroyed: the program
// must not read of it any more, and must not wait for them to be acknowledged.
//
// Owner: the uverbs file and the objects that report here. The device's lock is held in all calls.
class EventChannel {
 public:
  struct Opened {
    std::shared_ptr<EventChannel> channel;
    int fd;  // the program's end, close-on-exec
  };
  // The error is an errno.
  static tl::expected<Opened, int> open();

  EventChannel(int ours, int theirs, int program_fd, const struct stat& identity);

  // Whether `fd` is a descriptor of the program's end.
  [[nodiscard]] bool is(int fd) const;
  // The program has closed all its descriptors. Ours can be closed then, too.
  [[nodiscard]] bool is_abandoned() const;
  void close();

  // `event` is an ib_uverbs_comp_event_desc or an ib_uverbs_async_event_desc.
  void report(std::span<const std::byte> event);
  // Takes back the events of `element` (their first eight bytes) that the program has not read.
  // Returns how many these were.
  std::uint32_t retract(std::uint64_t element);

  // Events wait here, because the socket is full.
  [[nodiscard]] bool is_behind() const { return !backlog_.empty(); }
  void catch_up();
  // To be waited on until it is writable.
  [[nodiscard]] int writer() const { return writer_.number(); }

 private:
  struct Event {
    std::array<std::byte, 16> bytes;
    std::size_t size;
    [[nodiscard]] std::uint64_t element() const;
  };
  [[nodiscard]] bool send(const Event& event) const;
  [[nodiscard]] bool receive(Event& event) const;

  PrivateDescriptor writer_;
  PrivateDescriptor reader_;
  int program_fd_;
  dev_t device_;
  ino_t inode_;
  std::deque<Event> backlog_;
};

}  // namespace urxe::verbs::uverbs
