// Congestion control in the network: marks, CNPs, and many senders into one switch port.
#include <numeric>

#include <catch2/catch.hpp>

#include "tests/sim/pair_world.h"

namespace urxe::test {
namespace {

using emulator::WorkOpcode;

net::Rule mark_all(net::Direction direction) {
  return {
      .effect = {.action = net::Action::mark}, .match = {.direction = direction}, .text = "mark"};
}

WorldOptions marked(bool congestion_control, net::Direction direction) {
  WorldOptions options;
  options.mtu = emulator::Mtu::bytes4096;
  options.rules = {mark_all(direction)};
  options.device.congestion.enabled = congestion_control;
  options.signal_all = true;
  return options;
}

constexpr std::size_t kMegabyte = 1U << 20;

void move_megabyte(PairWorld& world, WorkOpcode opcode) {
  const Buffer local = world.client().buffer(kMegabyte);
  const Buffer remote = world.server().buffer(kMegabyte);
  REQUIRE(world.client().post(PairWorld::request(opcode, local, kMegabyte, remote)));
  REQUIRE(world.run());
}

TEST_CASE("marked requests are answered with CNPs, which slow their sender down") {
  PairWorld world(marked(true, net::Direction::transmit));
  move_megabyte(world, WorkOpcode::rdma_write);
  const emulator::Counters& server = world.server().host.device().counters();
  CHECK(server.ce_marked_packets >= kMegabyte / 4096);
  CHECK(server.congestion_notifications_sent > 3);
  CHECK(server.congestion_notifications_sent < server.ce_marked_packets);
  CHECK(world.client().host.device().counters().congestion_notifications_received ==
        server.congestion_notifications_sent);
  REQUIRE(world.client().sent.completions.size() == 1);
  CHECK(world.client().sent.completions[0].status == emulator::CompletionStatus::success);
  // At 10 Gb/s it takes 0.9 ms.
  CHECK(world.network().simulation().now().time_since_epoch() > 3ms);
}

TEST_CASE("marked answers of READs slow the responder down") {
  PairWorld world(marked(true, net::Direction::receive));
  move_megabyte(world, WorkOpcode::rdma_read);
  CHECK(world.server().host.device().counters().congestion_notifications_received > 3);
  REQUIRE(world.client().sent.completions.size() == 1);
  CHECK(world.client().sent.completions[0].status == emulator::CompletionStatus::success);
}

TEST_CASE("without congestion control marks are only counted") {
  PairWorld world(marked(false, net::Direction::transmit));
  move_megabyte(world, WorkOpcode::rdma_write);
  const emulator::Counters& server = world.server().host.device().counters();
  CHECK(server.ce_marked_packets >= kMegabyte / 4096);
  CHECK(server.congestion_notifications_sent == 0);
}

// --- eight senders, one receiver, one switch

constexpr std::size_t kSenders = 8;
constexpr std::size_t kMessage = 256 * 1024;

class Incast {
 public:
  explicit Incast(bool congestion_control) {
    options_.port_mtu = emulator::Mtu::bytes4096;
    options_.congestion.enabled = congestion_control;
    net::LinkSpec plain;
    net::LinkSpec marking;
    marking.queue_limit = 1024 * 1024;
    marking.marking = {.min = 40 * 1024, .max = 200 * 1024, .probability = 0.1};
    for (std::uint32_t i = 0; i <= kSenders; ++i) {
      net::SimNode& node = network_.add_node({.address = wire::IpAddress::from_v4(0x0A000001 + i)});
      network_.connect(node, switch_, plain, marking);
      options_.seed = i;
      ends_.push_back(std::make_unique<End>(
          network_, node, std::make_unique<net::SimFabric>(node),
          HostSpec{.options = options_, .qpns = {wire::Qpn{0x4000 * (i + 1)}, 64}}));
    }
    for (std::size_t i = 1; i <= kSenders; ++i) connect(i);
  }

