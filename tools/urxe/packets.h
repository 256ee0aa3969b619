// `urxe packets`: a capture as a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace urxe::tools {

struct PacketsOptions {
  std::string file;
  std::optional<std::uint32_t> qpn;  // only packets of the connection with this queue pair
  bool first_connection = false;     // only those of the first RC connection in the file
  std::uint64_t limit = 0;           // rows; 0: all
  bool json = false;
};

// Prints to standard output. Returns the exit status: 1 if the file cannot be read or an ICRC is
// wrong.
int show_packets(const PacketsOptions& options);

}  // namespace urxe::tools
