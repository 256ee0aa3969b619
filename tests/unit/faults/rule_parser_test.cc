#include "net/faults/rule_parser.h"

#include <catch2/catch.hpp>

#include "tests/support/files.h"

namespace urxe::net {
namespace {

using namespace std::chrono_literals;

Rule one(std::string_view text) {
  const auto rules = parse_rules(text);
  INFO(text);
  if (!rules) FAIL(describe(rules.error(), text));
  REQUIRE(rules->size() == 1);
  return rules->front();
}

TEST_CASE("a rule is an action and conditions") {
  const Rule rule = one(
      "drop dir=tx peer=10.0.0.2 opcode=SEND,READ qpn=0x11 psn=+5 from=1ms until=2s transmission=1 "
      "unique=4 nth=3 every=2 mask=0x5 p=0.25 times=7 bytes=64K");
  CHECK(rule.effect.action == Action::drop);
  CHECK(rule.match.direction == Direction::transmit);
  CHECK(rule.match.peer == wire::IpAddress::from_v4(0x0A000002));
  CHECK(rule.match.opcodes.size() == 2);
  CHECK(rule.match.qpn->first == 0x11);
  CHECK(rule.match.psn->relative);
  CHECK(rule.match.from == 1ms);
  CHECK(rule.match.until == 2s);
  CHECK(rule.match.transmission == 1);
  CHECK(rule.match.unique == 4);
  CHECK(rule.match.nth == 3);
  CHECK(rule.match.every == 2);
  CHECK(rule.match.mask == 5);
  CHECK(rule.match.probability == Approx(0.25));
  CHECK(rule.match.times == 7);
  CHECK(rule.match.bytes == 65536);
}

TEST_CASE("each action has its own settings") {
  CHECK(one("duplicate").effect.copies == 1);
  CHECK(one("duplicate copies=3").effect.copies == 3);
  CHECK(one("delay by=1ms").effect.by == 1ms);
  CHECK(one("delay by=1ms jitter=5us").effect.jitter == 5us);
  CHECK(one("reorder").effect.packets == 1);
  CHECK(one("reorder packets=4 within=2ms").effect.packets == 4);
  CHECK(one("reorder packets=4 within=2ms").effect.within == 2ms);
  CHECK_FALSE(one("corrupt").effect.bit);
  CHECK(one("corrupt bit=0").effect.bit == 0);
  CHECK_FALSE(one("corrupt icrc=keep").effect.repair_icrc);
  CHECK(one("corrupt icrc=repair").effect.repair_icrc);
  CHECK(one("mark dir=rx").match.direction == Direction::receive);
}

TEST_CASE("rules are separated by semicolons and lines, and comments are skipped") {
  const auto rules = parse_rules(
      "# loss\n"
      " drop p=0.01 ; duplicate p=0.01# both ways\n"
      ";;\n"
      "\tcorrupt nth=3\r\n");
  REQUIRE(rules);
  REQUIRE(rules->size() == 3);
  CHECK(rules->at(0).text == "drop p=0.01");
  CHECK(rules->at(1).text == "duplicate p=0.01");
  CHECK(rules->at(2).text == "corrupt nth=3");
  CHECK(parse_rules("")->empty());
  CHECK(parse_rules(" # nothing")->empty());
}

struct Malformed {
  std::string_view text;
  std::size_t position;
  std::string_view expected;  // the beginning of it
};

TEST_CASE("a malformed rule is refused at its position, with what was expected") {
  const Malformed sample = GENERATE(
      Malformed{"dorp p=0.1", 0, "drop, duplicate, delay, reorder, corrupt or mark"},
      Malformed{"drop p=0.1; lose", 12, "drop, duplicate"}, Malformed{"=", 0, "drop, duplicate"},
      Malformed{"drop q=1", 5, "a condition: dir, peer, opcode"},
      Malformed{"drop p", 6, "= and a probability from 0 to 1"},
      Malformed{"drop p 0.1", 6, "= and a probability from 0 to 1"},
      Malformed{"drop p=", 7, "a probability from 0 to 1"},
      Malformed{"drop p=1.5", 7, "a probability from 0 to 1"},
      Malformed{"drop dir=up", 9, "tx or rx"}, Malformed{"drop peer=10.0.0", 10, "an IP address"},
      Malformed{"drop opcode=SENT", 12, "an opcode such as SEND_MIDDLE, or one of SEND, WRITE"},
      Malformed{"drop opcode=SEND,", 12, "an opcode such as SEND_MIDDLE"},
      Malformed{"drop qpn=0x1000000", 9, "a queue pair number"},
      Malformed{"drop psn=+5..8", 9, "a PSN"}, Malformed{"drop from=5", 10, "a time such as"},
      Malformed{"drop nth=0", 9, "a number from 1 on"},
      Malformed{"drop every=0", 11, "a number from 1 on"},
      Malformed{"drop transmission=0", 18, "a number from 1 on"},
      Malformed{"drop times=x", 11, "a number from 1 on"},
      Malformed{"drop bytes=5X", 11, "a size such as"}, Malformed{"drop mask=0xZ", 10, "64 bits"},
      Malformed{"drop copies=2", 5, "a condition"},
      Malformed{"duplicate copies=17", 17, "a number from 1 to 16"},
      Malformed{"delay p=1", 9, "by=TIME"}, Malformed{"delay by=1", 9, "a time such as"},
      Malformed{"reorder packets=0", 16, "a number from 1 to 1000"},
      Malformed{"corrupt bit=-1", 12, "a bit's number"},
      Malformed{"corrupt icrc=fix", 13, "keep or repair"},
      Malformed{"drop p=0.1 p=0.2", 11, "a condition"},
      Malformed{"drop p=0.1\ndrop x=1", 16, "a condition"});
  const auto rules = parse_rules(sample.text);
  INFO(sample.text);
  REQUIRE_FALSE(rules);
  CHECK(rules.error().position == sample.position);
  CHECK(rules.error().expected.substr(0, sample.expected.size()) == sample.expected);
}

TEST_CASE("an error is shown with a mark under its place") {
  const std::string_view text = "drop p=0.1\ndrop p=2\nmark";
  const auto rules = parse_rules(text);
  REQUIRE_FALSE(rules);
  CHECK(describe(rules.error(), text) ==
        "fault rule, character 19: expected a probability from 0 to 1\n"
        "  drop p=2\n"
        "         ^");
}

TEST_CASE("every example of the documentation is a rule") {
  constexpr std::string_view kBegin = "```faults\n";
  const auto text = test::read_file(test::source_dir() / "docs/faults.md").value();
  int examples = 0;
  for (std::size_t at = text.find(kBegin); at != std::string::npos; at = text.find(kBegin, at)) {
    at += kBegin.size();
    const std::string example = text.substr(at, text.find("```", at) - at);
    const auto rules = parse_rules(example);
    INFO((rules ? example : describe(rules.error(), example)));
    CHECK(rules);
    ++examples;
  }
  CHECK(examples >= 9);
}

TEST_CASE("no text makes the parser fail otherwise than with an error") {
  const std::string_view text =
      "corrupt dir=rx opcode=READ_RESPONSE_MIDDLE nth=3; delay by=1.5ms jitter=1us p=0.5 # x";
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const auto rules = parse_rules(text.substr(0, length));
    if (!rules) CHECK(rules.error().position <= length);
  }
  std::string broken(text);
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char c : {'\0', '=', ';', '.', '\xFF', '9'}) {
      broken = text;
      broken[at] = c;
      const auto rules = parse_rules(broken);
      if (!rules) CHECK_FALSE(describe(rules.error(), broken).empty());
    }
  }
}

}  // namespace
}  // namespace urxe::net
