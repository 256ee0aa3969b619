#include "tests/sim/swarm/world.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "net/faults/rule_parser.h"

namespace urxe::swarm {

using namespace emulator;
using namespace std::chrono_literals;

namespace {

// A run of sixty steps takes some ten thousand steps of the simulation.
constexpr std::uint64_t kMaxSteps = 2'000'000;
constexpr double kPacketsPerMessage = 3.5;
constexpr std::uint32_t kPsnJump = 0x200000;  // from one connection of a queue pair to the next

class World {
 public:
  World(const Plan& plan, net::Observer* observer)
      : plan_(plan), shared_(plan), network_(plan.seed), dice_(plan.seed ^ 0xE7D) {
    network_.set_observer(observer);
    for (const ConnectionPlan& connection : plan.connections) {
      const auto size = static_cast<std::size_t>(kPacketsPerMessage * bytes_of(connection.mtu));
      shared_.max_message = std::max(shared_.max_message, size);
    }
    make_machines();
    make_endpoints();
  }

  Verdict run() {
    for (const Step& step : plan_.steps) {
      if (!shared_.findings.empty()) break;
      take(step);
      run_for(step.pause);
    }
    come_to_rest();
    return shut_down();
  }

 private:
  void make_machines() {
    net::Switch& hub = network_.add_switch();
    for (std::size_t i = 0; i < plan_.devices.size(); ++i) {
      const DevicePlan& device = plan_.devices[i];
      net::SimNode& node =
          network_.add_node({.address = wire::IpAddress::from_v4(0x0A000001 + std::uint32_t(i)),
                             .receive_buffer = device.receive_buffer});
      network_.connect(node, hub, device.link, device.link);
      machines_.push_back(std::make_unique<Machine>(network_, node, make_fabric(i, node), device,
                                                    fmt::format("device {}", i), shared_));
    }
  }

  std::unique_ptr<net::Fabric> make_fabric(std::size_t device, net::SimNode& node) {
    std::string rules;
    for (const FaultPlan& fault : plan_.faults) {
      if (fault.device == device) rules += fault.rule + "\n";
    }
    auto fabric = std::make_unique<net::SimFabric>(node);
    if (rules.empty()) return fabric;
    return std::make_unique<net::FaultFabric>(std::move(fabric), *net::parse_rules(rules),
                                              plan_.seed + device);
  }

  void make_endpoints() {
    for (std::size_t i = 0; i < plan_.connections.size(); ++i) {
      const ConnectionPlan& connection = plan_.connections[i];
      for (std::size_t end = 0; end < 2; ++end) {
        const EndPlan& ends = connection.ends.at(end);
        endpoints_.push_back(
            std::make_unique<Endpoint>(shared_, *machines_.at(ends.device), connection, ends,
                                       fmt::format("connection {} end {}", i, end)));
        psns_.push_back(wire::Psn{ends.first_psn});
      }
      endpoints_[2 * i]->set_peer(*endpoints_[2 * i + 1]);
      endpoints_[2 * i + 1]->set_peer(*endpoints_[2 * i]);
      connect(i);
    }
  }

  void connect(std::size_t connection) {
    for (std::size_t end = 0; end < 2; ++end) {
      const std::size_t i = 2 * connection + end;
      endpoints_[i]->bring_up(psns_[i], psns_[i ^ 1]);
    }
    for (std::size_t end = 0; end < 2; ++end) endpoints_[2 * connection + end]->note_holes();
  }

  void reconnect(std::size_t connection, bool anew) {
    for (std::size_t i = 2 * connection; i < 2 * connection + 2; ++i) {
      endpoints_[i]->reset();
      psns_[i] = psns_[i] + kPsnJump + static_cast<std::uint32_t>(dice_.below(kPsnJump));
    }
    if (anew) {
      for (std::size_t i = 2 * connection; i < 2 * connection + 2; ++i) {
        endpoints_[i]->destroy_qp();
        endpoints_[i]->create_qp();
      }
    }
    connect(connection);
  }

