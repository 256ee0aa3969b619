#include "net/wire/icrc.h"

#include <algorithm>
#include <array>

#include <isa-l/crc.h>

#include "net/wire/opcode.h"

namespace urxe::wire {
namespace {

constexpr std::uint32_t kPolynomial = 0xEDB88320;  // CRC-32, bits reversed
constexpr std::size_t kMaskedLrhSize = 8;
constexpr std::uint8_t kMask = 0xFF;

// Bytes of an IPv4 packet's headers that follow the identification, up to the BTH.
constexpr std::size_t kAfterId = kIpv4Size - 6 + kUdpSize;

// Arithmetic on CRC states, without the inversions before and after: a state is a polynomial over
// GF(2) modulo the CRC's, and bit 31 is x^0.

constexpr std::uint32_t times_x(std::uint32_t state) {
  return state >> 1 ^ (kPolynomial & -(state & 1));
}

constexpr std::uint32_t divided_by_x(std::uint32_t state) {
  return (state & 0x80000000) != 0 ? (state ^ kPolynomial) << 1 | 1 : state << 1;
}

constexpr std::uint32_t advance(std::uint32_t state, std::size_t zero_bytes) {
  for (std::size_t i = 0; i < 8 * zero_bytes; ++i) state = times_x(state);
  return state;
}

// What x^4 times the four bits that it pushes out of the register becomes.
constexpr auto kNibbles = [] {
  std::array<std::uint32_t, 16> table{};
  for (std::uint32_t value = 0; value < 16; ++value) {
    table[value] = times_x(times_x(times_x(times_x(value))));
  }
  return table;
}();

// Horner's rule, four bits of `a` at a time from the highest powers of x down.
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::array<std::uint32_t, 16> multiples{};  // of b, by every polynomial that four bits can hold
  for (std::uint32_t bit = 8; bit != 0; bit >>= 1, b = times_x(b)) multiples[bit] = b;
  for (std::uint32_t i = 1; i < 16; ++i) multiples[i] = multiples[i & (i - 1)] ^ multiples[i & -i];
  std::uint32_t product = multiples[a & 0xF];
  for (unsigned shift = 4; shift < 32; shift += 4) {
    product = product >> 4 ^ kNibbles[product & 0xF] ^ multiples[a >> shift & 0xF];
  }
  return product;
}

constexpr std::uint32_t kOne = 0x80000000;

// x^(-8 * 2^k): what takes a state back over 2^k bytes.
constexpr auto kBackwards = [] {
  std::array<std::uint32_t, 17> powers{};
  std::uint32_t power = kOne;
  for (int i = 0; i < 8; ++i) power = divided_by_x(power);
  for (std::uint32_t& slot : powers) {
    slot = power;
    power = multiply(power, power);
  }
  return powers;
}();

std::uint32_t back_over(std::size_t bytes) {
  std::uint32_t factor = kOne;
  for (std::size_t k = 0; k < kBackwards.size(); ++k) {
    if ((bytes >> k & 1) != 0) factor = multiply(factor, kBackwards[k]);
  }
  return factor;
}

// What one byte of the identification contributes to the state after the UDP header.
constexpr auto contribution_of_byte(std::size_t bytes_after) {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t value = 0; value < 256; ++value) {
    table[value] = advance(value, 1 + bytes_after);
  }
  return table;
}
constexpr auto kIdHigh = contribution_of_byte(kAfterId + 1);
constexpr auto kIdLow = contribution_of_byte(kAfterId);
// The DF bit is bit 6 of the byte after the identification.
constexpr std::uint32_t kDontFragmentContribution = advance(0x40, kAfterId);
// The same as seen from the identification: two bytes later, so 16 bits up in the register.
constexpr std::uint32_t kDontFragmentInput = 0x40 << 16;

// kCrcTables[n][b]: what byte b contributes to the state when n more bytes follow it in its word.
constexpr auto kCrcTables = [] {
  std::array<std::array<std::uint32_t, 256>, 4> tables{};
  for (std::size_t following = 0; following < tables.size(); ++following) {
    tables[following] = contribution_of_byte(following);
  }
  return tables;
}();

std::uint32_t load_word(Bytes bytes, std::size_t at) {
  return std::uint32_t{bytes[at]} | std::uint32_t{bytes[at + 1]} << 8 |
         std::uint32_t{bytes[at + 2]} << 16 | std::uint32_t{bytes[at + 3]} << 24;
}

