#include "net/sim/network.h"

namespace urxe::net {

SimNode& Network::add_node(const NodeSpec& spec) {
  SimNode& node = *nodes_.emplace_back(std::make_unique<SimNode>(spec, groups_));
  node.observer_ = observer_;
  return node;
}

Switch& Network::add_switch() { return *switches_.emplace_back(std::make_unique<Switch>(groups_)); }

Link& Network::add_link(const LinkSpec& spec, PacketSink& sink) {
  // A stream of its own: traffic on one cable does not change what happens on another.
  const Random random = random_.fork(links_.size());
  return *links_.emplace_back(std::make_unique<Link>(simulation_, spec, sink, random));
}

void Network::connect(SimNode& a, SimNode& b, const LinkSpec& both_ways) {
  a.uplink_ = &add_link(both_ways, b);
  b.uplink_ = &add_link(both_ways, a);
}

void Network::connect(SimNode& node, Switch& to, const LinkSpec& up, const LinkSpec& down) {
  node.uplink_ = &add_link(up, to);
  to.add_port(node.address(), add_link(down, node));
}

void Network::set_observer(Observer* observer) {
  observer_ = observer;
  for (const auto& node : nodes_) node->observer_ = observer;
}

std::size_t Network::on_the_way() const {
  std::size_t packets = 0;
  for (const auto& link : links_) packets += link->on_the_way();
  return packets;
}

}  // namespace urxe::net
