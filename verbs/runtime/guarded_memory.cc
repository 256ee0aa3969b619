#include "verbs/runtime/guarded_memory.h"

#include <atomic>
#include <cstring>

#include "verbs/runtime/fault_guard.h"

namespace urxe::verbs {
namespace {

// Nothing is ever mapped at address 0, and the compiler takes it that no such pointer is used.
constexpr std::uint64_t kNull = 0;

template <typename T>
T* pointer(std::uint64_t address) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}

}  // namespace

bool GuardedMemory::read(std::uint64_t from, std::span<std::uint8_t> to) {
  if (to.empty()) return true;
  if (from == kNull) return false;
  return FaultGuard::run([&] { std::memcpy(to.data(), pointer<const void>(from), to.size()); });
}

bool GuardedMemory::write(std::uint64_t to, std::span<const std::uint8_t> from) {
  if (from.empty()) return true;
  if (to == kNull) return false;
  // Programs wait for the last byte of a WRITE by reading it, so it must show last.
  constexpr std::size_t kTail = 8;
  const std::size_t head = from.size() > kTail ? from.size() - kTail : 0;
  return FaultGuard::run([&] {
    std::memcpy(pointer<void>(to), from.data(), head);
    std::atomic_thread_fence(std::memory_order_release);
    std::memcpy(pointer<void>(to + head), from.data() + head, from.size() - head);
  });
}

std::optional<std::uint64_t> GuardedMemory::compare_swap(std::uint64_t address,
                                                         std::uint64_t compare,
                                                         std::uint64_t swap) {
  if (address == kNull) return std::nullopt;
  std::uint64_t expected = compare;
  const bool there = FaultGuard::run([&] {
    std::atomic_ref(*pointer<std::uint64_t>(address)).compare_exchange_strong(expected, swap);
  });
  return there ? std::optional(expected) : std::nullopt;
}

std::optional<std::uint64_t> GuardedMemory::fetch_add(std::uint64_t address, std::uint64_t add) {
  if (address == kNull) return std::nullopt;
  std::uint64_t old = 0;
  const bool there = FaultGuard::run(
      [&] { old = std::atomic_ref(*pointer<std::uint64_t>(address)).fetch_add(add); });
  return there ? std::optional(old) : std::nullopt;
}

bool GuardedMemory::store(std::uint64_t address, std::uint64_t value) {
  if (address == kNull) return false;
  return FaultGuard::run([&] { std::atomic_ref(*pointer<std::uint64_t>(address)).store(value); });
}

}  // namespace urxe::verbs
