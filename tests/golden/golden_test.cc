#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "net/wire/icrc.h"
#include "net/wire/packet.h"
#include "tests/golden/dissection.h"
#include "tests/golden/samples.h"
#include "tests/support/files.h"
#include "tests/support/frames.h"

namespace urxe::golden {
namespace {

using wire::Bytes;
using wire::ParseError;

std::filesystem::path packets_dir() { return test::source_dir() / "tests/golden/packets"; }

std::vector<Block> all_golden_packets() {
  std::vector<Block> all;
  for (const auto& entry : std::filesystem::directory_iterator(packets_dir())) {
    INFO(entry.path());
    const auto text = test::read_file(entry.path());
    REQUIRE(text);
    const auto blocks = parse_blocks(*text);
    if (!blocks) FAIL(entry.path() << ", " << blocks.error());
    REQUIRE_FALSE(blocks->empty());
    all.insert(all.end(), blocks->begin(), blocks->end());
  }
  REQUIRE_FALSE(all.empty());
  return all;
}

TEST_CASE("there is one golden file for every opcode, and no other") {
  std::set<std::string> expected;
  for (const auto& info : wire::all_opcodes()) expected.insert(file_name(info));
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(packets_dir())) {
    found.insert(entry.path().filename());
  }
  CHECK(found == expected);
}

TEST_CASE("the builder makes every golden packet again, byte for byte") {
  for (const auto& info : wire::all_opcodes()) {
    INFO(info.name);
    const auto text = test::read_file(packets_dir() / file_name(info));
    REQUIRE(text);
    CHECK(*text == file_text(info));
  }
}

TEST_CASE("the parser reads every golden packet as its file says") {
  for (const Block& block : all_golden_packets()) {
    INFO(block.name);
    const auto dissection = dissect(block.bytes);
    REQUIRE(dissection);
    CHECK(to_text({*dissection, block.name, block.bytes}) == to_text(block));
  }
}

TEST_CASE("every golden packet's ICRC is right, and so is the identification that it gives away") {
  wire::Ipv4IdSolver solver;
  for (const Block& block : all_golden_packets()) {
    INFO(block.name);
    CHECK(test::frame_is_right(block.bytes));
    const auto frame = wire::parse_frame(block.bytes);
    REQUIRE(frame);
    const Bytes roce = frame->roce;
    const wire::IcrcSeed seed(frame->path, roce.size());
    if (!seed.depends_on_id()) continue;
    const auto computed = wire::icrc(seed.value({}), roce.first(roce.size() - wire::kIcrcSize));
    const auto found = solver.solve(computed, wire::load_icrc(roce), roce.size());
    REQUIRE(found);
    CHECK(found->id == frame->fragment.id);
    CHECK(found->dont_fragment == frame->fragment.dont_fragment);
  }
}

// Why the first `size` bytes of a packet are none; nothing if only the ICRC can tell.
std::optional<ParseError> reason_for(const wire::Packet& whole, std::size_t size) {
  const std::size_t headers = whole.info->header_size();
  if (size < 16) return ParseError::too_short;
  if (size % 4 != 0) return ParseError::unaligned;
  if (size < headers + 4) return ParseError::headers_cut_off;
  const std::size_t padded = size - headers - 4;
  if (padded < whole.bth.pad_count) return ParseError::bad_pad;
  const bool is_fixed = whole.info->payload == wire::PayloadRule::eight ||
                        whole.info->payload == wire::PayloadRule::reserved;
  if (is_fixed) return ParseError::surplus_payload;
  return std::nullopt;
}

TEST_CASE("every truncation of every golden packet is refused for the right reason") {
  for (const Block& block : all_golden_packets()) {
    const auto frame = wire::parse_frame(block.bytes);
    REQUIRE(frame);
    const auto whole = wire::parse_packet(frame->roce);
    REQUIRE(whole);
    for (std::size_t size = 0; size < frame->roce.size(); ++size) {
      INFO(block.name << ", cut to " << size << " bytes of UDP payload");
      const auto cut = wire::parse_packet(frame->roce.first(size));
      const auto reason = reason_for(*whole, size);
      REQUIRE(cut.has_value() == !reason.has_value());
      if (reason) CHECK(to_string(cut.error()) == to_string(*reason));
    }
  }
}

TEST_CASE("every truncated frame of every golden packet is too short") {
  for (const Block& block : all_golden_packets()) {
    for (std::size_t size = 0; size < block.bytes.size(); ++size) {
      const auto cut = wire::parse_frame(Bytes(block.bytes).first(size));
      if (cut || cut.error() != wire::FrameError::too_short) {
        FAIL(block.name << ", cut to " << size << " bytes of frame");
      }
    }
  }
}

// The sender of such a packet made its IP and UDP lengths fit: nothing but the ICRC can tell.
TEST_CASE("a truncated packet in a frame of its own length has a wrong ICRC") {
  for (const Block& block : all_golden_packets()) {
    const auto frame = wire::parse_frame(block.bytes);
    REQUIRE(frame);
    const std::size_t headers = wire::ip_udp_size(frame->path.source.is_v4());
    for (std::size_t size = 0; size < frame->roce.size(); ++size) {
      std::vector<std::uint8_t> cut(headers);
      wire::write_ip_udp(cut, frame->path, frame->fragment, size);
      const Bytes kept = frame->roce.first(size);
      cut.insert(cut.end(), kept.begin(), kept.end());
      REQUIRE(wire::parse_frame(cut));
      if (test::frame_is_right(cut)) FAIL(block.name << ", cut to " << size << " bytes");
    }
  }
}

TEST_CASE("a golden file with an error says where") {
  CHECK(parse_blocks("packet: x\nhex:\n  00zz\n").error() == "line 3: neither a field nor hex");
  CHECK(parse_blocks("# comment\n\nnonsense\n").error() == "line 3: neither a field nor hex");
}

}  // namespace
}  // namespace urxe::golden
