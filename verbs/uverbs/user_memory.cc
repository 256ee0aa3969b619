#include "verbs/uverbs/user_memory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include <sys/mman.h>
#include <unistd.h>

#include "verbs/runtime/guarded_memory.h"

namespace urxe::verbs::uverbs {
namespace {

constexpr std::size_t kChunk = 256;

}  // namespace

bool copy_from_user(void* to, std::uint64_t from, std::size_t size) {
  return size == 0 || GuardedMemory().read(from, {static_cast<std::uint8_t*>(to), size});
}

bool copy_to_user(std::uint64_t to, const void* from, std::size_t size) {
  return size == 0 || GuardedMemory().write(to, {static_cast<const std::uint8_t*>(from), size});
}

bool clear_user(UserBuffer buffer) {
  static constexpr std::array<std::uint8_t, kChunk> kZeros{};
  for (; buffer.size > 0; buffer = buffer.behind(kChunk)) {
    if (!copy_to_user(buffer.address, kZeros.data(), std::min(buffer.size, kChunk))) return false;
  }
  return true;
}

std::optional<bool> is_cleared(UserBuffer buffer) {
  std::array<std::uint8_t, kChunk> bytes;
  for (; buffer.size > 0; buffer = buffer.behind(kChunk)) {
    const std::size_t size = std::min(buffer.size, kChunk);
    if (!copy_from_user(bytes.data(), buffer.address, size)) return std::nullopt;
    const std::span<const std::uint8_t> read(bytes.data(), size);
    if (std::any_of(read.begin(), read.end(), [](auto byte) { return byte != 0; })) return false;
  }
  return true;
}

bool is_mapped(UserBuffer range) {
  static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (range.size == 0) return true;
  const std::uint64_t first = range.address & ~(page - 1);
  // Asynchronous, so nothing is written: it only says ENOMEM if there is a hole.
  auto* const start = reinterpret_cast<void*>(static_cast<std::uintptr_t>(first));
  return msync(start, range.size + (range.address - first), MS_ASYNC) == 0 || errno != ENOMEM;
}

}  // namespace urxe::verbs::uverbs
