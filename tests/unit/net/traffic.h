// Packets through real sockets on loopback.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/udp/udp_fabric.h"
#include "net/wire/packet.h"

namespace urxe::test {

// CLOCK_MONOTONIC, and so far a test waits for what must come.
[[nodiscard]] Time now();
inline constexpr Duration kPatience = std::chrono::seconds(20);

[[nodiscard]] wire::IpAddress ip(const std::string& text);
// The loopback address of node 0 ... 3 of this process: tests that run at one time do not meet.
[[nodiscard]] std::string node_address(unsigned node);
[[nodiscard]] unsigned loopback_interface();
// Whether ::1 is there: not in every container.
[[nodiscard]] bool has_ipv6_loopback();

// Moves this process into a network namespace of its own, where loopback is up. False without the
// privilege: then kNeedsRoot is the reason to skip.
[[nodiscard]] bool enter_own_network();
inline constexpr const char* kNeedsRoot = "needs root, for a network namespace of its own";
// Runs a command of ip(8), as "link set lo up". Fails the test if that fails.
void run_ip(const std::string& command);
// A new IPv6 address can be used some time after it is there.
void wait_for_route(const std::string& source, const std::string& destination);

[[nodiscard]] net::UdpOptions on_loopback(const std::string& address);

// Opens it; fails the test if that fails.
[[nodiscard]] std::unique_ptr<net::UdpFabric> open_fabric(const net::UdpOptions& options);

struct Arrival {
  std::uint32_t psn;
  wire::Qpn qpn;
  wire::Path path;
  bool icrc_is_right;
  std::size_t size;
};

// Keeps what arrives.
class Arrivals final : public net::Receiver {
 public:
  void on_packet(Time now, const wire::Inbound& packet) override;
  void on_unreachable(Time, const wire::IpAddress& destination) override {
    unreachable.push_back(destination);
  }
  [[nodiscard]] std::vector<std::uint32_t> psns() const;
  [[nodiscard]] bool all_right() const;

  std::vector<Arrival> all;
  std::vector<wire::IpAddress> unreachable;
};

// The first queue pair number of a fabric.
[[nodiscard]] wire::Qpn qpn_of(const net::UdpFabric& fabric);

// Writes a SEND_ONLY without ICRC; returns its size.
std::size_t write_send(wire::MutableBytes slot, wire::Qpn to, std::uint32_t psn,
                       std::size_t payload);
// Puts one into the fabric. False if it takes no more.
bool put(net::Fabric& fabric, const wire::Path& path, wire::Qpn to, std::uint32_t psn,
         std::size_t payload, std::uint32_t icrc_error = 0);

// Receives until `count` packets are there, or for kPatience.
void receive_until(net::Fabric& fabric, Arrivals& arrivals, std::size_t count);
// Receives what is there already.
void receive_all(net::Fabric& fabric, Arrivals& arrivals);

}  // namespace urxe::test
