// Packets of real senders: NICs and Linux's rxe. They are not in the tree; a missing file is a
// skip.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "net/wire/icrc.h"
#include "net/wire/packet.h"
#include "tests/golden/dissection.h"
#include "tests/support/files.h"
#include "tests/support/frames.h"
#include "tests/support/hex.h"
#include "tests/support/pcap_file.h"
#include "tests/support/skip.h"

namespace urxe::golden {
namespace {

using wire::Bytes;

std::filesystem::path captures_dir() { return test::shared_dir() / "captures"; }

bool skipped_without(const std::filesystem::path& path) {
  if (std::filesystem::exists(path)) return false;
  test::skip(path.string() + " is not there; URXE_SHARED says where captures are");
  return true;
}

struct Census {
  int roce = 0;        // parse_frame takes it
  int understood = 0;  // parse_packet takes it too
  int right = 0;       // its ICRC is right
  int solved = 0;      // and its identification comes out of the ICRC
};

bool id_is_found(const wire::Frame& frame) {
  wire::Ipv4IdSolver solver;
  const Bytes roce = frame.roce;
  const wire::IcrcSeed seed(frame.path, roce.size());
  const auto computed = wire::icrc(seed.value({}), roce.first(roce.size() - wire::kIcrcSize));
  const auto found = solver.solve(computed, wire::load_icrc(roce), roce.size());
  return found && found->id == frame.fragment.id &&
         found->dont_fragment == frame.fragment.dont_fragment;
}

std::vector<test::FrameBytes> frames_of(const std::filesystem::path& path) {
  auto frames = test::read_pcap(path);
  if (!frames) FAIL(path << ": " << frames.error());
  return std::move(*frames);
}

Census census(const std::filesystem::path& path) {
  Census census;
  for (const auto& ethernet : frames_of(path)) {
    const Bytes ip = test::ethernet_payload(ethernet);
    const auto frame = wire::parse_frame(ip);
    if (!frame) continue;
    ++census.roce;
    if (wire::parse_packet(frame->roce)) ++census.understood;
    if (!test::frame_is_right(ip)) continue;
    ++census.right;
    if (!frame->path.source.is_v4() || id_is_found(*frame)) ++census.solved;
  }
  return census;
}

void check_all_right(const std::filesystem::path& path, int packets) {
  INFO(path);
  const Census found = census(path);
  CHECK(found.roce == packets);
  CHECK(found.understood == packets);
  CHECK(found.right == packets);
  CHECK(found.solved == packets);
}

TEST_CASE("every packet that a NIC sent is understood and its ICRC right") {
  const std::map<std::string, int> kPackets{{"nic-huawei-send-imm.pcap", 105},
                                            {"nic-mellanox-send-bw.pcap", 10},
                                            {"nic-mellanox-send-segmented-first200.pcap", 200},
                                            {"nic-mellanox-uc-send.pcap", 17},
                                            {"linux-rxe-nvmeof-read.pcap", 49}};
  for (const auto& [name, packets] : kPackets) {
    if (skipped_without(captures_dir() / name)) return;
    check_all_right(captures_dir() / name, packets);
  }
}

void check_all_captures_in(const std::filesystem::path& dir, int least) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    if (entry.path().extension() != ".pcap") continue;
    ++files;
    INFO(entry.path());
    const Census found = census(entry.path());
    CHECK(found.roce > 0);
    CHECK(found.understood == found.roce);
    CHECK(found.right == found.roce);
    CHECK(found.solved == found.roce);
  }
  CHECK(files >= least);
}

TEST_CASE("every packet of Linux's rxe in the tree is understood and its ICRC right") {
  check_all_captures_in(test::source_dir() / "tests/golden/captures", 16);
}

TEST_CASE("every other packet of Linux's rxe is understood and its ICRC right") {
  if (skipped_without(captures_dir() / "linux-rxe")) return;
  check_all_captures_in(captures_dir() / "linux-rxe", 1);
}

// What the opcodes of one capture are, so that a file that became empty of them is noticed.
TEST_CASE("rxe's captures in the tree have every opcode but those that it does not send here") {
  std::map<wire::Opcode, int> seen;
  for (const char* name : {"wire_rc.pcap", "wire_inv.pcap", "wire_uc.pcap", "wire_ud.pcap"}) {
    for (const auto& ethernet : frames_of(test::source_dir() / "tests/golden/captures" / name)) {
      const auto frame = wire::parse_frame(test::ethernet_payload(ethernet));
      if (!frame) continue;
      const auto packet = wire::parse_packet(frame->roce);
      if (packet) ++seen[packet->info->opcode];
    }
  }
  for (const auto& info : wire::all_opcodes()) {
    INFO(info.name);
    const bool is_absent =
        info.opcode == wire::Opcode::rc_flush || info.opcode == wire::Opcode::rc_atomic_write ||
        info.opcode == wire::Opcode::rc_send_last_invalidate || info.opcode == wire::Opcode::cnp;
    CHECK(seen.contains(info.opcode) == !is_absent);
  }
}

// The port that makes a packet's ICRC right, if its sender had written another one.
std::vector<std::uint16_t> possible_ports(const wire::Frame& frame) {
  std::vector<std::uint16_t> ports;
  wire::Path path = frame.path;
  for (std::uint32_t port = 0; port < 0x10000; ++port) {
    path.source_port = static_cast<std::uint16_t>(port);
    const wire::IcrcSeed seed(path, frame.roce.size());
    if (wire::icrc_matches(seed.value(frame.fragment), frame.roce)) {
      ports.push_back(path.source_port);
    }
  }
  return ports;
}

