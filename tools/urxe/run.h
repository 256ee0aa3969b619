// `urxe run`: a program with the emulated devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace urxe::tools {

struct RunOptions {
  std::vector<std::string> devices;  // NAME=NETDEV[/ADDRESS]
  std::optional<std::string> pcap;
  std::optional<std::string> log_level;
  std::vector<std::string> faults;  // rules (docs/faults.md)
  std::optional<std::uint64_t> seed;
  bool single_packets = false;
  bool ecn = false;
  bool hide_real = false;
  std::vector<std::string> command;
};

// Replaces this process by the program, so that its exit status, its signals and its terminal are
// the program's own. Returns only if that fails: the exit status a shell would give (126, 127).
int run_program(const RunOptions& options);

// Where liburxe.so is: $URXE_LIBRARY, or beside this program as built or as installed. Empty if
// nowhere.
std::string find_library();

}  // namespace urxe::tools
