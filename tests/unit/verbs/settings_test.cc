#include "verbs/runtime/settings.h"

#include <map>

#include <catch2/catch.hpp>

namespace urxe::verbs {
namespace {

using Catch::Contains;

tl::expected<Settings, std::string> read(const std::map<std::string, std::string>& variables) {
  return read_settings([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST_CASE("nothing is asked for by default") {
  const auto settings = read({});
  REQUIRE(settings);
  CHECK_FALSE(settings->pcap);
  CHECK(settings->faults.empty());
  CHECK(settings->log.empty());
  CHECK_FALSE(settings->single_packets);
  CHECK_FALSE(settings->congestion);
  CHECK_FALSE(settings->uverbs_by_write);
  REQUIRE(read({{"URXE_PCAP", ""}, {"URXE_FAULTS", ""}, {"URXE_FAULT_SEED", ""}}));
}

TEST_CASE("each setting has its variable") {
  const auto settings = read({{"URXE_PCAP", "/tmp/a.pcap"},
                              {"URXE_FAULTS", "drop p=0.5; duplicate nth=3"},
                              {"URXE_FAULT_SEED", "18446744073709551615"},
                              {"URXE_SINGLE_PACKETS", "1"},
                              {"URXE_ECN", "1"},
                              {"URXE_UVERBS_ABI", "write"},
                              {"URXE_LOG", "info:/tmp/log"}});
  REQUIRE(settings);
  CHECK(settings->pcap == "/tmp/a.pcap");
  CHECK(settings->faults.size() == 2);
  CHECK(settings->fault_seed == ~std::uint64_t{0});
  CHECK(settings->single_packets);
  CHECK(settings->congestion);
  CHECK(settings->uverbs_by_write);
  CHECK(settings->log == "info:/tmp/log");
}

TEST_CASE("what cannot be understood is refused with a sentence") {
  CHECK_THAT(read({{"URXE_FAULTS", "drop p=1.5"}}).error(),
             Contains("URXE_FAULTS") && Contains("expected a probability"));
  CHECK_THAT(read({{"URXE_FAULT_SEED", "-1"}}).error(), Contains("URXE_FAULT_SEED is \"-1\""));
  CHECK_THAT(read({{"URXE_FAULT_SEED", "7x"}}).error(), Contains("\"7x\""));
  CHECK_THAT(read({{"URXE_SINGLE_PACKETS", "yes"}}).error(), Contains("expected 0 or 1"));
  CHECK_THAT(read({{"URXE_ECN", "maybe"}}).error(), Contains("URXE_ECN is \"maybe\""));
  CHECK_THAT(read({{"URXE_UVERBS_ABI", "read"}}).error(), Contains("expected write or ioctl"));
}

}  // namespace
}  // namespace urxe::verbs
