#include "tests/unit/net/traffic.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <stdexcept>

#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/descriptor.h"
#include "net/udp/socket_address.h"
#include "net/wire/headers.h"

namespace urxe::test {

Time now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Time{std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec)};
}

wire::IpAddress ip(const std::string& text) { return wire::IpAddress::parse(text).value(); }

std::string node_address(unsigned node) {
  static const auto process = static_cast<std::uint32_t>(getpid());
  return wire::IpAddress::from_v4(0x7F000000 | node << 22 | (process & 0x3FFFFF)).to_string();
}

unsigned loopback_interface() { return if_nametoindex("lo"); }

bool has_ipv6_loopback() {
  const net::Descriptor socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  net::SocketAddress address;
  const socklen_t size = net::to_socket_address(ip("::1"), 0, 0, address);
  return socket.is_open() && bind(socket.number(), &address.any, size) == 0;
}

void run_ip(const std::string& command) {
  if (std::system(("ip " + command).c_str()) != 0) throw std::runtime_error("ip " + command);
}

// Whether the refusal of a datagram to a port that nobody has arrives.
static bool is_refused(const wire::IpAddress& source, const wire::IpAddress& destination) {
  constexpr std::uint16_t kDiscard = 9;
  net::SocketAddress from;
  net::SocketAddress to;
  const socklen_t size = net::to_socket_address(source, 0, 0, from);
  static_cast<void>(net::to_socket_address(destination, kDiscard, 0, to));
  const net::Descriptor socket(::socket(from.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  char byte = 0;
  if (bind(socket.number(), &from.any, size) != 0) return false;
  if (connect(socket.number(), &to.any, size) != 0) return false;
  if (send(socket.number(), &byte, sizeof(byte), 0) < 0) return false;
  pollfd descriptor{.fd = socket.number(), .events = POLLIN, .revents = 0};
  poll(&descriptor, 1, 100);
  return recv(socket.number(), &byte, sizeof(byte), MSG_DONTWAIT) < 0 && errno == ECONNREFUSED;
}

void wait_for_route(const std::string& source, const std::string& destination) {
  const Time end = now() + std::chrono::seconds(10);
  while (!is_refused(ip(source), ip(destination))) {
    if (now() > end) throw std::runtime_error("no route from " + source + " to " + destination);
  }
}

bool enter_own_network() {
  if (unshare(CLONE_NEWNET) != 0) return false;
  run_ip("link set lo up");
  return true;
}

net::UdpOptions on_loopback(const std::string& address) {
  net::UdpOptions options;
  options.addresses.push_back({.address = ip(address), .interface = loopback_interface()});
  options.segmentation = net::Segmentation::always;  // whoever captures on this machine
  return options;
}

std::unique_ptr<net::UdpFabric> open_fabric(const net::UdpOptions& options) {
  auto fabric = net::UdpFabric::open(options);
  if (!fabric) throw std::runtime_error(fabric.error().sentence);
  return std::move(*fabric);
}

void Arrivals::on_packet(Time, const wire::Inbound& packet) {
  const wire::Bth bth = wire::Bth::parse(packet.bytes);
  all.push_back({.psn = bth.psn.value(),
                 .qpn = bth.destination,
                 .path = packet.path,
                 .icrc_is_right = packet.icrc_is_right,
                 .size = packet.bytes.size()});
}

std::vector<std::uint32_t> Arrivals::psns() const {
  std::vector<std::uint32_t> psns;
  for (const Arrival& arrival : all) psns.push_back(arrival.psn);
  return psns;
}

bool Arrivals::all_right() const {
  return std::all_of(all.begin(), all.end(), [](const Arrival& a) { return a.icrc_is_right; });
}

wire::Qpn qpn_of(const net::UdpFabric& fabric) {
  return net::first_qpn_of(fabric.slots().front().slot);
}

std::size_t write_send(wire::MutableBytes slot, wire::Qpn to, std::uint32_t psn,
                       std::size_t payload) {
  wire::Packet packet;
  packet.info = &wire::info(wire::Opcode::rc_send_only);
  packet.bth.opcode = static_cast<std::uint8_t>(wire::Opcode::rc_send_only);
  packet.bth.destination = to;
  packet.bth.psn = wire::Psn{psn};
  const std::size_t header = wire::write_headers(packet, slot);
  for (std::size_t i = 0; i < payload; ++i) {
    slot[header + i] = static_cast<std::uint8_t>(psn * 31 + i);
  }
  return header + payload;
}

bool put(net::Fabric& fabric, const wire::Path& path, wire::Qpn to, std::uint32_t psn,
         std::size_t payload, std::uint32_t icrc_error) {
  const wire::MutableBytes slot = fabric.reserve();
  if (slot.empty()) return false;
  const std::size_t size = write_send(slot, to, psn, payload);
  fabric.commit(now(), {.path = &path, .size = size, .icrc_error = icrc_error});
  return true;
}

void receive_until(net::Fabric& fabric, Arrivals& arrivals, std::size_t count) {
  const Time deadline = now() + kPatience;
  while (arrivals.all.size() < count && now() < deadline) {
    std::vector<pollfd> descriptors;
    fabric.wait_for(descriptors);
    poll(descriptors.data(), descriptors.size(), 100);
    fabric.receive(now(), arrivals, 1000);
  }
}

void receive_all(net::Fabric& fabric, Arrivals& arrivals) {
  while (fabric.receive(now(), arrivals, 1000).packets > 0) {
  }
}

}  // namespace urxe::test