std::uint32_t take_word(std::uint32_t state, std::uint32_t word) {
  word ^= state;
  return kCrcTables[3][word & 0xFF] ^ kCrcTables[2][word >> 8 & 0xFF] ^
         kCrcTables[1][word >> 16 & 0xFF] ^ kCrcTables[0][word >> 24];
}

// What is shorter than a vector is left to the tables: ISA-L takes three times as long for it.
constexpr std::size_t kVectorSize = 16;

std::uint32_t crc(std::uint32_t seed, Bytes bytes) {
  if (bytes.size() >= kVectorSize) return crc32_gzip_refl(seed, bytes.data(), bytes.size());
  std::uint32_t state = ~seed;
  std::size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) state = take_word(state, load_word(bytes, at));
  for (; at < bytes.size(); ++at) state = state >> 8 ^ kCrcTables[0][(state ^ bytes[at]) & 0xFF];
  return ~state;
}

// Masks in place what routers may change in headers written by write_ip_udp (IBA CA17-22).
void mask_headers(MutableBytes headers, bool v4) {
  if (v4) {
    headers[1] = kMask;
    headers[8] = kMask;
    headers[10] = headers[11] = kMask;
  } else {
    headers[0] |= 0x0F;
    headers[1] = headers[2] = headers[3] = kMask;
    headers[7] = kMask;
  }
  headers[headers.size() - 2] = headers[headers.size() - 1] = kMask;
}

}  // namespace

IcrcSeed::IcrcSeed(const Path& path, std::size_t roce_size) : v4_(path.source.is_v4()) {
  std::array<std::uint8_t, kMaskedLrhSize + kIpv6Size + kUdpSize> bytes{};
  std::fill_n(bytes.begin(), kMaskedLrhSize, kMask);
  const MutableBytes headers = MutableBytes(bytes).subspan(kMaskedLrhSize, ip_udp_size(v4_));
  write_ip_udp(headers, path, Ipv4Fragment{}, roce_size);
  mask_headers(headers, v4_);
  base_ = crc(0, Bytes(bytes).first(kMaskedLrhSize + headers.size()));
}

std::uint32_t IcrcSeed::value(Ipv4Fragment fragment) const {
  if (!v4_) return base_;
  return base_ ^ kIdHigh[fragment.id >> 8] ^ kIdLow[fragment.id & 0xFF] ^
         (fragment.dont_fragment ? 0 : kDontFragmentContribution);
}

std::uint32_t icrc(std::uint32_t seed, Bytes packet) {
  std::uint32_t state = take_word(~seed, load_word(packet, 0));
  state = take_word(state, load_word(packet, 4) | kMask);  // byte 4: FECN, BECN, reserved
  state = take_word(state, load_word(packet, 8));
  return crc(~state, packet.subspan(kBthSize));
}

std::uint32_t load_icrc(Bytes packet_with_icrc) {
  return load_word(packet_with_icrc, packet_with_icrc.size() - kIcrcSize);
}

void store_icrc(MutableBytes packet_with_icrc, std::uint32_t icrc) {
  const MutableBytes field = packet_with_icrc.last(kIcrcSize);
  for (std::size_t i = 0; i < kIcrcSize; ++i) {
    field[i] = static_cast<std::uint8_t>(icrc >> (8 * i));
  }
}

bool icrc_matches(std::uint32_t seed, Bytes packet_with_icrc) {
  if (packet_with_icrc.size() < kBthSize + kIcrcSize) return false;
  const Bytes packet = packet_with_icrc.first(packet_with_icrc.size() - kIcrcSize);
  return icrc(seed, packet) == load_icrc(packet_with_icrc);
}

std::optional<Ipv4Fragment> Ipv4IdSolver::solve(std::uint32_t computed, std::uint32_t received,
                                                std::size_t roce_size) {
  if (roce_size != size_) {
    size_ = roce_size;
    // Back over the packet and the headers, then over the identification itself: what is left in
    // the register is the identification as the CRC took it in.
    factor_ = back_over(roce_size - kIcrcSize + kAfterId + 2);
  }
  // As the register took it in: identification in the low 16 bits, the byte with DF above it.
  std::uint32_t input = multiply(computed ^ received, factor_);
  const bool dont_fragment = input >> 16 == 0;
  if (!dont_fragment) input ^= kDontFragmentInput;
  if (input >> 16 == 0) {
    return Ipv4Fragment{.id = static_cast<std::uint16_t>((input & 0xFF) << 8 | input >> 8),
                        .dont_fragment = dont_fragment};
  }
  return std::nullopt;
}

}  // namespace urxe::wire
