// Writes a run's packets to a capture file.
#pragma once

#include <memory>
#include <string>

#include "net/sim/sim_fabric.h"

struct pcap;
struct pcap_dumper;

namespace urxe::swarm {

// What nodes put into the network, with virtual time.
class Capture final : public net::Observer {
 public:
  explicit Capture(const std::string& path);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  [[nodiscard]] bool ok() const { return file_ != nullptr; }
  void on_sent(Time now, const wire::IpAddress& node, wire::Bytes ip_packet) override;

 private:
  pcap* handle_;
  pcap_dumper* file_;
};

}  // namespace urxe::swarm
