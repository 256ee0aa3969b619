// The program's memory as commands name it: by addresses that may be wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace urxe::verbs::uverbs {

struct UserBuffer {
  std::uint64_t address = 0;
  std::size_t size = 0;

  // What is behind the first `count` bytes.
  [[nodiscard]] UserBuffer behind(std::size_t count) const {
    return count < size ? UserBuffer{address + count, size - count} : UserBuffer{};
  }
};

// Each is false if the memory is not there: EFAULT.
[[nodiscard]] bool copy_from_user(void* to, std::uint64_t from, std::size_t size);
[[nodiscard]] bool copy_to_user(std::uint64_t to, const void* from, std::size_t size);
[[nodiscard]] bool clear_user(UserBuffer buffer);
// Whether all bytes are zero; nothing if the memory is not there.
[[nodiscard]] std::optional<bool> is_cleared(UserBuffer buffer);

// Whether all of a range is mapped, with whatever permission.
[[nodiscard]] bool is_mapped(UserBuffer range);

}  // namespace urxe::verbs::uverbs
