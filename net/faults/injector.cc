#include "net/faults/injector.h"

#include <algorithm>
#include <utility>

namespace urxe::net {
namespace {

bool has_opcode(const std::vector<OpcodeSet>& sets, const Observed& packet) {
  return std::any_of(sets.begin(), sets.end(), [&packet](const OpcodeSet& set) {
    if (!set.opcodes.test(packet.bth.opcode)) return false;
    return !set.syndrome || (packet.syndrome && packet.syndrome->kind() == *set.syndrome);
  });
}

bool has_psn(const PsnRange& psns, const Observed& packet,
             const std::optional<std::uint64_t>& offset) {
  if (!psns.relative) return psns.range.contains(packet.bth.psn.value());
  return offset && psns.range.contains(*offset);
}

// A condition that was not given is met.
template <typename T, typename Meets>
bool met(const std::optional<T>& condition, Meets meets) {
  return !condition || meets(*condition);
}

}  // namespace

Injector::Injector(std::vector<Rule> rules, std::uint64_t seed)
    : seed_(seed), rules_(std::move(rules)) {
  const Random random(seed);
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    states_.emplace_back(random.fork(i));
    const auto& psn = rules_[i].match.psn;
    needs_first_psns_ = needs_first_psns_ || (psn && psn->relative);
  }
}

bool Injector::meets_conditions(const Match& match, const Observed& packet,
                                const Context& context) {
  return met(match.direction, [&](Direction wanted) { return wanted == packet.direction; }) &&
         met(match.peer, [&](const wire::IpAddress& peer) { return peer == packet.peer; }) &&
         (match.opcodes.empty() || has_opcode(match.opcodes, packet)) &&
         met(match.qpn,
             [&](NumberRange range) { return range.contains(packet.bth.destination.value()); }) &&
         met(match.psn,
             [&](const PsnRange& psns) { return has_psn(psns, packet, context.psn_offset); }) &&
         met(match.from, [&](Duration from) { return context.elapsed >= from; }) &&
         met(match.until, [&](Duration until) { return context.elapsed < until; });
}

bool Injector::is_meant_transmission(const Match& match, State& state, const Observed& packet) {
  if (!match.transmission && !match.unique) return true;
  const Transmissions::Seen seen = state.transmissions.note(packet);
  return met(match.transmission, [&](std::uint32_t k) { return seen.times == k; }) &&
         met(match.unique, [&](std::uint64_t n) { return seen.ordinal == n; });
}

bool Injector::is_chosen(const Match& match, const RuleCounters& counters, Random& random) {
  const std::uint64_t number = counters.matches;  // of this match, from 1 on
  return met(match.nth, [&](std::uint64_t nth) { return number == nth; }) &&
         met(match.every, [&](std::uint64_t every) { return number % every == 0; }) &&
         met(match.mask,
             [&](std::uint64_t mask) { return number <= 64 && (mask >> (number - 1) & 1) != 0; }) &&
         met(match.times, [&](std::uint64_t times) { return counters.hits < times; }) &&
         met(match.bytes, [&](std::uint64_t bytes) { return counters.hit_bytes < bytes; }) &&
         met(match.probability, [&](double p) { return random.chance(p); });
}

void Injector::apply(const Rule& rule, State& state, const Observed& packet, Verdict& verdict) {
  const Effect& effect = rule.effect;
  const auto bits = static_cast<std::uint32_t>(8 * packet.size);
  switch (effect.action) {
    case Action::drop:
      verdict.drop = true;
      break;
    case Action::duplicate:
      verdict.copies += effect.copies;
      break;
    case Action::delay: {
      const auto jitter = static_cast<std::uint64_t>(effect.jitter.count());
      const Duration extra(jitter == 0 ? 0 : state.random.between(0, jitter));
      verdict.delay = verdict.delay.value_or(Duration{}) + effect.by + extra;
      break;
    }
    case Action::reorder:
      verdict.held_back = {effect.packets, effect.within};
      break;
    case Action::corrupt: {
      // What gets a right ICRC again is damaged before it: at the sender, or in a switch.
      const std::uint32_t reach = effect.repair_icrc ? bits - 8 * wire::kIcrcSize : bits;
      const auto any = static_cast<std::uint32_t>(state.random.below(reach));
      verdict.flips.push_back(effect.bit ? *effect.bit % reach : any);
      verdict.repair_icrc = verdict.repair_icrc || effect.repair_icrc;
      break;
    }
    case Action::mark:
      verdict.mark = true;
      break;
  }
}

Verdict Injector::judge(Time now, Direction direction, const wire::IpAddress& peer,
                        wire::Bytes bytes) {
  Verdict verdict;
  const auto packet = observe(direction, peer, bytes);
  if (!packet) return verdict;
  if (!started_) started_ = now;
  Context context{.elapsed = now - *started_, .psn_offset = std::nullopt};
  if (needs_first_psns_) context.psn_offset = first_psns_.offset_of(*packet);
  for (std::size_t i = 0; i < rules_.size() && !verdict.drop; ++i) {
    const Match& match = rules_[i].match;
    State& state = states_[i];
    if (!meets_conditions(match, *packet, context)) continue;
    if (!is_meant_transmission(match, state, *packet)) continue;
    ++state.counters.matches;
    if (!is_chosen(match, state.counters, state.random)) continue;
    ++state.counters.hits;
    state.counters.hit_bytes += packet->size;
    apply(rules_[i], state, *packet, verdict);
  }
  return verdict;
}

std::string Injector::summary() const {
  std::string text = "faults, seed " + std::to_string(seed_) + ":";
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const RuleCounters& counters = states_[i].counters;
    text += "\n  " + rules_[i].text + ": hit " + std::to_string(counters.hits) + " of " +
            std::to_string(counters.matches) + " matching packets";
  }
  return text;
}

}  // namespace urxe::net
