#include "tests/compat/checker/memory.h"

#include <cstring>

#include <sys/mman.h>

#include "tests/compat/checker/check.h"

namespace checker {
namespace {

constexpr std::size_t kPage = 4096;

std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// Calls f(place in the memory, place in the data, length) for each piece that the data reaches.
template <typename F>
void for_each(const Pieces& pieces, std::size_t size, F f) {
  std::size_t done = 0;
  for (const Piece& piece : pieces) {
    const std::size_t length = std::min(piece.length, size - done);
    if (length > 0) f(piece.offset, done, length);
    done += length;
  }
  if (done != size) fail("%zu bytes into pieces of %zu", size, done);
}

}  // namespace

std::size_t total(const Pieces& pieces) {
  std::size_t sum = 0;
  for (const Piece& piece : pieces) sum += piece.length;
  return sum;
}

std::vector<std::uint8_t> pattern(std::uint64_t seed, std::size_t size) {
  std::vector<std::uint8_t> result(size);
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (i % 8 == 0) word = mixed(seed * 0x100000001B3ULL + i);
    result[i] = static_cast<std::uint8_t>(word >> (8 * (i % 8)));
  }
  return result;
}

std::vector<std::uint8_t> bytes_of(std::uint64_t word) {
  std::vector<std::uint8_t> bytes(sizeof word);
  std::memcpy(bytes.data(), &word, sizeof word);
  return bytes;
}

Memory::Memory(ibv_pd* pd, std::size_t size, int access) : size_(size) {
  // The end is against the inaccessible page; the start is not aligned to anything.
  const std::size_t inside = (size + kPage - 1) / kPage * kPage;
  mapped_ = inside + 2 * kPage;
  void* map = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) fail_with_errno("mmap");
  auto* first = static_cast<std::uint8_t*>(map) + kPage;
  succeeds(mprotect(first, inside, PROT_READ | PROT_WRITE), "mprotect");
  bytes_ = first + (inside - size);
  expected_ = pattern(size, size);
  std::memcpy(bytes_, expected_.data(), size);
  mr_ = exists(ibv_reg_mr(pd, bytes_, size, access), "ibv_reg_mr");
}

Memory::~Memory() {
  succeeds(ibv_dereg_mr(mr_), "ibv_dereg_mr");
  const std::size_t inside = mapped_ - 2 * kPage;
  munmap(bytes_ - (inside - size_) - kPage, mapped_);
}

std::uint64_t Memory::address(std::size_t offset) const {
  return reinterpret_cast<std::uint64_t>(bytes_) + offset;
}

std::vector<ibv_sge> Memory::list(const Pieces& pieces) const {
  std::vector<ibv_sge> result;
  for (const Piece& piece : pieces) {
    if (piece.offset + piece.length > size_) fail("a case is larger than the memory");
    result.push_back({.addr = address(piece.offset),
                      .length = static_cast<std::uint32_t>(piece.length),
                      .lkey = mr_->lkey});
  }
  return result;
}

void Memory::write(const Pieces& pieces, std::span<const std::uint8_t> data) {
  for_each(pieces, data.size(), [&](std::size_t to, std::size_t from, std::size_t length) {
    std::memcpy(bytes_ + to, data.data() + from, length);
  });
  expect(pieces, data);
}

void Memory::expect(const Pieces& pieces, std::span<const std::uint8_t> data) {
  for_each(pieces, data.size(), [&](std::size_t to, std::size_t from, std::size_t length) {
    std::memcpy(expected_.data() + to, data.data() + from, length);
  });
}

bool Memory::is_as_expected() const { return std::memcmp(bytes_, expected_.data(), size_) == 0; }

void Memory::check(const std::string& after) const {
  if (is_as_expected()) return;
  std::size_t wrong = 0;
  std::size_t first = size_;
  for (std::size_t i = 0; i < size_; ++i) {
    if (bytes_[i] == expected_[i]) continue;
    first = std::min(first, i);
    ++wrong;
  }
  fail("%s: %zu bytes are wrong, the first at offset %zu: %02x instead of %02x", after.c_str(),
       wrong, first, bytes_[first], expected_[first]);
}

}  // namespace checker
