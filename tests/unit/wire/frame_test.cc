#include "net/wire/frame.h"

#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/hex.h"

namespace urxe::wire {
namespace {

using Buffer = std::vector<std::uint8_t>;

constexpr std::size_t kRoceSize = 16;

Path v4_path() {
  return {.source = *IpAddress::parse("192.0.2.17"),
          .destination = *IpAddress::parse("198.51.100.34"),
          .source_port = 0xC5A7,
          .traffic_class = 0x6A,
          .hop_limit = 61};
}

Path v6_path() {
  return {.source = *IpAddress::parse("2001:db8:1:2:3:4:5:6"),
          .destination = *IpAddress::parse("2001:db8:a:b:c:d:e:f"),
          .source_port = 0xC5A7,
          .traffic_class = 0x6A,
          .hop_limit = 61,
          .flow_label = 0xBCDEF};
}

Buffer frame_of(const Path& path, Ipv4Fragment fragment = {}) {
  Buffer frame(ip_udp_size(path.source.is_v4()) + kRoceSize, 0xDD);
  write_ip_udp(frame, path, fragment, kRoceSize);
  return frame;
}

void check_refused(const Buffer& frame, FrameError reason) {
  const auto parsed = parse_frame(frame);
  REQUIRE_FALSE(parsed);
  CHECK(to_string(parsed.error()) == to_string(reason));
}

// The headers' bytes were put together by hand, field by field; the checksum by the definition.
TEST_CASE("IPv4 and UDP headers have these bytes") {
  Buffer bytes(kIpv4Size + kUdpSize + 2, 0xEE);
  CHECK(write_ip_udp(bytes, v4_path(), {.id = 0x1234, .dont_fragment = true}, kRoceSize) == 28);
  CHECK(test::to_hex(bytes) ==
        "456a002c123440003d113ebcc0000211c6336422"
        "c5a712b700180000eeee");
}

TEST_CASE("IPv6 and UDP headers have these bytes") {
  Buffer bytes(kIpv6Size + kUdpSize + 2, 0xEE);
  CHECK(write_ip_udp(bytes, v6_path(), {}, kRoceSize) == 48);
  CHECK(test::to_hex(bytes) ==
        "66abcdef0018113d20010db800010002000300040005000620010db8000a000b000c000d000e000f"
        "c5a712b700180000eeee");
}

TEST_CASE("a flow label that is too wide does not run into the traffic class") {
  Path path = v6_path();
  path.traffic_class = 0;
  path.flow_label = 0xFFF00001;
  CHECK(test::to_hex(Bytes(frame_of(path)).first(4)) == "60000001");
}

TEST_CASE("the IPv4 header's checksum is right for every identification") {
  for (std::uint32_t id = 0; id < 0x10000; ++id) {
    const Buffer frame = frame_of(v4_path(), {.id = static_cast<std::uint16_t>(id)});
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < kIpv4Size; i += 2) sum += load_be<std::uint16_t>(frame, i);
    if ((sum & 0xFFFF) + (sum >> 16) != 0xFFFF) FAIL("identification " << id);
  }
}

TEST_CASE("what was written is read again") {
  for (const Path& path : {v4_path(), v6_path()}) {
    for (const bool dont_fragment : {true, false}) {
      const Buffer bytes = frame_of(path, {.id = 0xFEDC, .dont_fragment = dont_fragment});
      const auto frame = parse_frame(bytes);
      REQUIRE(frame);
      CHECK(frame->path == path);
      CHECK(frame->roce.size() == kRoceSize);
      CHECK(frame->roce.data() + kRoceSize == bytes.data() + bytes.size());
      if (path.source.is_v4()) {
        CHECK(frame->fragment.id == 0xFEDC);
        CHECK(frame->fragment.dont_fragment == dont_fragment);
      }
    }
  }
}

TEST_CASE("a frame that ends anywhere before its end is too short") {
  for (const Path& path : {v4_path(), v6_path()}) {
    const Buffer whole = frame_of(path);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      INFO("IPv" << (path.source.is_v4() ? 4 : 6) << ", " << size << " bytes");
      check_refused(Buffer(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)),
                    FrameError::too_short);
    }
  }
}

TEST_CASE("what Ethernet adds to a short frame is ignored") {
  for (const Path& path : {v4_path(), v6_path()}) {
    Buffer padded = frame_of(path);
    padded.resize(padded.size() + 18);
    const auto frame = parse_frame(padded);
    REQUIRE(frame);
    CHECK(frame->roce.size() == kRoceSize);
  }
}

TEST_CASE("only IPv4 and IPv6 are IP") {
  for (unsigned version = 0; version < 16; ++version) {
    if (version == 4 || version == 6) continue;
    Buffer frame = frame_of(v6_path());
    frame[0] = static_cast<std::uint8_t>(version << 4 | 5);
    INFO("version " << version);
    check_refused(frame, FrameError::not_ip);
  }
}

