#include "net/faults/opcode_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "net/wire/opcode.h"

namespace urxe::net {
namespace {

using wire::OpcodeInfo;
using wire::Operation;

struct OpcodeClass {
  std::string_view name;
  bool (*contains)(const OpcodeInfo& info);
  std::optional<wire::Syndrome::Kind> syndrome{};
};

bool is_acknowledge(const OpcodeInfo& info) { return info.operation == Operation::acknowledge; }

constexpr std::array kClasses{
    OpcodeClass{"SEND", [](const OpcodeInfo& info) { return info.operation == Operation::send; }},
    OpcodeClass{"WRITE",
                [](const OpcodeInfo& info) { return info.operation == Operation::rdma_write; }},
    OpcodeClass{
        "READ",
        [](const OpcodeInfo& info) { return info.operation == Operation::rdma_read_request; }},
    OpcodeClass{
        "READ_RESPONSE",
        [](const OpcodeInfo& info) { return info.operation == Operation::rdma_read_response; }},
    OpcodeClass{"ATOMIC", [](const OpcodeInfo& info) { return info.is_atomic(); }},
    OpcodeClass{"ACK", is_acknowledge, wire::Syndrome::Kind::ack},
    OpcodeClass{"NAK", is_acknowledge, wire::Syndrome::Kind::nak},
    OpcodeClass{"RNR", is_acknowledge, wire::Syndrome::Kind::rnr_nak},
    OpcodeClass{"REQUEST",
                [](const OpcodeInfo& info) {
                  return !info.is_response() && info.service != wire::Service::cnp;
                }},
    OpcodeClass{"RESPONSE", [](const OpcodeInfo& info) { return info.is_response(); }},
};

constexpr std::string_view kServicePrefixes[] = {"RC_", "UC_", "UD_"};
constexpr std::string_view kRdma = "RDMA_";

std::string upper_case(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return upper;
}

// "RC RDMA_READ_REQUEST" becomes READ_REQUEST, and so does what people type for it.
std::string_view bare_name(std::string_view name, bool with_service) {
  if (with_service && name.find(' ') != std::string_view::npos) {
    name.remove_prefix(name.find(' ') + 1);
  }
  if (name.starts_with(kRdma)) name.remove_prefix(kRdma.size());
  return name;
}

std::optional<OpcodeSet> find_number(std::string_view text) {
  std::uint8_t number = 0;
  if (!text.starts_with("0X")) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), number, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  OpcodeSet set;
  set.opcodes.set(number);
  return set;
}

// Which services a name means, and the name without the service's.
struct ServiceAndName {
  std::optional<wire::Service> service;
  std::string_view name;
};

ServiceAndName split(std::string_view name) {
  constexpr wire::Service kServices[] = {wire::Service::rc, wire::Service::uc, wire::Service::ud};
  for (std::size_t i = 0; i < std::size(kServicePrefixes); ++i) {
    if (!name.starts_with(kServicePrefixes[i])) continue;
    return {kServices[i], name.substr(kServicePrefixes[i].size())};
  }
  return {std::nullopt, name};
}

}  // namespace

std::optional<OpcodeSet> find_opcodes(std::string_view typed) {
  const std::string upper = upper_case(typed);
  if (auto number = find_number(upper)) return number;
  const auto [service, name] = split(upper);
  const std::string_view bare = bare_name(name, false);
  const auto* const group =
      std::find_if(kClasses.begin(), kClasses.end(),
                   [&](const OpcodeClass& candidate) { return candidate.name == bare; });
  OpcodeSet set;
  if (group != kClasses.end()) set.syndrome = group->syndrome;
  for (const OpcodeInfo& info : wire::all_opcodes()) {
    if (service && info.service != *service) continue;
    const bool meant =
        group != kClasses.end() ? group->contains(info) : bare_name(info.name, true) == bare;
    if (meant) set.opcodes.set(static_cast<std::uint8_t>(info.opcode));
  }
  if (set.opcodes.none()) return std::nullopt;
  return set;
}

std::string opcode_class_names() {
  std::string names;
  for (const OpcodeClass& group : kClasses) {
    if (!names.empty()) names += ", ";
    names += group.name;
  }
  return names;
}

}  // namespace urxe::net
