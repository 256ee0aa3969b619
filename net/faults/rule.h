// What a fault rule says: which packets, and what is done to them (docs/faults.md).
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/wire/address.h"
#include "net/wire/numbers.h"
#include "net/wire/syndrome.h"
#include "net/wire/time.h"

namespace urxe::net {

enum class Direction : std::uint8_t { transmit, receive };

// Opcodes, and for acknowledgements what they say.
struct OpcodeSet {
  std::bitset<256> opcodes;
  std::optional<wire::Syndrome::Kind> syndrome;
};

// Both ends included.
struct NumberRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  [[nodiscard]] bool contains(std::uint64_t number) const {
    return first <= number && number <= last;
  }
};

// PSNs, or, if `relative`, how far they lie behind the first PSN of the connection.
struct PsnRange {
  NumberRange range;
  bool relative = false;
};

// Which packets a rule means. What is not given does not matter. First come the conditions on the
// packet itself; packets that meet them are the rule's matches, which are numbered from 1 on. The
// rest chooses among the matches.
struct Match {
  std::optional<Direction> direction;
  std::optional<wire::IpAddress> peer;
  std::vector<OpcodeSet> opcodes;  // one of them
  std::optional<NumberRange> qpn;  // the destination's
  std::optional<PsnRange> psn;
  std::optional<Duration> from;               // since the first packet
  std::optional<Duration> until;              // likewise
  std::optional<std::uint32_t> transmission;  // the k-th time that this PSN is seen
  std::optional<std::uint64_t> unique;        // the n-th PSN that is seen, each time

  std::optional<std::uint64_t> nth;    // that match only
  std::optional<std::uint64_t> every;  // every n-th match
  std::optional<std::uint64_t> mask;   // bit i: match i + 1; none after the 64th
  std::optional<double> probability;
  std::optional<std::uint64_t> times;  // not more often than this
  std::optional<std::uint64_t> bytes;  // not once so many bytes were hit
};

enum class Action : std::uint8_t { drop, duplicate, delay, reorder, corrupt, mark };

struct Effect {
  Action action = Action::drop;
  std::uint32_t copies = 1;                         // duplicate: how many more
  Duration by{};                                    // delay
  Duration jitter{};                                // delay: up to this much more
  std::uint32_t packets = 1;                        // reorder: that many later ones overtake it ...
  Duration within = std::chrono::milliseconds(10);  // ... but no longer than this
  std::optional<std::uint32_t> bit{};               // corrupt: which; else any
  bool repair_icrc = false;  // corrupt: the packet gets a right ICRC all the same
};

struct Rule {
  Effect effect;
  Match match;
  std::string text;  // as it was typed
};

}  // namespace urxe::net
