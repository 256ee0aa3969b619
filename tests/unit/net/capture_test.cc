// Captures of real traffic, read back.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "net/capture/capture_fabric.h"
#include "net/wire/frame.h"
#include "net/wire/headers.h"
#include "tests/support/frames.h"
#include "tests/support/pcap_file.h"
#include "tests/support/skip.h"
#include "tests/unit/net/traffic.h"

using namespace urxe;
using namespace urxe::test;
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;

// A directory for this test, gone afterwards.
struct Folder {
  Folder() : path(fs::temp_directory_path() / ("urxe-capture-" + std::to_string(getpid()))) {
    fs::remove_all(path);
    fs::create_directory(path);
  }
  ~Folder() { fs::remove_all(path); }
  [[nodiscard]] std::string file(const std::string& name) const { return path / name; }
  fs::path path;
};

std::shared_ptr<net::CaptureFile> open_capture(const std::string& name, Duration epoch = 0ns) {
  auto file = net::CaptureFile::open(name, epoch);
  if (!file) throw std::runtime_error(file.error().sentence);
  return *file;
}

// A node that captures, and one that does not.
struct CapturedPair {
  explicit CapturedPair(const std::string& name, const std::string& from = node_address(0),
                        const std::string& to = node_address(1))
      : path{.source = ip(from),
             .destination = ip(to),
             .source_port = 0xC777,
             .traffic_class = 0x02,
             .hop_limit = 64} {
    auto udp = open_fabric(on_loopback(from));
    qpn = qpn_of(*udp);
    captured = std::make_unique<net::CaptureFabric>(std::move(udp), open_capture(name));
    other = open_fabric(on_loopback(to));
  }
  wire::Path path;
  wire::Qpn qpn;
  std::unique_ptr<net::Fabric> captured;
  std::unique_ptr<net::UdpFabric> other;
};

std::vector<FrameBytes> frames_of(const std::string& name) {
  const auto frames = read_pcap(name);
  if (!frames) throw std::runtime_error(frames.error());
  return *frames;
}

std::uint32_t psn_of(const FrameBytes& frame) {
  return wire::Bth::parse(wire::parse_frame(ethernet_payload(frame))->roce).psn.value();
}

// The Internet checksum of bytes that contain theirs is 0.
bool udp_checksum_is_right(wire::Bytes ip_packet) {
  const bool v4 = ip_packet[0] >> 4 == 4;
  const std::size_t header = v4 ? wire::kIpv4Size : wire::kIpv6Size;
  const std::size_t addresses = v4 ? 12 : 8;
  const wire::Bytes udp = ip_packet.subspan(header);
  std::uint32_t sum = 17 + static_cast<std::uint32_t>(udp.size());
  const auto add = [&sum](wire::Bytes bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) sum += bytes[i] << (i % 2 == 0 ? 8 : 0);
  };
  add(ip_packet.subspan(addresses, header - addresses));
  add(udp);
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return sum == 0xFFFF && wire::load_be<std::uint16_t>(udp, 6) != 0;
}

void send_captured(CapturedPair& pair, std::uint32_t count) {
  for (std::uint32_t psn = 0; psn < count; ++psn) {
    REQUIRE(put(*pair.captured, pair.path, qpn_of(*pair.other), psn, 3 * psn));
  }
  REQUIRE(pair.captured->flush(now()));
}

}  // namespace

TEST_CASE("a capture has a frame for each packet of both directions, with right checksums") {
  const Folder folder;
  const std::string name = folder.file("both.pcap");
  CapturedPair pair(name);
  send_captured(pair, 20);
  wire::Path back = pair.path;
  std::swap(back.source, back.destination);
  for (std::uint32_t psn = 100; psn < 120; ++psn) {
    REQUIRE(put(*pair.other, back, pair.qpn, psn, 1024));
  }
  REQUIRE(pair.other->flush(now()));
  Arrivals arrivals;
  receive_until(*pair.captured, arrivals, 20);

  const auto frames = frames_of(name);
  REQUIRE(frames.size() == 40);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    CAPTURE(i);
    const wire::Bytes ip_packet = ethernet_payload(frames[i]);
    CHECK(frame_is_right(ip_packet));
    CHECK(udp_checksum_is_right(ip_packet));
    const auto frame = wire::parse_frame(ip_packet);
    REQUIRE(frame);
    CHECK(psn_of(frames[i]) == (i < 20 ? i : i + 80));
    CHECK(frame->path == (i < 20 ? pair.path : back));
  }
}

TEST_CASE("captures over IPv6 have right checksums, too") {
  const Folder folder;
  const std::string name = folder.file("v6.pcap");
  const auto file = open_capture(name);
  const wire::Path path{.source = ip("2001:db8::1"), .destination = ip("ff15::12:3456")};
  std::vector<std::uint8_t> packet(100);
  for (std::uint32_t psn = 0; psn < 10; ++psn) {
    const std::size_t size = write_send(packet, wire::kMulticastQpn, psn, psn);
    file->write(now(), path, wire::Bytes(packet).first(size), 0);
  }
  file->flush();
  const auto frames = frames_of(name);
  REQUIRE(frames.size() == 10);
  for (const FrameBytes& frame : frames) {
    CHECK(frame_is_right(ethernet_payload(frame)));
    CHECK(udp_checksum_is_right(ethernet_payload(frame)));
    // RFC 2464: 33:33 and the last four bytes of the group.
    const FrameBytes mac{0x33, 0x33, 0x00, 0x12, 0x34, 0x56};
    CHECK(std::equal(mac.begin(), mac.end(), frame.begin()));
  }
}