TEST_CASE("a mirror that rewrote the UDP source port is found out") {
  const auto path = captures_dir() / "nic-mellanox-write-mirrored-bad-icrc.pcap";
  if (skipped_without(path)) return;
  const Census found = census(path);
  CHECK(found.roce == 21);
  CHECK(found.understood == 21);
  CHECK(found.right == 0);
  std::map<wire::IpAddress, std::vector<std::uint16_t>> ports;  // by flow
  for (const auto& ethernet : frames_of(path)) {
    const auto frame = wire::parse_frame(test::ethernet_payload(ethernet));
    if (!frame) continue;
    const auto possible = possible_ports(*frame);
    REQUIRE(possible.size() == 1);
    ports[frame->path.source].push_back(possible.front());
  }
  CHECK(ports.size() == 2);
  for (const auto& [source, of_flow] : ports) {
    INFO("from " << source.to_string());
    CHECK(std::equal(of_flow.begin() + 1, of_flow.end(), of_flow.begin()));
  }
}

// --- hex-vectors.txt: single frames and what others decoded in them

struct Vector {
  std::string name, l3, bth, icrc;
  std::vector<std::uint8_t> frame;
};

std::vector<Vector> read_vectors(const std::string& text) {
  std::vector<Vector> vectors;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto value = [&](const char* key) -> std::optional<std::string> {
      const std::string start = std::string(key) + ": ";
      if (!line.starts_with(start)) return std::nullopt;
      return line.substr(start.size());
    };
    if (const auto name = value("name")) vectors.push_back({.name = *name});
    if (vectors.empty()) continue;
    if (const auto l3 = value("l3")) vectors.back().l3 = *l3;
    if (const auto bth = value("bth")) vectors.back().bth = *bth;
    if (const auto icrc = value("icrc")) vectors.back().icrc = *icrc;
    if (const auto hex = value("hex")) vectors.back().frame = test::from_hex(*hex).value();
  }
  return vectors;
}

// One number that follows a word in the vector's text.
std::uint64_t number_after(const std::string& text, const std::string& word, int base) {
  std::smatch match;
  const std::regex pattern("(^| |\\()" + word + " (0x)?([0-9a-fA-F]+)");
  INFO(text << " / " << word);
  REQUIRE(std::regex_search(text, match, pattern));
  return std::stoull(match[3], nullptr, base);
}

void check_headers(const wire::Packet& packet, const std::string& bth) {
  CHECK(packet.bth.opcode == number_after(bth, "op", 16));
  CHECK(packet.bth.solicited == (number_after(bth, "se", 10) == 1));
  CHECK(packet.bth.migration == (number_after(bth, "m", 10) == 1));
  CHECK(packet.bth.pad_count == number_after(bth, "pad", 10));
  CHECK(packet.bth.pkey.value() == number_after(bth, "pkey", 16));
  CHECK(packet.bth.fecn == (number_after(bth, "fecn", 10) == 1));
  CHECK(packet.bth.becn == (number_after(bth, "becn", 10) == 1));
  CHECK(packet.bth.destination.value() == number_after(bth, "destqp", 16));
  CHECK(packet.bth.ack_request == (number_after(bth, "a", 10) == 1));
  CHECK(packet.bth.psn.value() == number_after(bth, "psn", 16));
  if (packet.info->has(wire::Header::reth)) {
    CHECK(packet.reth.address == number_after(bth, "va", 16));
    CHECK(packet.reth.rkey.value() == number_after(bth, "rkey", 16));
    CHECK(packet.reth.length == number_after(bth, "len", 10));
  }
  if (packet.info->has(wire::Header::deth)) {
    CHECK(packet.deth.qkey.value() == number_after(bth, "qkey", 16));
    CHECK(packet.deth.source.value() == number_after(bth, "srcqp", 16));
  }
  if (packet.info->has(wire::Header::aeth)) {
    CHECK(packet.aeth.msn.value() == number_after(bth, "msn", 10));
    const auto kind = packet.aeth.syndrome.kind();
    const char* word = kind == wire::Syndrome::Kind::ack       ? "ACK\\(credit"
                       : kind == wire::Syndrome::Kind::rnr_nak ? "RNR_NAK\\(timer"
                                                               : "NAK\\(code";
    CHECK(packet.aeth.syndrome.value() == number_after(bth, word, 10));
  }
}

TEST_CASE("every frame of hex-vectors.txt is read as others decoded it") {
  const auto path = captures_dir() / "hex-vectors.txt";
  if (skipped_without(path)) return;
  const auto vectors = read_vectors(test::read_file(path).value());
  CHECK(vectors.size() == 22);
  for (const Vector& vector : vectors) {
    INFO(vector.name);
    const Bytes ip = test::ethernet_payload(vector.frame);
    const auto frame = wire::parse_frame(ip);
    const bool is_roce_v2 = vector.l3.starts_with("IPv");
    REQUIRE(frame.has_value() == is_roce_v2);
    if (!is_roce_v2) continue;
    CHECK(frame->path.traffic_class == number_after(vector.l3, "tos", 16));
    CHECK(frame->path.hop_limit == number_after(vector.l3, "ttl", 10));
    CHECK(frame->path.source_port == number_after(vector.l3, "udp", 10));
    CHECK(vector.l3.find(' ' + frame->path.source.to_string() + " > " +
                         frame->path.destination.to_string() + ' ') != std::string::npos);
    const auto packet = wire::parse_packet(frame->roce);
    REQUIRE(packet);
    check_headers(*packet, vector.bth);
    CHECK(vector.icrc.starts_with("ICRC MATCHES"));
    CHECK(test::frame_is_right(ip));
    if (frame->path.source.is_v4()) CHECK(id_is_found(*frame));
  }
}

}  // namespace
}  // namespace urxe::golden
