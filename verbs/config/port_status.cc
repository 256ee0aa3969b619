#include "verbs/config/port_status.h"

#include <charconv>

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace urxe::verbs {
namespace {

struct InterfaceState {
  unsigned flags = 0;
  unsigned mtu = 0;  // 0: not known
};

InterfaceState interface_state(const std::string& netdev) {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return {};
  ifreq request{};
  netdev.copy(request.ifr_name, sizeof request.ifr_name - 1);
  InterfaceState state;
  if (ioctl(socket, SIOCGIFFLAGS, &request) == 0) {
    state.flags = static_cast<unsigned short>(request.ifr_flags);
  }
  if (ioctl(socket, SIOCGIFMTU, &request) == 0) state.mtu = static_cast<unsigned>(request.ifr_mtu);
  close(socket);
  return state;
}

// Interfaces that have no speed fail the read, or say -1.
long interface_speed(const std::string& netdev) {
  const std::string text = read_small_file("/sys/class/net/" + netdev + "/speed").value_or("");
  long speed = 0;
  std::from_chars(text.data(), text.data() + text.size(), speed);
  return speed;
}

}  // namespace

PortStatus port_status(const DeviceConfig& device) {
  const auto [flags, mtu] = interface_state(device.netdev);
  PortStatus status;
  status.active_mtu = mtu == 0 ? device.active_mtu : active_mtu(mtu);
  status.rate = rate_of(interface_speed(device.netdev));
  if ((flags & IFF_UP) == 0) return status;
  const bool carrier = (flags & IFF_RUNNING) != 0;
  status.state = carrier ? PortState::active : PortState::down;
  status.physical = carrier ? PhysicalState::link_up : PhysicalState::polling;
  return status;
}

LinkRate rate_of(long megabits_per_second) {
  if (megabits_per_second <= 1000) return {LinkWidth::x1, LinkSpeed::sdr};
  if (megabits_per_second <= 10000) return {LinkWidth::x1, LinkSpeed::fdr10};
  if (megabits_per_second <= 20000) return {LinkWidth::x4, LinkSpeed::ddr};
  if (megabits_per_second <= 25000) return {LinkWidth::x1, LinkSpeed::edr};
  if (megabits_per_second <= 40000) return {LinkWidth::x4, LinkSpeed::fdr10};
  return {LinkWidth::x4, LinkSpeed::edr};
}

std::string to_string(LinkRate rate) {
  const int lanes = rate.width == LinkWidth::x4 ? 4 : 1;
  int per_lane = 0;  // tenths of a gigabit
  std::string name;
  switch (rate.speed) {
    case LinkSpeed::sdr:
      per_lane = 25;
      name = "SDR";
      break;
    case LinkSpeed::ddr:
      per_lane = 50;
      name = "DDR";
      break;
    case LinkSpeed::fdr10:
      per_lane = 100;
      name = "FDR10";
      break;
    case LinkSpeed::edr:
      per_lane = 250;
      name = "EDR";
      break;
  }
  const int total = per_lane * lanes;
  return std::to_string(total / 10) + (total % 10 != 0 ? ".5" : "") + " Gb/sec (" +
         std::to_string(lanes) + "X " + name + ")";
}

}  // namespace urxe::verbs
