// Time as the sans-IO parts see it: a value that comes in. Nothing here can ask what time it is.
#pragma once

#include <chrono>
#include <cstdint>

namespace urxe {

// A time line without a now(): the caller says whether it is CLOCK_MONOTONIC or a simulator's.
struct Timeline {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Timeline>;
  static constexpr bool is_steady = true;
};

using Duration = Timeline::duration;
using Time = Timeline::time_point;

// A deadline that never comes.
inline constexpr Time kNever = Time::max();

}  // namespace urxe
