// Connections of communication management in every state, each beside another connection.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/unit/emulator/cm_world.h"

namespace urxe::test {

inline constexpr wire::ServiceId kUdService = wire::service_id(wire::PortSpace::udp, 7174);
inline constexpr wire::CommId kUnborn{0x5A5A5A};  // of a peer whose id nobody knows yet
inline constexpr std::uint32_t kClientQpn = 0x111;
inline constexpr std::uint32_t kServerQpn = 0x222;
inline constexpr std::uint32_t kOtherClientQpn = 0x333;
inline constexpr std::uint32_t kOtherServerQpn = 0x444;

// Of either end.
[[nodiscard]] emulator::DeviceOptions scene_options();

// Two ends with a connection between them that is none of the messages' business, and most often a
// second one, the subject.
struct Scene {
  explicit Scene(int receiver);

  void lose_all();
  wire::CommId connect();
  void accept();
  void establish();
  void disconnect();
  void resolve();

  [[nodiscard]] wire::CommId subject() const { return node == 0 ? client : server; }
  [[nodiscard]] wire::CommId peer() const { return node == 0 ? server : client; }
  [[nodiscard]] wire::CommId bystander() const { return node == 0 ? other.client : other.server; }
  [[nodiscard]] wire::CommId bystanders_peer() const {
    return node == 0 ? other.server : other.client;
  }
  [[nodiscard]] const emulator::Connection* find(wire::CommId id) {
    return world.cm(node).find(id);
  }

  int node;  // to which messages go
  CmWorld world;
  CmWorld::Ends other;
  wire::CommId client{0x7FF0};  // as long as there are none
  wire::CommId server = kUnborn;
};

// A state, at which end, and how to get there.
struct Stage {
  const char* name;
  int node;
  std::function<void(Scene&)> prepare;
};

[[nodiscard]] std::vector<Stage> stages();

}  // namespace urxe::test
