#include <array>
#include <map>
#include <sstream>

#include <catch2/catch.hpp>

#include "emulator/qp_attributes.h"
#include "tests/support/files.h"

namespace urxe::test {
namespace {

using namespace emulator;

const std::map<std::string, AttributeMask>& attribute_names() {
  static const std::map<std::string, AttributeMask> kNames{
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
      {"DEST_QPN", kAttrDestinationQpn},
  };
  return kNames;
}

constexpr std::array kStateNames{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
const std::map<std::string, QpType> kTypes{
    {"RC", QpType::rc}, {"UC", QpType::uc}, {"UD", QpType::ud}, {"GSI", QpType::gsi}};

QpState state_of(const std::string& name) {
  const auto* const found = std::find(kStateNames.begin(), kStateNames.end(), name);
  REQUIRE(found != kStateNames.end());
  return static_cast<QpState>(found - kStateNames.begin());
}

AttributeMask mask_of(const std::string& names) {
  AttributeMask mask{};
  std::istringstream words(names);
  for (std::string word; words >> word;) {
    if (word != "-") mask |= attribute_names().at(word);
  }
  return mask;
}

struct Golden {
  QpState from;
  QpState to;
  QpType type;
  bool allowed = false;
  AttributeMask must;
  AttributeMask may;
  std::string line;
};

std::vector<Golden> golden() {
  std::vector<Golden> rows;
  std::istringstream file(read_file(source_dir() / "tests/golden/qp_transitions.txt").value());
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string from;
    std::string to;
    std::string type;
    words >> from >> to >> type;
    type.pop_back();  // the colon
    Golden row{.from = state_of(from), .to = state_of(to), .type = kTypes.at(type), .line = line};
    const std::size_t must = line.find("must ");
    row.allowed = must != std::string::npos;
    if (row.allowed) {
      const std::size_t may = line.find("; may ");
      row.must = mask_of(line.substr(must + 5, may - must - 5));
      row.may = mask_of(line.substr(may + 6));
    }
    rows.push_back(row);
  }
  return rows;
}

TEST_CASE("state transitions and their attributes are those of Linux's ib_core, all of them") {
  const auto rows = golden();
  REQUIRE(rows.size() == std::size_t{kQpStates} * kQpStates * kTypes.size());
  for (const Golden& row : rows) {
    INFO(row.line);
    const auto check = [&row](AttributeMask given) {
      return check_transition(row.from, row.to, row.type, given | kAttrState);
    };
    CHECK(check({}).exists == row.allowed);
    if (!row.allowed) continue;
    CHECK(check(row.must).ok());
    CHECK(check(row.must | row.may).ok());
    CHECK(check({}).missing == row.must);
    for (std::uint32_t bit = 0; bit < 32; ++bit) {
      const AttributeMask one{1U << bit};
      if (one == kAttrState) continue;
      const bool known = (row.must | row.may).has(one);
      CHECK(check(row.must | one).ok() == known);
      CHECK(check(row.must | row.may.without(one)).ok());
      if (row.must.has(one)) CHECK(check(row.must.without(one)).missing == one);
    }
  }
}

}  // namespace
}  // namespace urxe::test
