// Registered memory of which every byte's content is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

namespace checker {

// A stretch of a Memory.
struct Piece {
  std::size_t offset;
  std::size_t length;
};
using Pieces = std::vector<Piece>;

[[nodiscard]] std::size_t total(const Pieces& pieces);

// Bytes that depend on the seed and their place only.
[[nodiscard]] std::vector<std::uint8_t> pattern(std::uint64_t seed, std::size_t size);

// A word as memory has it.
[[nodiscard]] std::vector<std::uint8_t> bytes_of(std::uint64_t word);

// A copy beside the memory says what each byte should be. Between inaccessible pages, so that a
// byte read or written outside of it is a fault; what lies around a message is part of the copy.
class Memory {
 public:
  Memory(ibv_pd* pd, std::size_t size, int access);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::uint32_t rkey() const { return mr_->rkey; }
  [[nodiscard]] ibv_mr* region() const { return mr_; }
  [[nodiscard]] std::uint64_t address(std::size_t offset) const;
  [[nodiscard]] std::vector<ibv_sge> list(const Pieces& pieces) const;

  // The program writes.
  void write(const Pieces& pieces, std::span<const std::uint8_t> data);
  // The device is expected to have written; data may be shorter than the pieces.
  void expect(const Pieces& pieces, std::span<const std::uint8_t> data);
  [[nodiscard]] bool is_as_expected() const;
  // Fails if a byte is not what it should be.
  void check(const std::string& after) const;

 private:
  std::uint8_t* bytes_;  // the first accessible byte
  const std::size_t size_;
  std::size_t mapped_;
  ibv_mr* mr_;
  std::vector<std::uint8_t> expected_;
};

}  // namespace checker
