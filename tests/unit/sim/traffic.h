// Packets to send through a simulated network, and somebody to receive them.
#pragma once

#include <cstdint>
#include <vector>

#include "net/sim/network.h"
#include "net/wire/packet.h"

namespace urxe::test {

using namespace std::chrono_literals;

inline wire::IpAddress address_of(std::uint32_t number) {
  return wire::IpAddress::from_v4(0x0A000000 + number);
}

wire::Path path_between(std::uint32_t from, std::uint32_t to, wire::Ecn ecn = wire::Ecn::not_ect);

// A whole IP packet with a WRITE_MIDDLE of `payload` bytes; its PSN is `number`.
net::SimPacket ip_packet(const wire::Path& path, std::uint32_t number, std::size_t payload);

// Writes a SEND_ONLY with PSN `number` into the fabric. False if the fabric takes no more.
bool send(net::Fabric& fabric, Time now, const wire::Path& path, std::uint32_t number,
          std::size_t payload, std::uint32_t icrc_error = 0);

struct Arrival {
  Time time;
  std::uint32_t number;  // its PSN
  wire::Path path;
  bool icrc_is_right;
  std::vector<std::uint8_t> bytes;
};

// Keeps what arrives.
class Arrivals final : public net::Receiver, public net::PacketSink {
 public:
  void on_packet(Time now, const wire::Inbound& packet) override;
  void take(Time now, net::SimPacket packet) override;
  [[nodiscard]] std::vector<std::uint32_t> numbers() const;

  std::vector<Arrival> all;
};

}  // namespace urxe::test