  // Posts so much that no sender is done before `time`; runs up to then.
  void run_until(Time time) {
    for (std::size_t i = 1; i <= kSenders; ++i) {
      End& sender = *ends_[i];
      while (sender.sends.held() < 8) {
        REQUIRE(sender.post(
            PairWorld::request(WorkOpcode::rdma_write, sources_.at(i - 1), kMessage, target_)));
      }
      sender.sent.after_push = [this, &sender, i] { refill_.push_back({&sender, i}); };
    }
    net::Simulation& simulation = network_.simulation();
    while (simulation.next() <= time && simulation.step()) {
      for (const auto& [sender, i] : std::exchange(refill_, {})) {
        REQUIRE(sender->post(
            PairWorld::request(WorkOpcode::rdma_write, sources_.at(i - 1), kMessage, target_)));
      }
    }
  }

  [[nodiscard]] const net::LinkCounters& port() const {
    return switch_.port(ends_[0]->host.address()).counters();
  }
  // Bytes that each sender put on its cable.
  [[nodiscard]] std::vector<double> sent() const {
    std::vector<double> bytes;
    for (std::size_t i = 1; i <= kSenders; ++i) {
      const auto& counters = ends_[i]->host.node().uplink().counters();
      bytes.push_back(static_cast<double>(counters.delivered_bytes));
    }
    return bytes;
  }

 private:
  struct Refill {
    End* sender;
    std::size_t number;
  };

  emulator::QueuePair* create(End& end, SendDouble& sends) {
    return *end.host.device().create_qp(*end.pd, {.send_cq = end.send_cq,
                                                  .receive_cq = end.receive_cq,
                                                  .send_source = &sends,
                                                  .receive_source = &end.receives,
                                                  .capabilities = {.max_send_wr = 64},
                                                  .signal_all = true});
  }

  void connect(std::size_t i) {
    End& receiver = *ends_[0];
    End& sender = *ends_[i];
    if (i == 1) target_ = receiver.buffer(kMessage);
    sources_.at(i - 1) = sender.buffer(kMessage);
    emulator::QueuePair* at_receiver = create(receiver, silent_);
    sender.qp = create(sender, sender.sends);
    bring_up(*sender.qp, attributes(receiver, *at_receiver));
    bring_up(*at_receiver, attributes(sender, *sender.qp));
  }

  static emulator::QpAttributes attributes(End& peer, const emulator::QueuePair& qp) {
    emulator::QpAttributes attributes;
    attributes.path_mtu = emulator::Mtu::bytes4096;
    attributes.destination = qp.qpn();
    attributes.access = emulator::kLocalWrite | emulator::kRemoteWrite;
    attributes.vector.destination = peer.host.address();
    attributes.vector.global = true;
    attributes.timeout = 14;
    attributes.retry_count = attributes.rnr_retry = 7;
    return attributes;
  }

  emulator::DeviceOptions options_;
  net::Network network_{1};
  net::Switch& switch_ = network_.add_switch();
  std::vector<std::unique_ptr<End>> ends_;  // the first is the receiver
  SendDouble silent_;
  Buffer target_;
  std::array<Buffer, kSenders> sources_;
  std::vector<Refill> refill_;
};

double jain(const std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  const double squares = std::inner_product(shares.begin(), shares.end(), shares.begin(), 0.0);
  return sum * sum / (static_cast<double>(shares.size()) * squares);
}

constexpr Time kConverged{100ms};
constexpr Time kEnd{200ms};
constexpr Time kSoon{50ms};

TEST_CASE("eight senders into one port share it fairly, fill it, and lose nothing, with DCQCN") {
  Incast incast(true);
  incast.run_until(kConverged);
  const auto drops_before = incast.port().dropped_packets;
  const auto bytes_before = incast.port().delivered_bytes;
  const auto sent_before = incast.sent();
  incast.run_until(kEnd);
  CHECK(incast.port().dropped_packets == drops_before);
  std::vector<double> shares = incast.sent();
  for (std::size_t i = 0; i < shares.size(); ++i) shares[i] -= sent_before[i];
  CAPTURE(shares);
  CHECK(jain(shares) >= 0.95);
  const double seconds = std::chrono::duration<double>(kEnd - kConverged).count();
  const double use = static_cast<double>(incast.port().delivered_bytes - bytes_before) * 8 /
                     seconds / static_cast<double>(net::LinkSpec{}.bits_per_second);
  CHECK(use >= 0.9);
}

TEST_CASE("eight senders into one port lose packets again and again without DCQCN") {
  Incast incast(false);
  incast.run_until(kSoon);
  CHECK(incast.port().dropped_packets > 100);
}

}  // namespace
}  // namespace urxe::test
