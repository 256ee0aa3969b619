#include "emulator/qp_table.h"

#include "emulator/assert.h"

namespace urxe::emulator {
namespace {

// Where numbering starts in a block: among the first few, so that the table stays small.
constexpr std::uint32_t kStartSpread = 256;

}  // namespace

void QpTable::add(QpnRange range) {
  blocks_.push_back(
      {.range = range, .next = range.count > kStartSpread ? seed_ % kStartSpread : 0});
}

std::uint32_t QpTable::allocate_in(Block& block) {
  while (true) {
    const std::uint32_t index = block.next;
    block.next = (block.next + 1) % block.range.count;
    if (index >= block.qps.size()) block.qps.resize(index + 1);
    if (block.qps[index] == nullptr) return index;
  }
}

std::optional<wire::Qpn> QpTable::allocate() {
  for (Block& block : blocks_) {
    if (block.used == block.range.count) continue;
    return wire::Qpn{block.range.first.value() + allocate_in(block)};
  }
  return std::nullopt;
}

QueuePair& QpTable::insert(std::unique_ptr<QueuePair> qp) {
  const std::uint32_t qpn = qp->qpn().value();
  for (Block& block : blocks_) {
    const std::uint32_t index = qpn - block.range.first.value();
    if (index >= block.range.count) continue;
    URXE_ASSERT(index < block.qps.size() && block.qps[index] == nullptr);
    ++block.used;
    ++size_;
    return *(block.qps[index] = std::move(qp));
  }
  assertion_failed("queue pair number of no block", __FILE__, __LINE__);
}

void QpTable::erase(QueuePair& qp) {
  const std::uint32_t qpn = qp.qpn().value();
  for (Block& block : blocks_) {
    const std::uint32_t index = qpn - block.range.first.value();
    if (index >= block.qps.size()) continue;
    block.qps[index].reset();
    --block.used;
    --size_;
    return;
  }
}

QueuePair* QpTable::find(wire::Qpn qpn) const {
  for (const Block& block : blocks_) {
    const std::uint32_t index = qpn.value() - block.range.first.value();
    if (index < block.qps.size()) return block.qps[index].get();
  }
  return nullptr;
}

}  // namespace urxe::emulator
