#include "tests/support/transition_rules.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <stdexcept>

#include "tests/support/files.h"

namespace urxe::test {

using namespace emulator;

namespace {

constexpr std::array<std::string_view, kQpStates> kStateNames{"RESET", "INIT", "RTR", "RTS",
                                                              "SQD",   "SQE",  "ERR"};
const std::map<std::string_view, QpType> kTypes{
    {"RC:", QpType::rc}, {"UC:", QpType::uc}, {"UD:", QpType::ud}, {"GSI:", QpType::gsi}};

QpState state_of(const std::string& name) {
  const auto* const found = std::find(kStateNames.begin(), kStateNames.end(), name);
  if (found == kStateNames.end()) throw std::runtime_error(name + " is not a state");
  return static_cast<QpState>(found - kStateNames.begin());
}

AttributeMask mask_of(const std::string& names) {
  AttributeMask mask{};
  std::istringstream words(names);
  for (std::string word; words >> word;) {
    if (word == "-") continue;
    const auto& known = named_attributes();
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const NamedAttribute& one) { return one.name == word; });
    if (found == known.end()) throw std::runtime_error(word + " is not an attribute");
    mask |= found->bit;
  }
  return mask;
}

TransitionRule rule_of(const std::string& line) {
  std::istringstream words(line);
  std::string from;
  std::string to;
  std::string type;
  words >> from >> to >> type;
  TransitionRule rule{.from = state_of(from), .to = state_of(to), .type = kTypes.at(type)};
  rule.line = line;
  const std::size_t must = line.find("must ");
  rule.allowed = must != std::string::npos;
  if (rule.allowed) {
    const std::size_t may = line.find("; may ");
    rule.must = mask_of(line.substr(must + 5, may - must - 5));
    rule.may = mask_of(line.substr(may + 6));
  }
  return rule;
}

}  // namespace

std::string_view state_name(QpState state) {
  return kStateNames.at(static_cast<std::size_t>(state));
}

const std::vector<NamedAttribute>& named_attributes() {
  static const std::vector<NamedAttribute> kNames{
      {"CUR_STATE", kAttrCurrentState},
      {"EN_SQD_ASYNC_NOTIFY", kAttrDrainNotify},
      {"ACCESS_FLAGS", kAttrAccess},
      {"PKEY_INDEX", kAttrPKeyIndex},
      {"PORT", kAttrPort},
      {"QKEY", kAttrQKey},
      {"AV", kAttrAddressVector},
      {"PATH_MTU", kAttrPathMtu},
      {"TIMEOUT", kAttrTimeout},
      {"RETRY_CNT", kAttrRetryCount},
      {"RNR_RETRY", kAttrRnrRetry},
      {"RQ_PSN", kAttrReceivePsn},
      {"MAX_QP_RD_ATOMIC", kAttrMaxReadAtomic},
      {"ALT_PATH", kAttrAlternatePath},
      {"MIN_RNR_TIMER", kAttrMinRnrTimer},
      {"SQ_PSN", kAttrSendPsn},
      {"MAX_DEST_RD_ATOMIC", kAttrMaxDestReadAtomic},
      {"PATH_MIG_STATE", kAttrMigrationState},
      {"CAP", kAttrCapabilities},
      {"DEST_QPN", kAttrDestinationQpn},
  };
  return kNames;
}

std::vector<TransitionRule> transition_rules() {
  std::vector<TransitionRule> rules;
  std::istringstream file(read_file(source_dir() / "tests/golden/qp_transitions.txt").value());
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') rules.push_back(rule_of(line));
  }
  return rules;
}

}  // namespace urxe::test
