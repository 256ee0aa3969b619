// The memory that a program and its emulated device share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include <sys/types.h>
#include <tl/expected.hpp>

#include "verbs/preload/own_mutex.h"
#include "verbs/preload/private_descriptor.h"

namespace urxe::verbs {

class RingMemory;

// A piece of a RingMemory, mapped. The program maps it as well, at an address of its own, and may
// write anything into it at any time.
class RingArea {
 public:
  RingArea(const RingArea&) = delete;
  RingArea& operator=(const RingArea&) = delete;
  // Unmaps it and gives the pages back to the system. Who still has it mapped sees zeros.
  ~RingArea();

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  // What the program passes to mmap (mminfo.offset): whole pages.
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  // In bytes, whole pages (mminfo.size).
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(bytes_.size()); }

 private:
  friend class RingMemory;
  RingArea(std::shared_ptr<RingMemory> memory, std::span<std::byte> bytes, std::uint64_t offset);

  std::shared_ptr<RingMemory> memory_;
  std::span<std::byte> bytes_;
  std::uint64_t offset_;
};

// A memfd, whose areas are the rings of one opened uverbs file. The file that the program opened is
// a descriptor of it, so the program's mmap needs no help of ours.
//
// It is sealed against shrinking: a program that truncates it would take the pages away from under
// the device, which would die of SIGBUS. It only grows, and offsets are not used again, so a late
// mmap of a destroyed ring finds zeros and no other ring. Called from any thread.
class RingMemory : public std::enable_shared_from_this<RingMemory> {
 public:
  // The error is the errno of memfd_create or fcntl.
  static tl::expected<std::shared_ptr<RingMemory>, int> create();
  RingMemory(const RingMemory&) = delete;
  RingMemory& operator=(const RingMemory&) = delete;

  // In a forked child, where the memory is the parent's: lets go of our descriptor. Areas may be
  // dropped after that; nothing else may be called.
  void abandon() { descriptor_.close(); }

  // A new descriptor of the memory, close-on-exec, for the program. The caller's.
  [[nodiscard]] tl::expected<int, int> descriptor() const;
  // A zeroed area of at least `bytes`, mapped. EINVAL: of nothing; ENOMEM: of more than mminfo can
  // say (4 GiB); EFBIG: above the program's RLIMIT_FSIZE; or the errno of ftruncate or mmap.
  [[nodiscard]] tl::expected<std::unique_ptr<RingArea>, int> allocate(std::size_t bytes);

 private:
  friend class RingArea;
  explicit RingMemory(int descriptor);

  int grow(std::uint64_t size);
  void release(std::uint64_t offset, std::size_t size);

  PrivateDescriptor descriptor_;
  pid_t owner_;

  OwnMutex mutex_;
  std::uint64_t end_ = 0;  // where the next area begins
};

}  // namespace urxe::verbs
