// `urxe doctor`: what will not work here, and what to do about it.
#pragma once

#include <string>
#include <vector>

namespace urxe::tools {

struct DoctorOptions {
  std::vector<std::string> devices;  // as for `urxe run`
  bool json = false;
};

// Returns 1 if something keeps every device from working, else 0.
int examine(const DoctorOptions& options);

}  // namespace urxe::tools
