// Takes requests of `urxe event`: asynchronous events that do not happen by themselves.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "emulator/types.h"
#include "verbs/preload/private_descriptor.h"

namespace urxe::verbs {

// An abstract Unix socket, urxe-control-PID. A request is a datagram "DEVICE EVENT", the answer
// "ok", or what is wrong with it. Requests of other users than the process's and root are ignored.
//
// Owner: the progress thread. In a forked child: close().
class ControlSocket {
 public:
  // 0 or an errno.
  int open();
  void close() { socket_.reset(); }
  // -1 if it is not open, as poll(2) likes it.
  [[nodiscard]] int descriptor() const { return socket_ ? socket_->number() : -1; }

  // What makes the event happen; empty if there is no such device.
  using Prepare =
      std::function<std::function<void()>(std::string_view device, emulator::AsyncEventType event)>;
  // Serves the requests that have come, some at most. The answer comes first: a program may end
  // for the event.
  void serve(const Prepare& prepare);

 private:
  bool serve_one(const Prepare& prepare);

  std::optional<PrivateDescriptor> socket_;
};

// What a request may ask for, by the name that `urxe event` gives it; nothing for other names.
[[nodiscard]] std::optional<emulator::AsyncEventType> event_by_name(std::string_view name);

}  // namespace urxe::verbs
