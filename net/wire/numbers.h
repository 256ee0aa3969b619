// The protocol's numbers, each with a type of its own, so that a PSN never meets a QPN or a length.
#pragma once

#include <compare>
#include <cstdint>

namespace urxe::wire {

// A number that is only compared and printed. `Tag` makes the type, `Bits` is its width on the
// wire.
template <typename Tag, typename Value, unsigned Bits>
class Number {
 public:
  static constexpr Value kMask = static_cast<Value>((std::uint64_t{1} << Bits) - 1);

  constexpr Number() = default;
  constexpr explicit Number(Value value) : value_(static_cast<Value>(value & kMask)) {}

  [[nodiscard]] constexpr Value value() const { return value_; }
  friend constexpr auto operator<=>(Number, Number) = default;

 private:
  Value value_ = 0;
};

using Qpn = Number<struct QpnTag, std::uint32_t, 24>;
using LKey = Number<struct LKeyTag, std::uint32_t, 32>;
using RKey = Number<struct RKeyTag, std::uint32_t, 32>;
using QKey = Number<struct QKeyTag, std::uint32_t, 32>;
using PKey = Number<struct PKeyTag, std::uint16_t, 16>;
using Msn = Number<struct MsnTag, std::uint32_t, 24>;

inline constexpr Qpn kGsiQpn{1};
inline constexpr Qpn kMulticastQpn{0xFFFFFF};
inline constexpr PKey kDefaultPKey{0xFFFF};
inline constexpr QKey kGsiQKey{0x80010000};

// Of either membership (IBTA 10.9.3).
[[nodiscard]] constexpr bool in_default_partition(PKey key) {
  constexpr std::uint16_t kFullMembership = 0x8000;
  return (key.value() | kFullMembership) == kDefaultPKey.value();
}

constexpr Msn next(Msn msn) { return Msn{msn.value() + 1}; }

// A packet sequence number: 24 bits that wrap. There is no operator<, because "before" has a
// meaning only within half of the number space (IBTA 9.7.2).
class Psn {
 public:
  static constexpr std::uint32_t kModulus = 1U << 24;
  static constexpr std::uint32_t kMask = kModulus - 1;

  constexpr Psn() = default;
  constexpr explicit Psn(std::uint32_t value) : value_(value & kMask) {}

  [[nodiscard]] constexpr std::uint32_t value() const { return value_; }

  // How far this number lies ahead of `origin`: -2^23 ... 2^23 - 1, negative if behind.
  [[nodiscard]] constexpr std::int32_t ahead_of(Psn origin) const {
    const std::uint32_t distance = (value_ - origin.value_) & kMask;
    return distance < kModulus / 2 ? static_cast<std::int32_t>(distance)
                                   : static_cast<std::int32_t>(distance - kModulus);
  }
  [[nodiscard]] constexpr bool is_before(Psn other) const { return ahead_of(other) < 0; }

  // Whether this number is one of the `count` numbers from `first` on.
  [[nodiscard]] constexpr bool in_window(Psn first, std::uint32_t count) const {
    return ((value_ - first.value_) & kMask) < count;
  }

  friend constexpr Psn operator+(Psn psn, std::uint32_t count) { return Psn{psn.value_ + count}; }
  friend constexpr Psn operator-(Psn psn, std::uint32_t count) { return Psn{psn.value_ - count}; }
  constexpr Psn& operator++() { return *this = *this + 1; }
  friend constexpr bool operator==(Psn, Psn) = default;

 private:
  std::uint32_t value_ = 0;
};

}  // namespace urxe::wire
