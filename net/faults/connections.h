// What fault rules need to remember of connections, in bounded memory: where their PSNs began, and
// how often each PSN was seen.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "net/faults/observed.h"

namespace urxe::net {

// One direction of a queue pair's packets: the BTH names only the destination, so this is all that
// a packet tells.
struct FlowKey {
  Direction direction{};
  bool responses = false;
  wire::IpAddress peer;
  wire::Qpn destination;
  friend auto operator<=>(const FlowKey&, const FlowKey&) = default;
};
[[nodiscard]] FlowKey flow_of(const Observed& packet);

// The first PSN of each flow of requests. Responses have the PSNs of the requests that they answer,
// so they are measured against those: against the flow in the other direction that has such a PSN.
//
// A jump that no loss explains is taken for a new connection of the same queue pairs. The flows
// that were used last are kept, at most kMostFlows.
class FirstPsns {
 public:
  static constexpr std::size_t kMostFlows = 1024;

  // How far the packet's PSN lies behind the first one; nothing for a response to requests that
  // were never seen.
  std::optional<std::uint64_t> offset_of(const Observed& packet);
  [[nodiscard]] std::size_t flows() const { return flows_.size(); }

 private:
  struct Flow {
    std::uint64_t offset = 0;  // of `latest`, the furthest PSN so far
    wire::Psn latest;
    std::uint64_t last_use = 0;
  };
  std::uint64_t note_request(const Observed& packet);
  std::optional<std::uint64_t> offset_of_response(const Observed& packet);
  void make_room();

  std::map<FlowKey, Flow> flows_;
  std::uint64_t uses_ = 0;
};

// How often each PSN of each flow was seen. Keeps the kMostPsns that came first seen last: many
// more than can be in flight at one time.
class Transmissions {
 public:
  static constexpr std::size_t kMostPsns = 65536;

  struct Seen {
    std::uint32_t times = 0;    // this packet included
    std::uint64_t ordinal = 0;  // the PSN is the n-th different one, from 1 on
  };
  Seen note(const Observed& packet);
  [[nodiscard]] std::size_t size() const { return seen_.size(); }

 private:
  struct Key {
    FlowKey flow;
    std::uint32_t psn;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  std::map<Key, Seen> seen_;
  std::deque<Key> oldest_first_;
  std::uint64_t ordinals_ = 0;
};

}  // namespace urxe::net
