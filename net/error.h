// What went wrong where sockets and files are opened.
#pragma once

#include <string>

namespace urxe::net {

struct Error {
  int code = 0;          // an errno
  std::string sentence;  // for the user: what failed, why, and what to do about it
};

}  // namespace urxe::net
