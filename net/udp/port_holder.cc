#include "net/udp/port_holder.h"

#include <array>
#include <cstdio>
#include <fstream>
#include <string>

namespace urxe::net {
namespace {

// One line of /proc/net/udp: the address as the words of memory in hexadecimal digits.
struct Line {
  std::array<char, 64> address{};
  unsigned port = 0;
  unsigned user = 0;
  unsigned long inode = 0;
};

std::optional<Line> parse(const std::string& text) {
  Line line;
  const int fields =
      std::sscanf(text.c_str(), " %*d: %63[0-9A-F]:%x %*s %*s %*s %*s %*s %u %*u %lu",
                  line.address.data(), &line.port, &line.user, &line.inode);
  if (fields != 4) return std::nullopt;
  return line;
}

std::string digits_of(const wire::IpAddress& address) {
  std::string digits;
  for (std::size_t word = address.is_v4() ? 12 : 0; word < wire::IpAddress::kSize; word += 4) {
    for (std::size_t i = 4; i-- > 0;) {
      constexpr std::string_view kDigits = "0123456789ABCDEF";
      const std::uint8_t byte = address.bytes()[word + i];
      digits += kDigits[byte >> 4];
      digits += kDigits[byte & 0xF];
    }
  }
  return digits;
}

bool is_any(const std::string& digits) {
  return digits.find_first_not_of('0') == std::string::npos;
}

std::optional<PortHolder> find_in(const char* file, const std::string& address,
                                  std::uint16_t port) {
  std::ifstream lines(file);
  std::string text;
  while (std::getline(lines, text)) {
    const auto line = parse(text);
    if (!line || line->port != port) continue;
    const std::string digits(line->address.data());
    if (digits != address && !is_any(digits)) continue;
    return PortHolder{.kernel = line->inode == 0, .user = line->user};
  }
  return std::nullopt;
}

}  // namespace

std::optional<PortHolder> find_port_holder(const wire::IpAddress& address, std::uint16_t port) {
  const std::string digits = digits_of(address);
  if (address.is_v4()) {
    if (auto found = find_in("/proc/net/udp", digits, port)) return found;
  }
  return find_in("/proc/net/udp6", digits, port);
}

}  // namespace urxe::net
