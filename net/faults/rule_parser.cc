#include "net/faults/rule_parser.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "net/faults/opcode_names.h"
#include "net/faults/rule_values.h"

namespace urxe::net {
namespace {

constexpr std::uint32_t kMostCopies = 16;
constexpr std::uint32_t kMostOvertaking = 1000;

template <typename T, typename U>
bool assign(T& target, const std::optional<U>& value) {
  if (value) target = static_cast<T>(*value);
  return value.has_value();
}

template <typename T, typename U>
bool assign(std::optional<T>& target, const std::optional<U>& value) {
  if (value) target = static_cast<T>(*value);
  return value.has_value();
}

// A number from 1 to `limit`.
std::optional<std::uint64_t> count(std::string_view text, std::uint64_t limit = UINT64_MAX) {
  const auto number = parse_number(text);
  return number && (*number == 0 || *number > limit) ? std::nullopt : number;
}

bool set_direction(Rule& rule, std::string_view text) {
  if (text == "tx") rule.match.direction = Direction::transmit;
  if (text == "rx") rule.match.direction = Direction::receive;
  return text == "tx" || text == "rx";
}

bool set_opcodes(Rule& rule, std::string_view text) {
  while (true) {
    const std::size_t comma = text.find(',');
    const auto set = find_opcodes(text.substr(0, comma));
    if (!set) return false;
    rule.match.opcodes.push_back(*set);
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

bool set_icrc(Rule& rule, std::string_view text) {
  rule.effect.repair_icrc = text == "repair";
  return text == "repair" || text == "keep";
}

bool set_jitter(Rule& rule, std::string_view text) {
  return assign(rule.effect.jitter, parse_duration(text));
}

struct Key {
  std::string_view name;
  std::string_view expected;
  bool (*set)(Rule& rule, std::string_view text);
  std::optional<Action> only_for{};
};

constexpr std::string_view kCount = "a number from 1 on";
constexpr std::string_view kDuration = "a time such as 250us, 1.5ms or 2s";

constexpr std::array kKeys{
    Key{"dir", "tx or rx", set_direction},
    Key{"peer", "an IP address",
        [](Rule& rule, std::string_view text) {
          return assign(rule.match.peer, wire::IpAddress::parse(std::string(text)));
        }},
    Key{"opcode", "", set_opcodes},
    Key{"qpn", "a queue pair number such as 0x11, or a range such as 0x11..0x20",
        [](Rule& rule, std::string_view text) {
          return assign(rule.match.qpn, parse_range(text, wire::Qpn::kMask));
        }},
    Key{"psn", "a PSN such as 0x1234, or +5 (from the connection's first), or a range 5..8, +5..+8",
        [](Rule& rule, std::string_view text) { return assign(rule.match.psn, parse_psns(text)); }},
    Key{"from", kDuration,
        [](Rule& rule, std::string_view text) {
          return assign(rule.match.from, parse_duration(text));
        }},
    Key{"until", kDuration,
        [](Rule& rule, std::string_view text) {
          return assign(rule.match.until, parse_duration(text));
        }},
    Key{"transmission", kCount,
        [](Rule& rule, std::string_view text) {
          return assign(rule.match.transmission, count(text, UINT32_MAX));
        }},
    Key{"unique", kCount,
        [](Rule& rule, std::string_view text) { return assign(rule.match.unique, count(text)); }},
    Key{"nth", kCount,
        [](Rule& rule, std::string_view text) { return assign(rule.match.nth, count(text)); }},
    Key{"every", kCount,
        [](Rule& rule, std::string_view text) { return assign(rule.match.every, count(text)); }},
    Key{"mask", "64 bits such as 0x5 (matches 1 and 3)",
        [](Rule& rule, std::string_view text) {
          return assign(rule.match.mask, parse_number(text));
        }},
    Key{"p", "a probability from 0 to 1",
        [](Rule& rule, std::string_view text) {
          return assign(rule.match.probability, parse_probability(text));
        }},
    Key{"times", kCount,
        [](Rule& rule, std::string_view text) { return assign(rule.match.times, count(text)); }},
    Key{"bytes", "a size such as 1500, 64K or 10M",
        [](Rule& rule, std::string_view text) {
          return assign(rule.match.bytes, parse_size(text));
        }},
    Key{"copies", "a number from 1 to 16",
        [](Rule& rule, std::string_view text) {
          return assign(rule.effect.copies, count(text, kMostCopies));
        },
        Action::duplicate},
    Key{"by", kDuration,
        [](Rule& rule, std::string_view text) {
          return assign(rule.effect.by, parse_duration(text));
        },
        Action::delay},
    Key{"jitter", kDuration, set_jitter, Action::delay},
    Key{"packets", "a number from 1 to 1000",
        [](Rule& rule, std::string_view text) {
          return assign(rule.effect.packets, count(text, kMostOvertaking));
        },
        Action::reorder},
    Key{"within", kDuration,
        [](Rule& rule, std::string_view text) {
          return assign(rule.effect.within, parse_duration(text));
        },
        Action::reorder},
    Key{"bit", "a bit's number, from 0 on",
        [](Rule& rule, std::string_view text) {
          return assign(rule.effect.bit, parse_range(text, UINT32_MAX)
                                             ? parse_number(text)
                                             : std::optional<std::uint64_t>{});
        },
        Action::corrupt},
    Key{"icrc", "keep or repair", set_icrc, Action::corrupt},
};

struct ActionName {
  std::string_view name;
  Action action;
};
constexpr std::array kActions{
    ActionName{"drop", Action::drop},       ActionName{"duplicate", Action::duplicate},
    ActionName{"delay", Action::delay},     ActionName{"reorder", Action::reorder},
    ActionName{"corrupt", Action::corrupt}, ActionName{"mark", Action::mark},
};

bool applies(const Key& key, Action action) { return !key.only_for || *key.only_for == action; }

// "a, b or c" of what `use` lets through.
template <typename List, typename Use>
std::string alternatives(const List& list, Use use) {
  std::vector<std::string_view> names;
  for (const auto& entry : list) {
    if (use(entry)) names.push_back(entry.name);
  }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

std::string expected_of(const Key& key) {
  if (key.name != "opcode") return std::string(key.expected);
  return "an opcode such as SEND_MIDDLE, or one of " + opcode_class_names();
}

using Parsed = tl::expected<void, RuleError>;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  tl::expected<std::vector<Rule>, RuleError> rules() {
    std::vector<Rule> rules;
    while (skip_separators(), !at_end()) {
      auto rule = parse_rule();
      if (!rule) return tl::unexpected(rule.error());
      rules.push_back(std::move(*rule));
    }
    return rules;
  }

 private:
  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] bool ends_rule() const {
    return at_end() || text_[at_] == ';' || text_[at_] == '\n' || text_[at_] == '#';
  }
  void skip_blanks() {
    while (!at_end() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
  }
  void skip_separators() {
    while (skip_blanks(), ends_rule() && !at_end()) {
      at_ = text_[at_] == '#' ? std::min(text_.find('\n', at_), text_.size()) : at_ + 1;
    }
  }
  template <typename Belongs>
  std::string_view take_while(Belongs belongs) {
    const std::size_t start = at_;
    while (!at_end() && belongs(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }
  std::string_view take_word() {
    return take_while([](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  }
  std::string_view take_value() {
    return take_while([](unsigned char c) { return std::isspace(c) == 0 && c != ';' && c != '#'; });
  }
  static tl::unexpected<RuleError> expected(std::size_t position, std::string what) {
    return tl::unexpected(RuleError{position, std::move(what)});
  }

  tl::expected<Rule, RuleError> parse_rule() {
    const std::size_t start = at_;
    const std::string_view word = take_word();
    const auto* const action =
        std::find_if(kActions.begin(), kActions.end(),
                     [&](const ActionName& candidate) { return candidate.name == word; });
    if (action == kActions.end()) {
      return expected(start, alternatives(kActions, [](const auto&) { return true; }));
    }
    Rule rule;
    rule.effect.action = action->action;
    std::set<std::string_view> seen;
    while (skip_blanks(), !ends_rule()) {
      if (auto done = parse_pair(rule, seen); !done) return tl::unexpected(done.error());
    }
    if (action->action == Action::delay && !seen.contains("by")) {
      return expected(at_, "by=TIME, which delay needs");
    }
    rule.text = text_.substr(start, at_ - start);
    rule.text.erase(rule.text.find_last_not_of(" \t\r") + 1);
    return rule;
  }

  Parsed parse_pair(Rule& rule, std::set<std::string_view>& seen) {
    const std::size_t start = at_;
    const std::string_view name = take_word();
    const auto* const key = std::find_if(
        kKeys.begin(), kKeys.end(), [&](const Key& candidate) { return candidate.name == name; });
    const auto usable = [&](const Key& candidate) {
      return applies(candidate, rule.effect.action) && !seen.contains(candidate.name);
    };
    if (key == kKeys.end() || !usable(*key)) {
      return expected(start, "a condition: " + alternatives(kKeys, usable));
    }
    if (at_end() || text_[at_] != '=') {
      return expected(at_, "= and " + expected_of(*key));
    }
    ++at_;
    const std::size_t value_start = at_;
    if (!key->set(rule, take_value())) return expected(value_start, expected_of(*key));
    seen.insert(key->name);
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string describe(const RuleError& error, std::string_view text) {
  const std::size_t position = std::min(error.position, text.size());
  const std::size_t line_start =
      position == 0 ? 0 : text.rfind('\n', position - 1) + 1;  // npos + 1 is 0
  const std::size_t line_end = std::min(text.find('\n', position), text.size());
  std::string sentence = "fault rule, character " + std::to_string(position + 1) + ": expected ";
  sentence += error.expected;
  sentence += "\n  ";
  sentence += text.substr(line_start, line_end - line_start);
  sentence += "\n  " + std::string(position - line_start, ' ') + "^";
  return sentence;
}

tl::expected<std::vector<Rule>, RuleError> parse_rules(std::string_view text) {
  return Parser(text).rules();
}

}  // namespace urxe::net
