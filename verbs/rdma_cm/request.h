// A command as the program wrote it.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "verbs/runtime/guarded_memory.h"

namespace urxe::verbs::rdma_cm {

// Reads the command and writes the response where the program said; both may be bad addresses.
class Request {
 public:
  Request(std::uint64_t data, std::size_t in, std::size_t out) : data_(data), in_(in), out_(out) {}

  [[nodiscard]] std::size_t in() const { return in_; }
  [[nodiscard]] std::size_t out() const { return out_; }

  // What a shorter, older command lacks is zero. 0 or a negative errno.
  template <typename Command>
  [[nodiscard]] int read(Command& command) const {
    static_assert(std::is_trivially_copyable_v<Command>);
    command = {};
    const auto bytes =
        std::span(reinterpret_cast<std::uint8_t*>(&command), std::min(in_, sizeof(command)));
    return GuardedMemory().read(data_, bytes) ? 0 : -EFAULT;
  }
  // As much of the response as the program has room for.
  template <typename Response>
  [[nodiscard]] int write(std::uint64_t address, const Response& response) const {
    return write_bytes(address, {reinterpret_cast<const std::uint8_t*>(&response),
                                 std::min(out_, sizeof(response))});
  }
  [[nodiscard]] static int write_bytes(std::uint64_t address, std::span<const std::uint8_t> bytes) {
    return GuardedMemory().write(address, bytes) ? 0 : -EFAULT;
  }

 private:
  std::uint64_t data_;
  std::size_t in_;
  std::size_t out_;
};

}  // namespace urxe::verbs::rdma_cm
