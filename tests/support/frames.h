// Whole frames from their parts, as a fabric puts them together.
#pragma once

#include <cstdint>
#include <vector>

#include "net/wire/bytes.h"
#include "net/wire/frame.h"
#include "net/wire/packet.h"
#include "net/wire/path.h"

namespace urxe::test {

// A packet whose opcode and table row agree.
[[nodiscard]] wire::Packet packet_of(wire::Opcode opcode);

// IP header to ICRC. The pad is made of zeros and counted in the BTH, whatever `packet` says.
[[nodiscard]] std::vector<std::uint8_t> build_frame(const wire::Path& path,
                                                    wire::Ipv4Fragment fragment,
                                                    wire::Packet packet, wire::Bytes payload);

// Whether parse_frame takes it and its ICRC is right.
[[nodiscard]] bool frame_is_right(wire::Bytes ip_packet);

}  // namespace urxe::test
