#include "net/wire/icrc.h"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "net/wire/opcode.h"
#include "tests/support/frames.h"

namespace urxe::wire {
namespace {

using Buffer = std::vector<std::uint8_t>;

// The definition: CRC-32 bit by bit.
std::uint32_t slow_crc(Bytes bytes) {
  std::uint32_t state = 0xFFFFFFFF;
  for (const std::uint8_t byte : bytes) {
    state ^= byte;
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0xEDB88320 : 0);
  }
  return ~state;
}

// The definition of the ICRC for a whole IP packet: eight bytes of ones, then the packet with ones
// where routers write. `packet` ends before the ICRC.
std::uint32_t slow_icrc(Bytes packet) {
  Buffer masked(8, 0xFF);
  masked.insert(masked.end(), packet.begin(), packet.end());
  std::uint8_t* const ip = masked.data() + 8;
  const bool v4 = ip[0] >> 4 == 4;
  if (v4) {
    for (const int at : {1, 8, 10, 11}) ip[at] = 0xFF;  // TOS, TTL, checksum
  } else {
    ip[0] |= 0x0F;                                    // traffic class
    for (const int at : {1, 2, 3, 7}) ip[at] = 0xFF;  // the rest of it, flow label, hop limit
  }
  std::uint8_t* const udp = ip + (v4 ? 20 : 40);
  udp[6] = udp[7] = 0xFF;
  udp[8 + 4] = 0xFF;  // FECN, BECN, reserved
  return slow_crc(masked);
}

Path path_of(bool v4) {
  return {.source = *IpAddress::parse(v4 ? "192.0.2.17" : "2001:db8:1:2:3:4:5:6"),
          .destination = *IpAddress::parse(v4 ? "198.51.100.34" : "2001:db8:a:b:c:d:e:f"),
          .source_port = 0xC5A7,
          .traffic_class = 0x6A,
          .hop_limit = 61,
          .flow_label = v4 ? 0 : 0xBCDEFU};
}

// `size` bytes from BTH to pad, random but for nothing.
Buffer random_bytes(std::mt19937& random, std::size_t size) {
  Buffer bytes(size);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

std::uint32_t seed_of(const Path& path, std::size_t packet_size, Ipv4Fragment fragment = {}) {
  return IcrcSeed(path, packet_size + kIcrcSize).value(fragment);
}

TEST_CASE("the reference in this test is the CRC-32 of the check string") {
  constexpr std::array<std::uint8_t, 9> kCheck{'1', '2', '3', '4', '5', '6', '7', '8', '9'};
  CHECK(slow_crc(kCheck) == 0xCBF43926);
  constexpr std::array<std::uint8_t, 8> kMaskedLrh{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
  CHECK(~slow_crc(kMaskedLrh) == 0xDEBB20E3);
}

TEST_CASE("the ICRC is the CRC-32 of the masked packet, at every size and alignment") {
  std::mt19937 random(20240501);
  for (const bool v4 : {true, false}) {
    for (std::size_t size = kBthSize; size <= 300; ++size) {
      const Ipv4Fragment fragment{.id = static_cast<std::uint16_t>(random()),
                                  .dont_fragment = (random() & 1) != 0};
      const Buffer packet = random_bytes(random, size);
      Buffer frame(ip_udp_size(v4));
      write_ip_udp(frame, path_of(v4), fragment, size + kIcrcSize);
      frame.insert(frame.end(), packet.begin(), packet.end());
      INFO("IPv" << (v4 ? 4 : 6) << ", " << size << " bytes");
      CHECK(icrc(seed_of(path_of(v4), size, fragment), packet) == slow_icrc(frame));
    }
  }
}

TEST_CASE("the ICRC of the largest packet is the CRC-32 of the masked packet") {
  std::mt19937 random(20240502);
  const Buffer packet = random_bytes(random, 4096 + kMaxHeaderSize);
  Buffer frame(ip_udp_size(true));
  write_ip_udp(frame, path_of(true), {.id = 7}, packet.size() + kIcrcSize);
  frame.insert(frame.end(), packet.begin(), packet.end());
  CHECK(icrc(seed_of(path_of(true), packet.size(), {.id = 7}), packet) == slow_icrc(frame));
}

TEST_CASE("the seed is right for every identification, with and without DF") {
  const Path path = path_of(true);
  const Buffer packet(kBthSize, 0x5A);
  const IcrcSeed seed(path, packet.size() + kIcrcSize);
  CHECK(seed.depends_on_id());
  Buffer frame(ip_udp_size(true));
  frame.insert(frame.end(), packet.begin(), packet.end());
  for (std::uint32_t id = 0; id < 0x10000; ++id) {
    const Ipv4Fragment fragment{.id = static_cast<std::uint16_t>(id), .dont_fragment = id % 2 == 0};
    write_ip_udp(frame, path, fragment, packet.size() + kIcrcSize);
    if (icrc(seed.value(fragment), packet) != slow_icrc(frame)) FAIL("identification " << id);
  }
}

TEST_CASE("the seed of IPv6 knows no identification") {
  const IcrcSeed seed(path_of(false), 64);
  CHECK_FALSE(seed.depends_on_id());
  CHECK(seed.value({.id = 0x1234, .dont_fragment = false}) == seed.value({}));
}

TEST_CASE("the ICRC stands on the wire least significant byte first") {
  Buffer bytes(20, 0xEE);
  store_icrc(bytes, 0x81828384);
  CHECK(Buffer(bytes.end() - 5, bytes.end()) == Buffer{0xEE, 0x84, 0x83, 0x82, 0x81});
  CHECK(load_icrc(bytes) == 0x81828384);
}

TEST_CASE("an ICRC matches, and does not when it is one off") {
  std::mt19937 random(20240503);
  for (std::size_t size : {12UL, 16UL, 28UL, 1036UL}) {
    Buffer packet = random_bytes(random, size + kIcrcSize);
    const std::uint32_t right = icrc(77, Bytes(packet).first(size));
    store_icrc(packet, right);
    CHECK(icrc_matches(77, packet));
    store_icrc(packet, right ^ 1);
    CHECK_FALSE(icrc_matches(77, packet));
  }
}

TEST_CASE("what is too short for a packet has no ICRC that matches") {
  for (std::size_t size = 0; size < kBthSize + kIcrcSize; ++size) {
    CHECK_FALSE(icrc_matches(0, Buffer(size)));
  }
}

// Which bits of a frame the ICRC does not cover.
bool is_masked(bool v4, std::size_t byte, std::size_t bit) {
  const std::size_t udp = v4 ? kIpv4Size : kIpv6Size;
  if (byte == udp + 6 || byte == udp + 7) return true;  // UDP checksum
  if (byte == udp + kUdpSize + 4) return true;          // FECN, BECN, reserved
  if (v4) return byte == 1 || byte == 8 || byte == 10 || byte == 11;
  return (byte == 0 && bit < 4) || (byte >= 1 && byte <= 3) || byte == 7;
}

TEST_CASE("a flipped bit is noticed wherever the ICRC covers it, and nowhere else") {
  const Buffer payload{1, 2, 3, 4, 5};
  for (const bool v4 : {true, false}) {
    for (const OpcodeInfo& info : all_opcodes()) {
      const Buffer right =
          test::build_frame(path_of(v4), {.id = 0x1234}, test::packet_of(info.opcode), payload);
      REQUIRE(test::frame_is_right(right));
      for (std::size_t at = 0; at < right.size() * 8; ++at) {
        Buffer frame = right;
        frame[at / 8] = static_cast<std::uint8_t>(frame[at / 8] ^ 1U << at % 8);
        if (test::frame_is_right(frame) == is_masked(v4, at / 8, at % 8)) continue;
        FAIL(info.name << ", IPv" << (v4 ? 4 : 6) << ", byte " << at / 8 << ", bit " << at % 8);
      }
    }
  }
}

// --- the identification, where the socket hides it

TEST_CASE("every identification is found again, with and without DF, at several sizes") {
  std::mt19937 random(20240504);
  Ipv4IdSolver solver;
  for (const std::size_t size : {12UL, 16UL, 40UL, 1036UL, 4136UL}) {
    const Buffer packet = random_bytes(random, size);
    const IcrcSeed seed(path_of(true), size + kIcrcSize);
    const std::uint32_t computed = icrc(seed.value({}), packet);
    for (std::uint32_t id = 0; id < 0x20000; ++id) {
      const Ipv4Fragment fragment{.id = static_cast<std::uint16_t>(id),
                                  .dont_fragment = id >> 16 == 0};
      const auto found =
          solver.solve(computed, icrc(seed.value(fragment), packet), size + kIcrcSize);
      if (!found || found->id != fragment.id || found->dont_fragment != fragment.dont_fragment) {
        FAIL("identification " << fragment.id << ", size " << size);
      }
    }
  }
}

TEST_CASE("the solver takes sizes in any order") {
  Ipv4IdSolver solver;
  for (const std::size_t size : {1036UL, 12UL, 1036UL, 1052UL, 12UL, 65000UL, 16UL}) {
    const Buffer packet(size, 0x3C);
    const IcrcSeed seed(path_of(true), size + kIcrcSize);
    const std::uint32_t computed = icrc(seed.value({}), packet);
    const std::uint32_t received = icrc(seed.value({.id = 0xBEEF}), packet);
    const auto found = solver.solve(computed, received, size + kIcrcSize);
    REQUIRE(found);
    CHECK(found->id == 0xBEEF);
  }
}

// 2^17 of the 2^32 possible ICRCs have a solution: of 2^22 random ones 128 are expected. The bounds
// are five standard deviations away.
TEST_CASE("a random ICRC finds an identification once in 2^15") {
  std::mt19937 random(20240505);
  Ipv4IdSolver solver;
  int accepted = 0;
  for (int i = 0; i < 1 << 22; ++i) {
    const auto received = static_cast<std::uint32_t>(random());
    if (solver.solve(0x12345678, received, 1040)) ++accepted;
  }
  INFO(accepted << " of 2^22 accepted");
  CHECK(accepted > 128 - 57);
  CHECK(accepted < 128 + 57);
}

TEST_CASE("a solution is never a lie: the packet with that identification has that ICRC") {
  std::mt19937 random(20240506);
  Ipv4IdSolver solver;
  const Buffer packet = random_bytes(random, 36);
  const IcrcSeed seed(path_of(true), packet.size() + kIcrcSize);
  const std::uint32_t computed = icrc(seed.value({}), packet);
  int found = 0;
  for (int i = 0; i < 1 << 20; ++i) {
    const auto received = static_cast<std::uint32_t>(random());
    const auto fragment = solver.solve(computed, received, packet.size() + kIcrcSize);
    if (!fragment) continue;
    ++found;
    CHECK(icrc(seed.value(*fragment), packet) == received);
  }
  CHECK(found > 0);
}

}  // namespace
}  // namespace urxe::wire
