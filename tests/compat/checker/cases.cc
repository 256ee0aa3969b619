#include "tests/compat/checker/cases.h"

#include <algorithm>

#include "tests/compat/checker/check.h"
#include "tests/compat/checker/verbs.h"

namespace checker {
namespace {

constexpr std::size_t kLongestGap = 67;

const char* name_of(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_SEND:
      return "SEND";
    case IBV_WR_SEND_WITH_IMM:
      return "SEND_WITH_IMM";
    case IBV_WR_RDMA_WRITE:
      return "RDMA_WRITE";
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return "RDMA_WRITE_WITH_IMM";
    case IBV_WR_RDMA_READ:
      return "RDMA_READ";
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return "CMP_SWAP";
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return "FETCH_ADD";
    default:
      return "?";
  }
}

std::vector<ibv_wr_opcode> opcodes_of(ibv_qp_type transport) {
  std::vector<ibv_wr_opcode> opcodes{IBV_WR_SEND, IBV_WR_SEND_WITH_IMM};
  if (transport == IBV_QPT_UD) return opcodes;
  opcodes.insert(opcodes.end(), {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM});
  if (transport == IBV_QPT_RC) opcodes.push_back(IBV_WR_RDMA_READ);
  return opcodes;
}

std::vector<std::size_t> sizes_of(const Options& options, std::size_t datagram) {
  if (options.transport == IBV_QPT_UD)
    return {0, 1, 2, 3, 4, 5, 7, 8, 64, 255, 256, 257, datagram - 1, datagram};
  const std::size_t mtu = options.mtu_bytes();
  if (options.brief) return {0, 1, 3, mtu, mtu + 1, 3 * mtu + 1};
  return {0,           1,       2,           3,           4,       5,          7,
          8,           63,      64,          65,          mtu - 1, mtu,        mtu + 1,
          2 * mtu - 1, 2 * mtu, 2 * mtu + 1, 3 * mtu - 1, 3 * mtu, 3 * mtu + 1};
}

void add_by_size(std::vector<Case>& cases, const Options& options, std::size_t datagram) {
  // A datagram's receive list begins with the GRH's place.
  const unsigned most = options.transport == IBV_QPT_UD || options.shared_receive ? 26 : kMaxSge;
  for (const ibv_wr_opcode opcode : opcodes_of(options.transport)) {
    for (const std::size_t size : sizes_of(options, datagram)) {
      cases.push_back({.opcode = opcode, .size = size, .sges = 1});
      if (!options.brief) cases.push_back({.opcode = opcode, .size = size, .sges = 3});
      cases.push_back({.opcode = opcode, .size = size, .sges = most});
      if (size <= kInline && opcode != IBV_WR_RDMA_READ)
        cases.push_back({.opcode = opcode, .size = size, .sges = 3, .is_inline = true});
    }
    if (!options.brief && opcode != IBV_WR_RDMA_READ)
      cases.push_back({.opcode = opcode, .size = kInline, .sges = 1, .is_inline = true});
  }
}

void add_reliable(std::vector<Case>& cases, const Options& options) {
  for (int i = 0; i < 4; ++i) {
    cases.push_back({.opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .size = 8, .sges = 1});
    cases.push_back({.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .size = 8, .sges = 1});
  }
  if (options.brief) return;
  const unsigned most = options.shared_receive ? 26 : kMaxSge;
  for (const ibv_wr_opcode opcode : opcodes_of(IBV_QPT_RC))
    cases.push_back({.opcode = opcode, .size = kLargeMessage, .sges = most});
}

}  // namespace

std::size_t Dice::below(std::size_t limit) {
  state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
  return (state_ >> 33) % limit;
}

bool Case::has_immediate() const {
  return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}
bool Case::is_send() const { return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM; }
bool Case::takes_receive() const { return is_send() || opcode == IBV_WR_RDMA_WRITE_WITH_IMM; }
bool Case::is_atomic() const {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

std::string Case::name() const {
  return text("case %u: %s of %zu bytes, %u SGEs at most%s", number, name_of(opcode), size, sges,
              is_inline ? ", inline" : "");
}

std::vector<Case> all_cases(const Options& options, std::size_t datagram) {
  std::vector<Case> cases;
  add_by_size(cases, options, datagram);
  if (options.transport == IBV_QPT_RC) add_reliable(cases, options);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].number = static_cast<std::uint32_t>(i);
    cases[i].seed = options.seed * 1000003 + i;
  }
  return cases;
}

Pieces lay_out(Dice& dice, std::size_t size, unsigned count, std::size_t start, std::size_t room) {
  Pieces pieces;
  if (size == 0) return pieces;
  count = static_cast<unsigned>(std::min<std::size_t>(count, size));
  std::size_t offset = start + dice.below(kLongestGap);
  std::size_t left = size;
  for (unsigned i = 0; i < count; ++i) {
    const unsigned others = count - i - 1;
    const std::size_t length =
        others == 0 ? left : 1 + dice.below(std::min(left - others, 2 * left / (others + 1)));
    pieces.push_back({offset, length});
    offset += length + 1 + dice.below(kLongestGap);
    left -= length;
  }
  if (pieces.back().offset + pieces.back().length > room) fail("no room for %zu bytes", size);
  return pieces;
}

}  // namespace checker
