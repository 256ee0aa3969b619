#include "tests/sim/swarm/capture.h"

#include <pcap/pcap.h>

namespace urxe::swarm {
namespace {

constexpr int kSnapLength = 65535;
constexpr int kNanosecondsPerSecond = 1'000'000'000;

}  // namespace

Capture::Capture(const std::string& path)
    : handle_(
          pcap_open_dead_with_tstamp_precision(DLT_RAW, kSnapLength, PCAP_TSTAMP_PRECISION_NANO)),
      file_(pcap_dump_open(handle_, path.c_str())) {
  if (file_ != nullptr) pcap_dump_flush(file_);  // before this process forks
}

Capture::~Capture() {
  if (file_ != nullptr) pcap_dump_close(file_);
  pcap_close(handle_);
}

void Capture::on_sent(Time now, const wire::IpAddress& /*node*/, wire::Bytes ip_packet) {
  if (file_ == nullptr) return;
  const auto nanoseconds = now.time_since_epoch().count();
  pcap_pkthdr header{};
  header.ts.tv_sec = nanoseconds / kNanosecondsPerSecond;
  header.ts.tv_usec = nanoseconds % kNanosecondsPerSecond;
  header.caplen = header.len = static_cast<bpf_u_int32>(ip_packet.size());
  pcap_dump(reinterpret_cast<u_char*>(file_), &header, ip_packet.data());
  pcap_dump_flush(file_);  // the run may end with an assertion
}

}  // namespace urxe::swarm
