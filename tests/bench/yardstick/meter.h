// Counts what arrives in a given time, after a time to warm up.
#pragma once

#include <cstdint>

#include "tests/bench/yardstick/two_processes.h"

namespace urxe::bench {

class Meter {
 public:
  explicit Meter(double seconds)
      : wanted_(static_cast<std::uint64_t>(seconds * 1e9)), warm_at_(now_ns() + kWarmUp) {}

  void add(std::size_t bytes, std::size_t packets) {
    all_bytes_ += bytes;
    if (since_ == 0) return;
    bytes_ += bytes;
    packets_ += packets;
  }
  // Asked once per read.
  [[nodiscard]] bool is_over() {
    const std::uint64_t now = now_ns();
    if (since_ == 0 && now >= warm_at_) since_ = now;
    until_ = now;
    return since_ != 0 && now - since_ >= wanted_;
  }
  void report(Shared& shared) const {
    shared.bytes.store(bytes_);
    shared.all_bytes.store(all_bytes_);
    shared.packets.store(packets_);
    shared.nanoseconds.store(until_ - since_);
    shared.stop.store(true);
  }

 private:
  static constexpr std::uint64_t kWarmUp = 200'000'000;  // ns

  std::uint64_t wanted_;
  std::uint64_t warm_at_;
  std::uint64_t since_ = 0;
  std::uint64_t until_ = 0;
  std::uint64_t all_bytes_ = 0;  // with those of the warm-up
  std::uint64_t bytes_ = 0;
  std::uint64_t packets_ = 0;
};

}  // namespace urxe::bench
