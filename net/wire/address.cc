#include "net/wire/address.h"

#include <arpa/inet.h>

namespace urxe::wire {

std::optional<IpAddress> IpAddress::parse(const std::string& text) {
  std::array<std::uint8_t, 4> v4{};
  if (inet_pton(AF_INET, text.c_str(), v4.data()) == 1) {
    return from_v4(load_be<std::uint32_t>(v4, 0));
  }
  std::array<std::uint8_t, kSize> v6{};
  if (inet_pton(AF_INET6, text.c_str(), v6.data()) == 1) return IpAddress(v6);
  return std::nullopt;
}

std::string IpAddress::to_string() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool v4 = is_v4();
  inet_ntop(v4 ? AF_INET : AF_INET6, bytes_.data() + (v4 ? 12 : 0), text.data(), text.size());
  return text.data();
}

}  // namespace urxe::wire
