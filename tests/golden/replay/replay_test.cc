// Captured conversations with our engine in one side's place: as responder it hears the captured
// requests, and its answers are compared with the captured ones; as requester it posts what the
// captured side posted, and hears the captured answers.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/golden/replay/requester_replay.h"
#include "tests/golden/replay/responder_replay.h"
#include "tests/support/files.h"
#include "tests/support/skip.h"

namespace urxe::replay {
namespace {

using namespace emulator;

// A difference that stays, and why.
struct Explained {
  std::string difference;
  std::string reason;
};

struct Capture {
  std::string file;
  std::size_t conversations = 0;  // how many are in it
  std::size_t answers = 0;        // in all
  ResponderSetup setup{};
  std::uint32_t message_packets = 0;  // the sniffer lost packets: how many each message has
  bool reordered = false;             // by a mirror
  bool lossy = false;  // requests were lost before the capture: only our responder sees the same
  std::vector<Explained> explained{};
};

// Fails for what is not explained; remembers what is.
void check(const Differences& found, const std::vector<Explained>& explained,
           std::set<std::string>& seen) {
  for (const auto& [difference, times] : found) {
    const bool known = std::any_of(explained.begin(), explained.end(),
                                   [&](const Explained& e) { return e.difference == difference; });
    if (!known) FAIL_CHECK(difference << ", " << times << " times");
    seen.insert(difference);
  }
}

void replay(const std::filesystem::path& path, const Capture& capture) {
  INFO(path);
  auto frames = test::read_pcap(path);
  REQUIRE(frames);
  auto conversations = conversations_of(*frames);
  std::size_t answers = 0;
  std::set<std::string> seen;
  for (Conversation& conversation : conversations) {
    INFO(conversation.name());
    if (capture.reordered) sort_by_psn(conversation);
    if (capture.message_packets > 0) fill_gaps(conversation, capture.message_packets);
    answers += conversation.answers();
    check(replay_to_responder(conversation, capture.setup), capture.explained, seen);
    if (!capture.lossy) check(replay_to_requester(conversation), capture.explained, seen);
  }
  CHECK(conversations.size() == capture.conversations);
  CHECK(answers == capture.answers);
  for (const Explained& explained : capture.explained) {
    INFO(explained.difference << " is gone: " << explained.reason);
    CHECK(seen.contains(explained.difference));
  }
}

bool skipped_without(const std::filesystem::path& path) {
  if (std::filesystem::exists(path)) return false;
  test::skip(path.string() + " is not there; URXE_SHARED says where captures are");
  return true;
}

// Credits are not compared: a NIC's count its receive requests, ours say "no limit".
const std::vector<Explained> kAfterRnr{
    {"they alone: RC ACKNOWLEDGE, NAK 0",
     "rxe says of what follows a request that it was not ready for that it is out of sequence; we, "
     "as the specification asks, say nothing until the request comes again"}};
const std::vector<Explained> kTooLong{
    {"they alone: RC ACKNOWLEDGE, NAK 3", "rxe's way to refuse a message that exceeds the receive"},
    {"we alone: RC ACKNOWLEDGE, NAK 1",
     "ours, as the specification and NICs have it: invalid request"}};
const std::vector<Explained> kUnasked{
    {"they alone: RC ACKNOWLEDGE", "a NIC acknowledged one SEND_FIRST that did not ask for it"}};

TEST_CASE("in a NIC's place we answer and ask as the NIC did") {
  const Capture capture = GENERATE(values<Capture>({
      {.file = "nic-huawei-send-imm.pcap",
       .conversations = 2,
       .answers = 37,
       .explained = kUnasked},
      {.file = "nic-mellanox-send-bw.pcap", .conversations = 1, .answers = 5},
      {.file = "nic-mellanox-send-segmented-first200.pcap",
       .conversations = 31,
       .answers = 60,
       .message_packets = 4},
      {.file = "nic-mellanox-uc-send.pcap", .conversations = 2},
      {.file = "nic-mellanox-write-mirrored-bad-icrc.pcap",
       .conversations = 1,
       .answers = 4,
       .setup = {.starts_late = true},
       .reordered = true},
  }));
  const auto path = test::shared_dir() / "captures" / capture.file;
  if (!skipped_without(path)) replay(path, capture);
}

TEST_CASE("in rxe's place we answer and ask as rxe did") {
  const Capture capture = GENERATE(values<Capture>({
      {.file = "wire_rc.pcap", .conversations = 1, .answers = 62},
      {.file = "wire_uc.pcap", .conversations = 1},
      {.file = "wire_ud.pcap", .conversations = 1},
      {.file = "wire_inv.pcap", .conversations = 1, .answers = 3},
      {.file = "wire_rnr.pcap", .conversations = 1, .answers = 20, .explained = kAfterRnr},
      {.file = "wire_badrkey.pcap", .conversations = 1, .answers = 1},
      {.file = "wire_badread.pcap", .conversations = 1, .answers = 1},
      {.file = "wire_oob.pcap",
       .conversations = 1,
       .answers = 1,
       .setup = {.bytes_in_bounds = 100}},
      {.file = "wire_toolong.pcap",
       .conversations = 1,
       .answers = 1,
       .setup = {.receive_length = 100},
       .explained = kTooLong},
      {.file = "wire_noaccess.pcap",
       .conversations = 1,
       .answers = 1,
       .setup = {.access = kLocalWrite | kRemoteRead}},
      {.file = "wire_noatomic.pcap",
       .conversations = 1,
       .answers = 1,
       .setup = {.access = kLocalWrite | kRemoteRead | kRemoteWrite}},
      {.file = "rc_pingpong_ipv6.pcap",
       .conversations = 2,
       .answers = 21,
       .setup = {.ends_early = true}},
      {.file = "rping.pcap", .conversations = 2, .answers = 30, .setup = {.program_writes = true}},
      {.file = "ucmatose.pcap", .conversations = 4, .answers = 12},
  }));
  replay(test::source_dir() / "tests/golden/captures" / capture.file, capture);
}

TEST_CASE("in rxe's place we answer and ask as rxe did, in captures outside of the tree") {
  const Capture capture = GENERATE(values<Capture>({
      {.file = "linux-rxe-nvmeof-read.pcap",
       .conversations = 6,
       .answers = 26,
       .setup = {.starts_late = true}},
      {.file = "linux-rxe/wire_rc-k6.12.pcap", .conversations = 1, .answers = 62},
      {.file = "linux-rxe/wire_inv-k6.12.pcap", .conversations = 1, .answers = 3},
      {.file = "linux-rxe/atomic_cas.pcap", .conversations = 1, .answers = 50},
      {.file = "linux-rxe/atomic_faa.pcap", .conversations = 1, .answers = 50},
      {.file = "linux-rxe/read_bw.pcap",
       .conversations = 1,
       .answers = 91,
       .setup = {.ends_early = true}},
      {.file = "linux-rxe/send_lat.pcap", .conversations = 2, .answers = 60},
      {.file = "linux-rxe/write_lat.pcap", .conversations = 2, .answers = 60},
      {.file = "linux-rxe/srq_pingpong.pcap", .conversations = 8, .answers = 40},
      {.file = "linux-rxe/ud_pingpong.pcap", .conversations = 2},
      {.file = "linux-rxe/loss5_atomic.pcap", .conversations = 1, .answers = 103, .lossy = true},
      {.file = "linux-rxe/loss5_read_bw.pcap",
       .conversations = 1,
       .answers = 93,
       .setup = {.ends_early = true},
       .lossy = true},
      {.file = "linux-rxe/reorder_dup_write_bw.pcap",
       .conversations = 1,
       .answers = 14,
       .setup = {.ends_early = true},
       .lossy = true},
  }));
  const auto path = test::shared_dir() / "captures" / capture.file;
  if (!skipped_without(path)) replay(path, capture);
}

}  // namespace
}  // namespace urxe::replay
