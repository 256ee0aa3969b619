#include "verbs/rings/ring_memory.h"

#include <cerrno>
#include <limits>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace urxe::verbs {
namespace {

// linux/memfd.h since 6.3. Systems may insist on it (vm.memfd_noexec); older ones do not know it.
constexpr unsigned kNoExecSeal = 0x0008U;

std::size_t round_up_to_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

int make_memfd() {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int descriptor = memfd_create("urxe-rings", kFlags | kNoExecSeal);
  if (descriptor >= 0 || errno != EINVAL) return descriptor;
  return memfd_create("urxe-rings", kFlags);
}

// F_SEAL_SEAL: so that the program adds no seal that would stop us from growing or mapping it.
int seal(int descriptor) { return fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL); }

}  // namespace

RingArea::RingArea(std::shared_ptr<RingMemory> memory, std::span<std::byte> bytes,
                   std::uint64_t offset)
    : memory_(std::move(memory)), bytes_(bytes), offset_(offset) {}

RingArea::~RingArea() {
  munmap(bytes_.data(), bytes_.size());
  memory_->release(offset_, bytes_.size());
}

tl::expected<std::shared_ptr<RingMemory>, int> RingMemory::create() {
  const int descriptor = make_memfd();
  if (descriptor < 0) return tl::unexpected(errno);
  std::shared_ptr<RingMemory> memory(new RingMemory(descriptor));
  if (seal(memory->descriptor_.number()) != 0) return tl::unexpected(errno);
  return memory;
}

RingMemory::RingMemory(int descriptor) : descriptor_(descriptor), owner_(getpid()) {}

tl::expected<int, int> RingMemory::descriptor() const {
  const int copy = fcntl(descriptor_.number(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return tl::unexpected(errno);
  return copy;
}

tl::expected<std::unique_ptr<RingArea>, int> RingMemory::allocate(std::size_t bytes) {
  constexpr std::size_t kMostThatMminfoCanSay = std::numeric_limits<std::uint32_t>::max();
  if (bytes == 0) return tl::unexpected(EINVAL);
  if (bytes > kMostThatMminfoCanSay) return tl::unexpected(ENOMEM);
  const std::size_t size = round_up_to_pages(bytes);
  if (size > kMostThatMminfoCanSay) return tl::unexpected(ENOMEM);

  const std::lock_guard lock(mutex_);
  if (const int error = grow(end_ + size); error != 0) return tl::unexpected(error);
  void* const data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.number(),
                          static_cast<off_t>(end_));
  if (data == MAP_FAILED) return tl::unexpected(errno);
  const std::uint64_t offset = end_;
  end_ += size;
  return std::unique_ptr<RingArea>(
      new RingArea(shared_from_this(), {static_cast<std::byte*>(data), size}, offset));
}

// Beyond RLIMIT_FSIZE, ftruncate does not only fail: its signal ends the program.
int RingMemory::grow(std::uint64_t size) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && size > limit.rlim_cur) return EFBIG;
  return ftruncate(descriptor_.number(), static_cast<off_t>(size)) == 0 ? 0 : errno;
}

// Not in a forked child, whose parent still uses the same pages.
void RingMemory::release(std::uint64_t offset, std::size_t size) {
  if (getpid() != owner_) return;
  fallocate(descriptor_.number(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(offset), static_cast<off_t>(size));
}

}  // namespace urxe::verbs
