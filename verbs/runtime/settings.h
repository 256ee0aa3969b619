// What the user asks of running devices: the environment variables of docs/environment.md that this
// room reads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "net/faults/rule.h"

namespace urxe::verbs {

struct Settings {
  std::optional<std::string> pcap;  // URXE_PCAP: capture into this file
  std::vector<net::Rule> faults;    // URXE_FAULTS
  std::uint64_t fault_seed = 1;     // URXE_FAULT_SEED
  bool single_packets = false;   // URXE_SINGLE_PACKETS: no packet is sent in one buffer with others
  bool congestion = false;       // URXE_ECN: CNPs are sent, and slow queue pairs down
  bool uverbs_by_write = false;  // URXE_UVERBS_ABI=write: commands come by write() only
  std::string log;               // URXE_LOG, as set_up_log takes it; empty: the default
};

// `variable` is getenv, or a test's. The error is a sentence for the user.
[[nodiscard]] tl::expected<Settings, std::string> read_settings(
    const std::function<const char*(const char*)>& variable);

}  // namespace urxe::verbs
