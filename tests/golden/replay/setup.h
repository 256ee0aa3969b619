// What both replays need to set up a device.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "emulator/device.h"
#include "net/wire/packet.h"

namespace urxe::replay {

constexpr std::size_t kSlotSize = 4160;

[[nodiscard]] emulator::QpType type_of(wire::Service service);
[[nodiscard]] emulator::Mtu mtu_of(std::uint32_t bytes);
// Windows that never shut and timers that never run by themselves: the capture sets the pace.
[[nodiscard]] emulator::DeviceOptions device_options();
// BTH to ICRC (which is zero) of the next packet that the device sends.
[[nodiscard]] std::optional<std::vector<std::uint8_t>> next_packet(emulator::Device& device,
                                                                   Time now);

}  // namespace urxe::replay
