// The command line of the checker: what both ends do.
#pragma once

#include <cstdint>
#include <string>

#include <infiniband/verbs.h>

namespace checker {

struct Options {
  std::string host;  // of the server; empty: this is the server
  std::uint16_t port = 18600;
  std::string device = "rxe0";
  int gid_index = 0;
  ibv_mtu mtu = IBV_MTU_1024;
  ibv_qp_type transport = IBV_QPT_RC;
  bool extended = false;  // ibv_wr_* and ibv_start_poll instead of ibv_post_send and ibv_poll_cq
  bool events = false;    // sleep on a completion channel instead of polling
  bool shared_receive = false;
  bool on_demand = false;  // the memory is paged on demand; there are no windows on it then
  bool lossy = false;      // what the peer refuses for good may end by its retries
  bool brief = false;      // few sizes, no 8 MiB: under valgrind
  unsigned threads = 1;    // each with queue pairs, memory and a TCP connection of its own
  unsigned queue_pairs = 2;
  std::uint64_t seed = 1;
  std::string pause;  // a FIFO: everything is done twice, and in between it is opened for reading

  [[nodiscard]] bool is_server() const { return host.empty(); }
  [[nodiscard]] std::uint32_t mtu_bytes() const { return 128U << mtu; }

  // What must be the same at both ends.
  [[nodiscard]] std::string contract() const;
};

// Ends the process with a usage line if an argument is not understood.
Options read_options(int argc, char** argv);

}  // namespace checker