TEST_CASE("another protocol than UDP is refused") {
  Buffer v4 = frame_of(v4_path());
  v4[9] = 6;
  check_refused(v4, FrameError::not_udp);
  Buffer v6 = frame_of(v6_path());
  v6[6] = 6;
  check_refused(v6, FrameError::not_udp);
  v6[6] = 44;  // a fragment header
  check_refused(v6, FrameError::not_udp);
}

TEST_CASE("IPv4 fragments and the reserved flag are refused") {
  for (const std::uint8_t flags : {0x80, 0x20, 0x01, 0x60}) {
    Buffer frame = frame_of(v4_path());
    frame[6] = flags;
    INFO("flags byte " << int{flags});
    check_refused(frame, FrameError::not_udp);
  }
  Buffer frame = frame_of(v4_path());
  frame[7] = 1;
  check_refused(frame, FrameError::not_udp);
}

TEST_CASE("another destination port than 4791 is refused") {
  for (const Path& path : {v4_path(), v6_path()}) {
    Buffer frame = frame_of(path);
    store_be<std::uint16_t>(frame, ip_udp_size(path.source.is_v4()) - 6, 4790);
    check_refused(frame, FrameError::not_roce);
  }
}

TEST_CASE("any source port is taken") {
  for (const std::uint16_t port : {0, 69, 72, 4791, 65535}) {
    Path path = v4_path();
    path.source_port = port;
    const Buffer bytes = frame_of(path);
    const auto frame = parse_frame(bytes);
    REQUIRE(frame);
    CHECK(frame->path.source_port == port);
  }
}

TEST_CASE("IPv4 options are refused") {
  Buffer frame = frame_of(v4_path());
  frame.insert(frame.begin() + kIpv4Size, {1, 1, 1, 1});
  frame[0] = 0x46;
  store_be<std::uint16_t>(frame, 2, static_cast<std::uint16_t>(frame.size()));
  check_refused(frame, FrameError::not_udp);
}

TEST_CASE("IPv4 lengths that contradict each other are refused") {
  Buffer short_header = frame_of(v4_path());
  short_header[0] = 0x44;
  check_refused(short_header, FrameError::length_lies);

  Buffer less_than_header = frame_of(v4_path());
  store_be<std::uint16_t>(less_than_header, 2, 19);
  check_refused(less_than_header, FrameError::length_lies);

  Buffer no_udp = frame_of(v4_path());
  store_be<std::uint16_t>(no_udp, 2, 27);
  check_refused(no_udp, FrameError::length_lies);

  Buffer header_only = frame_of(v4_path());
  header_only[0] = 0x4F;  // 60 bytes, more than there are
  check_refused(header_only, FrameError::length_lies);
}

TEST_CASE("an IPv6 payload without room for UDP is refused") {
  for (const std::uint16_t size : {0, 1, 7}) {
    Buffer frame = frame_of(v6_path());
    store_be<std::uint16_t>(frame, 4, size);
    check_refused(frame, FrameError::length_lies);
  }
}

TEST_CASE("a UDP length other than what IP says is refused") {
  for (const Path& path : {v4_path(), v6_path()}) {
    const std::size_t at = ip_udp_size(path.source.is_v4()) - 4;
    for (const std::uint16_t size : {0, 7, 8, 23, 25, 65535}) {
      Buffer frame = frame_of(path);
      store_be<std::uint16_t>(frame, at, size);
      INFO("UDP length " << size);
      check_refused(frame, FrameError::length_lies);
    }
  }
}

// A path knows its IP version by its source address, so such a packet would be taken for IPv4.
TEST_CASE("IPv4-mapped addresses in an IPv6 header are refused") {
  const auto mapped = IpAddress::from_v4(0x0A000001).bytes();
  for (const std::ptrdiff_t at : {8, 24}) {
    Buffer frame = frame_of(v6_path());
    std::copy(mapped.begin(), mapped.end(), frame.begin() + at);
    check_refused(frame, FrameError::mapped_v4);
  }
}

TEST_CASE("every reason for refusing a frame has its own sentence") {
  CHECK(to_string(FrameError::too_short) == "the bytes end too early");
  CHECK(to_string(FrameError::not_ip) == "not an IP packet");
  CHECK(to_string(FrameError::not_udp) == "not a plain, whole UDP packet");
  CHECK(to_string(FrameError::not_roce) == "not to UDP port 4791");
  CHECK(to_string(FrameError::mapped_v4) == "an IPv4-mapped address over IPv6");
  CHECK(to_string(FrameError::length_lies) == "contradicting lengths");
}

}  // namespace
}  // namespace urxe::wire
