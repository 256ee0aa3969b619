#include <algorithm>
#include <cerrno>
#include <climits>
#include <string_view>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs/preload/descriptor_table.h"
#include "verbs/rings/ring_memory.h"

namespace urxe::verbs {
namespace {

std::shared_ptr<RingMemory> make_memory() {
  auto memory = RingMemory::create();
  REQUIRE(memory.has_value());
  return *memory;
}

std::unique_ptr<RingArea> allocate(RingMemory& memory, std::size_t bytes) {
  auto area = memory.allocate(bytes);
  REQUIRE(area.has_value());
  return std::move(*area);
}

struct ProgramDescriptor {
  explicit ProgramDescriptor(const RingMemory& memory) : fd(memory.descriptor().value()) {}
  ProgramDescriptor(const ProgramDescriptor&) = delete;
  ProgramDescriptor& operator=(const ProgramDescriptor&) = delete;
  ~ProgramDescriptor() { close(fd); }
  const int fd;
};

bool is_all(std::span<const std::byte> bytes, int value) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [value](std::byte b) { return b == std::byte(value); });
}

blkcnt_t blocks_of(int fd) {
  struct stat status {};
  REQUIRE(fstat(fd, &status) == 0);
  return status.st_blocks;
}

TEST_CASE("a program maps an area through the descriptor that it was given") {
  const auto memory = make_memory();
  const auto first = allocate(*memory, 100);
  const auto second = allocate(*memory, 100);
  second->bytes()[99] = std::byte{42};

  const ProgramDescriptor program(*memory);
  void* const mapped = mmap(nullptr, second->size(), PROT_READ | PROT_WRITE, MAP_SHARED, program.fd,
                            static_cast<off_t>(second->offset()));
  REQUIRE(mapped != MAP_FAILED);
  auto* const bytes = static_cast<std::byte*>(mapped);
  CHECK(bytes[99] == std::byte{42});
  bytes[0] = std::byte{7};
  CHECK(second->bytes()[0] == std::byte{7});
  CHECK(is_all(first->bytes(), 0));
  munmap(mapped, second->size());
}

TEST_CASE("areas are zeroed, whole pages, and apart") {
  const auto memory = make_memory();
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto first = allocate(*memory, 1);
  const auto second = allocate(*memory, page + 1);
  CHECK(first->size() == page);
  CHECK(second->size() == 2 * page);
  CHECK(first->bytes().size() == first->size());
  CHECK(second->offset() >= first->offset() + first->size());
  CHECK(second->offset() % page == 0);
  CHECK(is_all(second->bytes(), 0));
}

TEST_CASE("the memory of a dead area is given back, and its offset not used again") {
  const auto memory = make_memory();
  const ProgramDescriptor program(*memory);
  auto area = allocate(*memory, 1 << 20);
  const std::uint64_t offset = area->offset();
  std::fill(area->bytes().begin(), area->bytes().end(), std::byte{1});
  CHECK(blocks_of(program.fd) > 0);
  area.reset();
  CHECK(blocks_of(program.fd) == 0);
  CHECK(allocate(*memory, 1 << 20)->offset() > offset);
}

TEST_CASE("an area keeps its memory alive") {
  auto memory = make_memory();
  const auto area = allocate(*memory, 1);
  memory.reset();
  area->bytes()[0] = std::byte{1};
  CHECK(area->bytes()[0] == std::byte{1});
}

TEST_CASE("a program cannot take ring memory away from under the device") {
  const auto memory = make_memory();
  const auto area = allocate(*memory, 1);
  const ProgramDescriptor program(*memory);
  CHECK(ftruncate(program.fd, 0) != 0);
  CHECK(errno == EPERM);
  CHECK(fcntl(program.fd, F_ADD_SEALS, F_SEAL_GROW) != 0);
  CHECK(errno == EPERM);
  CHECK(fallocate(program.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, area->size()) == 0);
  CHECK(is_all(area->bytes(), 0));
  CHECK(memory->allocate(1).has_value());
}

TEST_CASE("the program's descriptor of ring memory closes on exec and is not ours") {
  const auto memory = make_memory();
  const ProgramDescriptor program(*memory);
  CHECK((fcntl(program.fd, F_GETFD) & FD_CLOEXEC) != 0);
  CHECK_FALSE(descriptors.holds(program.fd));
}

TEST_CASE("ring memory has a descriptor that the program cannot close") {
  const std::uint64_t before = descriptors.next(0, INT_MAX);
  const auto memory = make_memory();
  const std::uint64_t ours = descriptors.next(0, INT_MAX);
  CHECK(before > INT_MAX);
  REQUIRE(ours <= INT_MAX);
  CHECK(descriptors.find(static_cast<int>(ours)).is_private());
}

TEST_CASE("an area of no size or of more than mminfo can say is refused") {
  const auto memory = make_memory();
  CHECK(memory->allocate(0).error() == EINVAL);
  CHECK(memory->allocate(std::size_t{1} << 32).error() == ENOMEM);
  CHECK(memory->allocate((std::size_t{1} << 32) - 1).error() == ENOMEM);  // as whole pages
  CHECK(memory->allocate(SIZE_MAX).error() == ENOMEM);
}

TEST_CASE("an area above RLIMIT_FSIZE is refused, and no signal comes") {
  const auto memory = make_memory();
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small{.rlim_cur = 1 << 16, .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const auto refused = memory->allocate(1 << 17);
  const auto fits = memory->allocate(1 << 16);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == EFBIG);
  CHECK(fits.has_value());
}

TEST_CASE("a forked child that drops an area leaves its parent's alone") {
  const auto memory = make_memory();
  auto area = allocate(*memory, 1);
  area->bytes()[0] = std::byte{9};
  const pid_t child = fork();
  if (child == 0) {
    area.reset();
    _exit(0);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(area->bytes()[0] == std::byte{9});
}

}  // namespace
}  // namespace urxe::verbs
