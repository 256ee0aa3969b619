// Queue pairs by number.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "emulator/queue_pair.h"
#include "net/wire/numbers.h"

namespace urxe::emulator {

// Consecutive queue pair numbers: those of one process slot, or any others.
struct QpnRange {
  wire::Qpn first;
  std::uint32_t count = 0;
};

// Numbers are given out in turn: a number that was freed rests until all others were used, so that
// packets of a connection that is gone find nobody (IBTA 10.2.4.5).
class QpTable {
 public:
  explicit QpTable(QpnRange range, std::uint32_t seed) : seed_(seed) { add(range); }

  void add(QpnRange range);
  [[nodiscard]] std::optional<wire::Qpn> allocate();
  QueuePair& insert(std::unique_ptr<QueuePair> qp);
  void erase(QueuePair& qp);
  [[nodiscard]] QueuePair* find(wire::Qpn qpn) const;
  [[nodiscard]] std::size_t size() const { return size_; }

  template <typename Visit>
  void for_each(Visit visit) const {
    for (const Block& block : blocks_) {
      for (const auto& qp : block.qps) {
        if (qp != nullptr) visit(*qp);
      }
    }
  }
  void clear() { blocks_.clear(); }

 private:
  struct Block {
    QpnRange range;
    std::vector<std::unique_ptr<QueuePair>> qps{};  // grows as numbers are used
    std::uint32_t next = 0;
    std::uint32_t used = 0;
  };
  [[nodiscard]] static std::uint32_t allocate_in(Block& block);

  std::vector<Block> blocks_;
  std::uint32_t seed_;
  std::size_t size_ = 0;
};

}  // namespace urxe::emulator
