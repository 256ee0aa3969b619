// One direction of a cable, with the output queue before it.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "net/random.h"
#include "net/sim/simulation.h"
#include "net/wire/bytes.h"

namespace urxe::net {

// An IP packet that carries RoCEv2: IP header to ICRC.
using SimPacket = std::vector<std::uint8_t>;

// What an Ethernet frame adds on a cable: preamble 8, header 14, FCS 4, gap 12.
inline constexpr std::size_t kEthernetOverhead = 38;

// Where a link's packets come out.
class PacketSink {
 public:
  virtual void take(Time now, SimPacket packet) = 0;

 protected:
  ~PacketSink() = default;
};

// When a queue marks packets with CE instead of waiting until it must drop them: from `min` bytes
// on with a probability that rises up to `probability` at `max`, and always above (RED on the
// present length, as switches are set up for DCQCN). Packets that are not ECN-capable are never
// marked.
struct EcnMarking {
  std::size_t min = SIZE_MAX;
  std::size_t max = SIZE_MAX;
  double probability = 0;
};

struct LinkSpec {
  std::uint64_t bits_per_second = 10'000'000'000;
  Duration latency = std::chrono::microseconds(5);
  Duration jitter{};  // up to this much is added to the latency; no packet overtakes another
  std::size_t queue_limit = 1024 * 1024;  // bytes that wait, the packet on the cable included
  EcnMarking marking;
};

struct LinkCounters {
  std::uint64_t offered_packets = 0;
  std::uint64_t offered_bytes = 0;
  std::uint64_t dropped_packets = 0;
  std::uint64_t dropped_bytes = 0;
  std::uint64_t marked_packets = 0;
  std::uint64_t delivered_packets = 0;
  std::uint64_t delivered_bytes = 0;
  std::size_t longest_queue = 0;  // bytes
};

// Packets wait in the queue for their turn on the cable, take bytes / rate to get on it, and arrive
// latency later. What finds the queue full is dropped (tail drop).
//
// Owner: a network. Not thread-safe.
class Link final : public Actor {
 public:
  Link(Simulation& simulation, const LinkSpec& spec, PacketSink& sink, Random random)
      : simulation_(simulation), spec_(spec), sink_(sink), random_(random) {}

  // False: the queue is full, the packet is gone.
  bool offer(Time now, SimPacket packet);

  // Bytes that wait or are being put on the cable.
  [[nodiscard]] std::size_t queued(Time now);
  [[nodiscard]] bool has_room(Time now, std::size_t bytes) {
    return queued(now) + bytes <= spec_.queue_limit;
  }
  // When there is room for `bytes` if nothing more is offered.
  [[nodiscard]] Time room_at(Time now, std::size_t bytes);

  [[nodiscard]] const LinkSpec& spec() const { return spec_; }
  [[nodiscard]] const LinkCounters& counters() const { return counters_; }
  [[nodiscard]] std::size_t on_the_way() const { return on_the_way_.size(); }

 private:
  struct OnTheWay {
    Time arrival;
    SimPacket packet;
  };
  struct Waiting {
    Time leaves;  // when its last bit is on the cable
    std::size_t bytes;
  };
  void act(Time now) override;
  [[nodiscard]] Duration time_on_cable(std::size_t bytes) const;
  [[nodiscard]] bool should_mark(std::size_t queued_bytes);

  Simulation& simulation_;
  LinkSpec spec_;
  PacketSink& sink_;
  Random random_;
  LinkCounters counters_;
  std::deque<Waiting> queue_;
  std::size_t queued_ = 0;
  Time cable_is_free_{};
  Time last_arrival_{};
  std::deque<OnTheWay> on_the_way_;
};

// Marks an IP packet with CE. False if its sender is not ECN-capable.
bool mark_congestion(wire::MutableBytes ip_packet);

}  // namespace urxe::net
