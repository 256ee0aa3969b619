// Random numbers that are the same on every machine for one seed: the standard library's
// distributions are not.
#pragma once

#include <cstdint>

namespace urxe::net {

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() { return mix(state_ += kGamma); }
  // 0 ... bound - 1; 0 if bound is 0.
  std::uint64_t below(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((Wide{next()} * bound) >> 64);
  }
  // Both ends included.
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    const std::uint64_t span = high - low + 1;
    return span == 0 ? next() : low + below(span);
  }
  bool chance(double probability) { return unit() < probability; }
  // 0 <= x < 1.
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  // An independent stream: what is drawn from it does not change what is drawn here.
  [[nodiscard]] Random fork(std::uint64_t label) const {
    return Random(mix(state_ ^ mix(label + kGamma)));
  }

 private:
  static constexpr std::uint64_t kGamma = 0x9E3779B97F4A7C15;
  static constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

}  // namespace urxe::net
