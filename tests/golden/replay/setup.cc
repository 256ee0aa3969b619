#include "tests/golden/replay/setup.h"

namespace urxe::replay {

using namespace emulator;

QpType type_of(wire::Service service) {
  switch (service) {
    case wire::Service::uc:
      return QpType::uc;
    case wire::Service::ud:
      return QpType::ud;
    default:
      return QpType::rc;
  }
}

DeviceOptions device_options() {
  constexpr std::uint32_t kEndless = 1U << 28;
  DeviceOptions options;
  options.port_mtu = Mtu::bytes4096;
  options.initial_window = options.max_window = options.read_window = kEndless;
  options.initial_probe_delay = options.min_probe_delay = options.max_probe_delay =
      std::chrono::hours(1);
  return options;
}

Mtu mtu_of(std::uint32_t bytes) {
  for (const Mtu mtu : {Mtu::bytes256, Mtu::bytes512, Mtu::bytes1024, Mtu::bytes2048}) {
    if (bytes_of(mtu) == bytes) return mtu;
  }
  return Mtu::bytes4096;
}

std::optional<std::vector<std::uint8_t>> next_packet(Device& device, Time now) {
  std::array<std::uint8_t, kSlotSize> slot{};
  const auto outbound = device.poll_transmit(now, slot);
  if (!outbound) return std::nullopt;
  std::vector<std::uint8_t> bytes(slot.begin(),
                                  slot.begin() + static_cast<std::ptrdiff_t>(outbound->size));
  bytes.resize(bytes.size() + wire::kIcrcSize);
  return bytes;
}

}  // namespace urxe::replay
