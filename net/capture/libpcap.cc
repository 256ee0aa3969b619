#include "net/capture/libpcap.h"

#include <cerrno>

#include <dlfcn.h>
#include <fmt/core.h>

namespace urxe::net {
namespace {

// Debian's name, and everybody else's.
constexpr const char* kNames[] = {"libpcap.so.0.8", "libpcap.so.1"};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

tl::expected<Libpcap, Error> Libpcap::load() {
  void* library = nullptr;
  for (const char* name : kNames) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) {
    return tl::unexpected(
        Error{ENOENT, fmt::format("capturing needs libpcap (Debian: libpcap0.8): {}", dlerror())});
  }
  Libpcap pcap;
  if (!find(library, "pcap_open_dead_with_tstamp_precision", pcap.open_dead) ||
      !find(library, "pcap_dump_fopen", pcap.dump_fopen) ||
      !find(library, "pcap_dump", pcap.dump) ||
      !find(library, "pcap_dump_flush", pcap.dump_flush) ||
      !find(library, "pcap_dump_close", pcap.dump_close) ||
      !find(library, "pcap_close", pcap.close)) {
    return tl::unexpected(Error{ENOSYS, "libpcap is too old: version 1.5 can write nanoseconds"});
  }
  return pcap;
}

}  // namespace urxe::net
