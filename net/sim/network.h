// A simulated network: nodes, switches, and the cables between them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "net/random.h"
#include "net/sim/groups.h"
#include "net/sim/link.h"
#include "net/sim/sim_fabric.h"
#include "net/sim/simulation.h"
#include "net/sim/switch.h"

namespace urxe::net {

// Nodes are added and connected, directly or through a switch; a SimFabric on a node is what a
// device gets. Everything random (jitter, marking) comes from the seed.
//
// Not thread-safe.
class Network {
 public:
  explicit Network(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] Simulation& simulation() { return simulation_; }

  SimNode& add_node(const NodeSpec& spec);
  Switch& add_switch();
  // A cable with the same properties in both directions. A node has one cable.
  void connect(SimNode& a, SimNode& b, const LinkSpec& both_ways);
  // A node's cable to a switch, and the switch's port to the node.
  void connect(SimNode& node, Switch& to, const LinkSpec& up, const LinkSpec& down);

  // Shown every packet that a node sends from now on; nullptr for nobody.
  void set_observer(Observer* observer);

  [[nodiscard]] const std::vector<std::unique_ptr<Link>>& links() const { return links_; }
  [[nodiscard]] const std::vector<std::unique_ptr<SimNode>>& nodes() const { return nodes_; }
  // Packets that are on a cable now.
  [[nodiscard]] std::size_t on_the_way() const;

 private:
  Link& add_link(const LinkSpec& spec, PacketSink& sink);

  Simulation simulation_;
  Random random_;
  Groups groups_;
  Observer* observer_ = nullptr;
  std::vector<std::unique_ptr<SimNode>> nodes_;
  std::vector<std::unique_ptr<Switch>> switches_;
  std::vector<std::unique_ptr<Link>> links_;
};

}  // namespace urxe::net
