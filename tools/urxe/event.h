// `urxe event`: makes a device of a running program report an asynchronous event.
#pragma once

#include <string>

namespace urxe::tools {

struct EventOptions {
  int pid = 0;
  std::string device;
  std::string event;
};

// Returns the exit status: 0 if the program's device reported the event.
int raise_event(const EventOptions& options);

}  // namespace urxe::tools
