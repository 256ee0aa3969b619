// Packets for tests of fault rules.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "net/faults/observed.h"
#include "net/faults/rule.h"
#include "net/wire/packet.h"

namespace urxe::test {

using namespace std::chrono_literals;

inline wire::IpAddress host(std::uint32_t number) {
  return wire::IpAddress::from_v4(0x0A000000 + number);
}

// What a test varies in a packet.
struct Sample {
  wire::Opcode opcode = wire::Opcode::rc_send_only;
  std::uint32_t psn = 0;
  std::uint32_t qpn = 0x11;
  wire::Syndrome syndrome = wire::Syndrome::ack();
  std::uint32_t read_length = 0;
  std::size_t payload = 0;
};

// BTH to pad.
std::vector<std::uint8_t> roce(const Sample& sample);

net::Observed observed(const Sample& sample, net::Direction direction = net::Direction::transmit,
                       std::uint32_t peer = 2);

// Rules that are known to be right.
std::vector<net::Rule> rules(std::string_view text);

}  // namespace urxe::test
