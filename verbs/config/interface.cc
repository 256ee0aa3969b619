#include "verbs/config/interface.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace urxe::verbs {
namespace {

// The flags of /proc/net/if_inet6 (linux/if_addr.h) that say that an address is not usable.
constexpr unsigned kDadFailed = 0x08;
constexpr unsigned kTentative = 0x40;

// `label` may be that of an IPv4 alias (eth0:1), which belongs to the interface before the colon.
Interface& find_or_add(std::vector<Interface>& interfaces, std::string_view label) {
  const std::string name(label.substr(0, label.find(':')));
  for (Interface& interface : interfaces) {
    if (interface.name == name) return interface;
  }
  Interface& added = interfaces.emplace_back();
  added.name = name;
  added.index = if_nametoindex(name.c_str());
  return added;
}

std::optional<wire::IpAddress> to_ip(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof v4);
    return wire::IpAddress::from_v4(ntohl(v4.sin_addr.s_addr));
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, address, sizeof v6);
    return wire::IpAddress::from_bytes(v6.sin6_addr.s6_addr);
  }
  return std::nullopt;
}

void add(Interface& interface, const sockaddr* address, std::string_view if_inet6) {
  if (address->sa_family == AF_PACKET) {
    sockaddr_ll link{};
    std::memcpy(&link, address, sizeof link);
    if (link.sll_halen == interface.mac.size()) {
      std::copy_n(link.sll_addr, interface.mac.size(), interface.mac.begin());
    }
    return;
  }
  const auto ip = to_ip(address);
  if (!ip || ip->is_unspecified() || ip->is_multicast()) return;
  if (is_tentative(if_inet6, interface.index, *ip)) return;
  const auto& known = interface.addresses;
  if (std::find(known.begin(), known.end(), *ip) == known.end()) interface.addresses.push_back(*ip);
}

unsigned mtu_of(int socket, const std::string& name) {
  ifreq request{};
  name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  return ioctl(socket, SIOCGIFMTU, &request) == 0 ? static_cast<unsigned>(request.ifr_mtu) : 0;
}

void fill_mtus(std::vector<Interface>& interfaces) {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return;
  for (Interface& interface : interfaces) interface.mtu = mtu_of(socket, interface.name);
  close(socket);
}

// Takes the next word of `line` and moves past it.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

unsigned parse_hex(std::string_view word) {
  unsigned value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value, 16);
  return value;
}

std::string as_hex(const wire::IpAddress& address) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : address.bytes()) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

// A line: the address in hexadecimal, interface index, prefix length, scope, flags, name.
bool is_tentative(std::string_view text, unsigned index, const wire::IpAddress& address) {
  if (address.is_v4()) return false;
  const std::string wanted = as_hex(address);
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (take_word(line) != wanted || parse_hex(take_word(line)) != index) continue;
    take_word(line);
    take_word(line);
    return (parse_hex(take_word(line)) & (kTentative | kDadFailed)) != 0;
  }
  return false;
}

tl::expected<std::vector<Interface>, std::string> list_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    return tl::unexpected(std::string("cannot list the network interfaces: ") +
                          std::strerror(errno));
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(first, &freeifaddrs);
  const std::string if_inet6 = read_small_file("/proc/net/if_inet6").value_or("");
  std::vector<Interface> interfaces;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    Interface& interface = find_or_add(interfaces, entry->ifa_name);
    interface.up = (entry->ifa_flags & IFF_UP) != 0;
    interface.running = (entry->ifa_flags & IFF_RUNNING) != 0;
    interface.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    if (entry->ifa_addr != nullptr) add(interface, entry->ifa_addr, if_inet6);
  }
  fill_mtus(interfaces);
  std::sort(interfaces.begin(), interfaces.end(),
            [](const Interface& a, const Interface& b) { return a.index < b.index; });
  return interfaces;
}

std::optional<std::string> read_small_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string text;
  std::array<char, 4096> buffer{};
  ssize_t size = 0;
  while ((size = read(fd, buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  close(fd);
  if (size < 0) return std::nullopt;
  return text;
}

}  // namespace urxe::verbs
