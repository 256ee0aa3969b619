// The AETH syndrome: what an acknowledgement says (IBTA 9.7.5.2.1, table 45).
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace urxe::wire {

enum class NakCode : std::uint8_t {
  psn_sequence_error = 0,
  invalid_request = 1,
  remote_access_error = 2,
  remote_operational_error = 3,
  invalid_rd_request = 4,
};

//   7   6 5   4 3 2 1 0
//  +---+-----+-----------+
//  | 0 | kind|   value   |   kind 0: ACK, credits   1: RNR NAK, timer code   3: NAK, code
//  +---+-----+-----------+
class Syndrome {
 public:
  enum class Kind : std::uint8_t { ack = 0, rnr_nak = 1, reserved = 2, nak = 3 };
  static constexpr std::uint8_t kUnlimitedCredits = 0x1F;

  constexpr Syndrome() = default;
  constexpr explicit Syndrome(std::uint8_t bits) : bits_(bits) {}
  static constexpr Syndrome ack() { return Syndrome{kUnlimitedCredits}; }
  static constexpr Syndrome nak(NakCode code) {
    return Syndrome{static_cast<std::uint8_t>(0x60 | static_cast<std::uint8_t>(code))};
  }
  static constexpr Syndrome rnr_nak(std::uint8_t timer_code) {
    return Syndrome{static_cast<std::uint8_t>(0x20 | (timer_code & 0x1F))};
  }

  [[nodiscard]] constexpr Kind kind() const { return static_cast<Kind>(bits_ >> 5 & 3); }
  [[nodiscard]] constexpr std::uint8_t value() const { return bits_ & 0x1F; }
  [[nodiscard]] constexpr std::uint8_t bits() const { return bits_; }
  friend constexpr bool operator==(Syndrome, Syndrome) = default;

 private:
  std::uint8_t bits_ = kUnlimitedCredits;
};

// How long a requester waits after an RNR NAK with this timer code (0...31; IBTA table 46).
[[nodiscard]] constexpr std::chrono::microseconds rnr_delay(std::uint8_t timer_code) {
  constexpr std::array<std::uint32_t, 32> kMicroseconds{
      655360, 10,    20,    30,    40,    60,     80,     120,    160,    240,   320,
      480,    640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240, 15360,
      20480,  30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520};
  return std::chrono::microseconds(kMicroseconds[timer_code & 0x1F]);
}

}  // namespace urxe::wire
