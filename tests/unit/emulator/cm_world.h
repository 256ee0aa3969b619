// Two devices that manage connections, in virtual time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "emulator/cm/manager.h"
#include "tests/support/device_pair.h"

namespace urxe::test {

inline constexpr wire::ServiceId kTestService = wire::service_id(wire::PortSpace::tcp, 7174);

// The client is node 0, the server node 1.
class CmWorld {
 public:
  explicit CmWorld(const emulator::DeviceOptions& device = {}) : pair_({.device = device}) {
    pair_.fate = [this](const WirePacket& packet) { return decide(packet); };
  }

  [[nodiscard]] emulator::ConnectionManager& cm(int node) { return pair_.node(node).device.cm(); }
  [[nodiscard]] DevicePair& pair() { return pair_; }
  [[nodiscard]] Time now() const { return pair_.now(); }

  [[nodiscard]] emulator::AddressVector vector_to(int node) {
    return {.destination = pair_.node(node).address, .global = true};
  }
  [[nodiscard]] static emulator::QpOffer offer(std::uint32_t qpn, wire::Bytes data = {}) {
    return {.qpn = wire::Qpn{qpn},
            .starting_psn = wire::Psn{qpn * 3},
            .responder_resources = 5,
            .initiator_depth = 6,
            .retry_count = 7,
            .rnr_retry_count = 3,
            .private_data = data};
  }
  // What a program's private data begins with in an IP port space.
  [[nodiscard]] std::vector<std::uint8_t> ip_header(int from, int to, std::size_t size = 92) {
    std::vector<std::uint8_t> data(size);
    wire::IpCmHeader{.source_port = 1000,
                     .source = pair_.node(from).address,
                     .destination = pair_.node(to).address}
        .serialize(data);
    return data;
  }

  emulator::ListenerId listen(emulator::ListenSpec spec = {.service = kTestService}) {
    return cm(1).listen(spec);
  }
  wire::CommId connect(std::uint32_t qpn = 0x111) {
    const auto data = ip_header(0, 1);
    const auto id = cm(0).connect(
        now(), {.service = kTestService, .vector = vector_to(1), .offer = offer(qpn, data)});
    return id.value();
  }
  // All events of a node since the last call.
  std::vector<emulator::CmEvent> events(int node) {
    std::vector<emulator::CmEvent> events;
    while (auto event = cm(node).poll_event()) events.push_back(*event);
    return events;
  }
  // The one event that a node has, of this kind. Fails the test otherwise (value()).
  emulator::CmEvent one_event(int node, emulator::CmEventKind kind);

  struct Ends {
    wire::CommId client;
    wire::CommId server;
  };
  // A connection all the way to both ends' established state.
  Ends establish(std::uint32_t client_qpn = 0x111, std::uint32_t server_qpn = 0x222);

  // Virtual time passes, all of it.
  void run(Duration time = 1s) {
    const Time end = now() + time;
    pair_.run(time);
    pair_.advance(end - now());
  }

  // Decides about every CM message: how many copies arrive.
  std::function<int(int from, const wire::CmMessage&)> fate;
  // How often each message was put on the wire.
  std::array<int, wire::kCmAttributes> sent{};
  [[nodiscard]] int sent_count(wire::CmAttribute attribute) const {
    return sent[static_cast<std::size_t>(attribute) - 0x10];
  }
  // How many connections both ends remember.
  [[nodiscard]] std::size_t remembered() { return cm(0).connections() + cm(1).connections(); }

 private:
  int decide(const WirePacket& packet);

  DevicePair pair_;
};

}  // namespace urxe::test
