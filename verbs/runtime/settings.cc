#include "verbs/runtime/settings.h"

#include <charconv>
#include <string_view>

#include <fmt/core.h>

#include "net/faults/rule_parser.h"

namespace urxe::verbs {
namespace {

tl::expected<std::uint64_t, std::string> number(const char* name, std::string_view text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) {
    return tl::unexpected(
        fmt::format("{} is \"{}\": expected a number from 0 to 2^64 - 1", name, text));
  }
  return value;
}

tl::expected<bool, std::string> flag(const char* name, std::string_view text) {
  if (text.empty() || text == "0") return false;
  if (text == "1") return true;
  return tl::unexpected(fmt::format("{} is \"{}\": expected 0 or 1", name, text));
}

}  // namespace

tl::expected<Settings, std::string> read_settings(
    const std::function<const char*(const char*)>& variable) {
  const auto text_of = [&](const char* name) {
    const char* text = variable(name);
    return std::string_view(text != nullptr ? text : "");
  };
  Settings settings;
  if (const auto pcap = text_of("URXE_PCAP"); !pcap.empty()) settings.pcap = pcap;
  settings.log = text_of("URXE_LOG");
  const std::string_view rules = text_of("URXE_FAULTS");
  auto faults = net::parse_rules(rules);
  if (!faults) return tl::unexpected("URXE_FAULTS: " + net::describe(faults.error(), rules));
  settings.faults = *std::move(faults);
  if (const auto seed = text_of("URXE_FAULT_SEED"); !seed.empty()) {
    const auto value = number("URXE_FAULT_SEED", seed);
    if (!value) return tl::unexpected(value.error());
    settings.fault_seed = *value;
  }
  const auto single = flag("URXE_SINGLE_PACKETS", text_of("URXE_SINGLE_PACKETS"));
  if (!single) return tl::unexpected(single.error());
  settings.single_packets = *single;
  const auto congestion = flag("URXE_ECN", text_of("URXE_ECN"));
  if (!congestion) return tl::unexpected(congestion.error());
  settings.congestion = *congestion;
  const std::string_view abi = text_of("URXE_UVERBS_ABI");
  if (!abi.empty() && abi != "write" && abi != "ioctl") {
    return tl::unexpected(fmt::format("URXE_UVERBS_ABI is \"{}\": expected write or ioctl", abi));
  }
  settings.uverbs_by_write = abi == "write";
  return settings;
}

}  // namespace urxe::verbs
