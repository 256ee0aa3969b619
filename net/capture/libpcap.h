// libpcap, loaded when it is needed: the preloaded library must not bring it into every program.
#pragma once

#include <cstdio>

#include <pcap/pcap.h>
#include <tl/expected.hpp>

#include "net/error.h"

namespace urxe::net {

// What is used of it.
struct Libpcap {
  decltype(&::pcap_open_dead_with_tstamp_precision) open_dead = nullptr;
  decltype(&::pcap_dump_fopen) dump_fopen = nullptr;
  decltype(&::pcap_dump) dump = nullptr;
  decltype(&::pcap_dump_flush) dump_flush = nullptr;
  decltype(&::pcap_dump_close) dump_close = nullptr;
  decltype(&::pcap_close) close = nullptr;

  // Loads it once per process; it stays loaded.
  [[nodiscard]] static tl::expected<Libpcap, Error> load();
};

}  // namespace urxe::net