TEST_CASE("an ICRC that is wrong is wrong in the capture, in both directions") {
  const Folder folder;
  const std::string name = folder.file("wrong.pcap");
  CapturedPair pair(name);
  REQUIRE(put(*pair.captured, pair.path, qpn_of(*pair.other), 1, 64, 0x1));
  REQUIRE(pair.captured->flush(now()));
  wire::Path back = pair.path;
  std::swap(back.source, back.destination);
  REQUIRE(put(*pair.other, back, pair.qpn, 2, 64, 0xBAD00001));
  REQUIRE(pair.other->flush(now()));
  Arrivals arrivals;
  receive_until(*pair.captured, arrivals, 1);
  const auto frames = frames_of(name);
  REQUIRE(frames.size() == 2);
  for (const FrameBytes& frame : frames) CHECK(!frame_is_right(ethernet_payload(frame)));
}

TEST_CASE("times are nanoseconds since 1970") {
  const Folder folder;
  const std::string name = folder.file("time.pcap");
  const auto file = open_capture(name, 1'700'000'000s);
  std::vector<std::uint8_t> packet(12);
  write_send(packet, wire::Qpn{7}, 0, 0);
  file->write(Time{5'123'456'789ns}, {.source = ip("192.0.2.1"), .destination = ip("192.0.2.2")},
              packet, 0);
  file->flush();
  std::ifstream stream(name, std::ios::binary);
  std::array<std::uint32_t, 8> words{};  // the file's header, and the first packet's
  stream.read(reinterpret_cast<char*>(words.data()), sizeof(words));
  CHECK(words[0] == 0xA1B23C4D);
  CHECK(words[6] == 1'700'000'005);
  CHECK(words[7] == 123'456'789);
}

TEST_CASE("a killed process leaves all that it sent") {
  const Folder folder;
  const std::string name = folder.file("killed.pcap");
  const pid_t child = fork();
  if (child == 0) {
    CapturedPair pair(name);
    send_captured(pair, 50);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  const auto frames = frames_of(name);
  CHECK(frames.size() == 50);
  CHECK(std::all_of(frames.begin(), frames.end(), [](const FrameBytes& frame) {
    return frame_is_right(ethernet_payload(frame));
  }));
}

TEST_CASE("processes that capture at one time write files of their own") {
  const Folder folder;
  const std::string name = folder.file("shared.pcap");
  const auto ours = open_capture(name);
  CHECK(ours->path() == name);
  const auto second = open_capture(name);
  CHECK(second->path() == name + "." + std::to_string(getpid()));
  CHECK(frames_of(name).empty());
  CHECK(frames_of(second->path()).empty());
}

TEST_CASE("a later process continues the file") {
  const Folder folder;
  const std::string name = folder.file("continued.pcap");
  for (int i = 0; i < 3; ++i) {
    CapturedPair pair(name);
    send_captured(pair, 2);
  }
  CHECK(frames_of(name).size() == 6);
}

TEST_CASE("a forked child that lets go of the capture writes nothing twice") {
  const Folder folder;
  const std::string name = folder.file("forked.pcap");
  auto file = open_capture(name);
  std::vector<std::uint8_t> packet(12);
  write_send(packet, wire::Qpn{7}, 0, 0);
  file->write(now(), {.source = ip("192.0.2.1"), .destination = ip("192.0.2.2")}, packet, 0);
  const pid_t child = fork();
  if (child == 0) {
    file.reset();
    std::fflush(nullptr);
    _exit(0);
  }
  REQUIRE(waitpid(child, nullptr, 0) == child);
  file->flush();
  file.reset();
  CHECK(frames_of(name).size() == 1);
}

TEST_CASE("a file that is no capture is not written to") {
  const Folder folder;
  const std::string name = folder.file("notes.txt");
  std::ofstream(name) << "notes that somebody needs";
  const auto file = net::CaptureFile::open(name, 0ns);
  REQUIRE(!file);
  CHECK(file.error().code == EEXIST);
  CHECK(fs::file_size(name) == 25);
  const auto nowhere = net::CaptureFile::open(folder.file("missing/x.pcap"), 0ns);
  REQUIRE(!nowhere);
  CHECK(nowhere.error().code == ENOENT);
}

TEST_CASE("packets that a full disk has no room for are counted") {
  if (!fs::exists("/dev/full")) return skip("this machine has no /dev/full");
  const auto file = net::CaptureFile::open("/dev/full", 0ns);
  REQUIRE(file);
  std::vector<std::uint8_t> packet(12);
  write_send(packet, wire::Qpn{7}, 0, 0);
  (*file)->write(now(), {.source = ip("192.0.2.1"), .destination = ip("192.0.2.2")}, packet, 0);
  (*file)->flush();
  CHECK((*file)->lost_packets() == 1);
}