  void take(const Step& step) {
    if (step.end >= endpoints_.size()) return;
    Endpoint& end = *endpoints_[step.end];
    net::Random dice(step.dice);
    switch (step.kind) {
      case StepKind::send:
        return end.post_requests(dice);
      case StepKind::receive:
        if (end.state() == QpState::reset) return;
        return end.post_receives(dice, dice.between(1, 8));
      case StepKind::bind:
        return end.bind(dice);
      case StepKind::invalidate:
        return end.invalidate(dice);
      case StepKind::change:
        return end.change_region(dice);
      case StepKind::reconnect:
        return reconnect_broken(step.end / 2);
      case StepKind::reset:
        return end.reset();
      case StepKind::fail:
        return end.fail();
      case StepKind::recreate:
        return reconnect(step.end / 2, true);
      case StepKind::drain:
        return end.drain();
      case StepKind::page:
        return end.change_pages(dice);
      case StepKind::group:
        return end.change_group(dice);
    }
  }

  // Mostly what needs it.
  void reconnect_broken(std::size_t connection) {
    const auto works = [this](std::size_t i) {
      return endpoints_[2 * i]->state() == QpState::ready_to_send &&
             endpoints_[2 * i + 1]->state() == QpState::ready_to_send;
    };
    for (std::size_t i = 0; i < plan_.connections.size(); ++i) {
      const std::size_t candidate = (connection + i) % plan_.connections.size();
      if (!works(candidate)) return reconnect(candidate, false);
    }
    reconnect(connection, false);
  }

  void run_for(Duration time) {
    net::Simulation& simulation = network_.simulation();
    const Time end = simulation.now() + time;
    while (simulation.next() <= end && simulation.steps() < kMaxSteps && shared_.findings.empty() &&
           simulation.step()) {
    }
    if (simulation.next() > end) simulation.run_until(end);
    for (const auto& machine : machines_) {
      while (machine->device().poll_async_event()) {
      }
    }
  }

  [[nodiscard]] bool is_draining() const {
    return std::any_of(endpoints_.begin(), endpoints_.end(),
                       [](const auto& end) { return end->state() == QpState::send_queue_drain; });
  }

  // Faults end by themselves after some time; from then on everything must come to an end.
  void come_to_rest() {
    constexpr int kSlices = 500;
    net::Simulation& simulation = network_.simulation();
    for (int i = 0; i < kSlices && shared_.findings.empty(); ++i) {
      for (const auto& end : endpoints_) end->make_ready(dice_);
      run_for(20ms);
      if (simulation.next() == kNever && !is_draining()) break;
    }
    if (!shared_.findings.empty()) return;
    if (simulation.next() != kNever || is_draining()) {
      std::string states;
      for (const auto& end : endpoints_) states += ", " + end->describe();
      shared_.findings.add("livelock: after {} steps and {} ms there is still something to do{}",
                           simulation.steps(), simulation.now().time_since_epoch() / 1ms, states);
      return;
    }
    for (const auto& end : endpoints_) end->check_at_rest();
  }

  Verdict shut_down() {
    Verdict verdict;
    for (const auto& machine : machines_) {
      const Counters& counters = machine->device().counters();
      verdict.packets += counters.sent_packets;
      verdict.messages += counters.completed_sends + counters.completed_writes +
                          counters.completed_reads + counters.completed_atomics;
      verdict.retransmissions += counters.retransmitted_packets;
      verdict.refusals += machine->memory_checker().refusals();
      verdict.multicasts += machine->groups().deliveries();
    }
    verdict.placements = shared_.placements;
    if (shared_.findings.empty()) {
      for (const auto& end : endpoints_) end->destroy_qp();
      for (const auto& end : endpoints_) end->destroy_rest();
      for (const auto& machine : machines_) machine->shut_down();
    }
    verdict.findings = shared_.findings.sentences();
    return verdict;
  }

  const Plan& plan_;
  Shared shared_;
  net::Network network_;
  net::Random dice_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::vector<wire::Psn> psns_;  // where each endpoint begins
};

}  // namespace

Verdict play(const Plan& plan, net::Observer* observer) { return World(plan, observer).run(); }

}  // namespace urxe::swarm
