// Decides what happens to each packet: rules, their counters and dice, but no packets of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/faults/connections.h"
#include "net/faults/observed.h"
#include "net/faults/rule.h"
#include "net/random.h"
#include "net/wire/bytes.h"
#include "net/wire/time.h"

namespace urxe::net {

// What becomes of a packet.
struct Verdict {
  bool drop = false;
  std::uint32_t copies = 0;  // besides the packet itself
  std::optional<Duration> delay;
  // Held back until so many others went by, or the time has passed.
  struct HeldBack {
    std::uint32_t packets;
    Duration within;
  };
  std::optional<HeldBack> held_back;
  std::vector<std::uint32_t> flips;  // bits, from the first of the BTH on; none past the ICRC
  bool repair_icrc = false;
  bool mark = false;
};

struct RuleCounters {
  std::uint64_t matches = 0;  // packets that met the conditions on the packet
  std::uint64_t hits = 0;     // of those, the ones that something was done to
  std::uint64_t hit_bytes = 0;
};

// Every rule looks at every packet, in the order of the rules; once one drops it, the rest do not
// see it.
class Injector {
 public:
  Injector(std::vector<Rule> rules, std::uint64_t seed);

  // `bytes`: BTH to pad.
  Verdict judge(Time now, Direction direction, const wire::IpAddress& peer, wire::Bytes bytes);

  [[nodiscard]] const std::vector<Rule>& rules() const { return rules_; }
  [[nodiscard]] const RuleCounters& counters(std::size_t rule) const {
    return states_.at(rule).counters;
  }
  // For people, at the end of a run: a line for each rule.
  [[nodiscard]] std::string summary() const;

 private:
  struct State {
    explicit State(Random stream) : random(stream) {}
    RuleCounters counters;
    Random random;
    Transmissions transmissions;
  };
  // What is known of a packet besides itself.
  struct Context {
    Duration elapsed;
    std::optional<std::uint64_t> psn_offset;
  };
  [[nodiscard]] static bool meets_conditions(const Match& match, const Observed& packet,
                                             const Context& context);
  [[nodiscard]] static bool is_meant_transmission(const Match& match, State& state,
                                                  const Observed& packet);
  [[nodiscard]] static bool is_chosen(const Match& match, const RuleCounters& counters,
                                      Random& random);
  void apply(const Rule& rule, State& state, const Observed& packet, Verdict& verdict);

  std::uint64_t seed_;
  std::vector<Rule> rules_;
  std::vector<State> states_;
  FirstPsns first_psns_;
  bool needs_first_psns_ = false;
  std::optional<Time> started_;
};

}  // namespace urxe::net
