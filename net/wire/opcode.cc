#include "net/wire/opcode.h"

namespace urxe::wire {
namespace {

using enum Opcode;
using enum Operation;
using enum Position;
using H = Header;
using P = PayloadRule;
using S = Service;

constexpr HeaderSet kNone{};

constexpr std::array<OpcodeInfo, 40> kTable{{
    {rc_send_first, S::rc, send, first, kNone, P::exact_mtu, "RC SEND_FIRST"},
    {rc_send_middle, S::rc, send, middle, kNone, P::exact_mtu, "RC SEND_MIDDLE"},
    {rc_send_last, S::rc, send, last, kNone, P::up_to_mtu, "RC SEND_LAST"},
    {rc_send_last_immediate, S::rc, send, last, H::immediate, P::up_to_mtu, "RC SEND_LAST_IMM"},
    {rc_send_only, S::rc, send, only, kNone, P::up_to_mtu, "RC SEND_ONLY"},
    {rc_send_only_immediate, S::rc, send, only, H::immediate, P::up_to_mtu, "RC SEND_ONLY_IMM"},
    {rc_write_first, S::rc, rdma_write, first, H::reth, P::exact_mtu, "RC RDMA_WRITE_FIRST"},
    {rc_write_middle, S::rc, rdma_write, middle, kNone, P::exact_mtu, "RC RDMA_WRITE_MIDDLE"},
    {rc_write_last, S::rc, rdma_write, last, kNone, P::up_to_mtu, "RC RDMA_WRITE_LAST"},
    {rc_write_last_immediate, S::rc, rdma_write, last, H::immediate, P::up_to_mtu,
     "RC RDMA_WRITE_LAST_IMM"},
    {rc_write_only, S::rc, rdma_write, only, H::reth, P::up_to_mtu, "RC RDMA_WRITE_ONLY"},
    {rc_write_only_immediate, S::rc, rdma_write, only, H::reth | H::immediate, P::up_to_mtu,
     "RC RDMA_WRITE_ONLY_IMM"},
    {rc_read_request, S::rc, rdma_read_request, only, H::reth, P::none, "RC RDMA_READ_REQUEST"},
    {rc_read_response_first, S::rc, rdma_read_response, first, H::aeth, P::exact_mtu,
     "RC RDMA_READ_RESPONSE_FIRST"},
    {rc_read_response_middle, S::rc, rdma_read_response, middle, kNone, P::exact_mtu,
     "RC RDMA_READ_RESPONSE_MIDDLE"},
    {rc_read_response_last, S::rc, rdma_read_response, last, H::aeth, P::up_to_mtu,
     "RC RDMA_READ_RESPONSE_LAST"},
    {rc_read_response_only, S::rc, rdma_read_response, only, H::aeth, P::up_to_mtu,
     "RC RDMA_READ_RESPONSE_ONLY"},
    {rc_acknowledge, S::rc, acknowledge, only, H::aeth, P::none, "RC ACKNOWLEDGE"},
    {rc_atomic_acknowledge, S::rc, atomic_acknowledge, only, H::aeth | H::atomic_ack_eth, P::none,
     "RC ATOMIC_ACKNOWLEDGE"},
    {rc_compare_swap, S::rc, compare_swap, only, H::atomic_eth, P::none, "RC COMPARE_SWAP"},
    {rc_fetch_add, S::rc, fetch_add, only, H::atomic_eth, P::none, "RC FETCH_ADD"},
    {rc_send_last_invalidate, S::rc, send, last, H::ieth, P::up_to_mtu, "RC SEND_LAST_INV"},
    {rc_send_only_invalidate, S::rc, send, only, H::ieth, P::up_to_mtu, "RC SEND_ONLY_INV"},
    {rc_flush, S::rc, flush, only, H::feth | H::reth, P::none, "RC FLUSH"},
    {rc_atomic_write, S::rc, atomic_write, only, H::reth, P::eight, "RC ATOMIC_WRITE"},
    {uc_send_first, S::uc, send, first, kNone, P::exact_mtu, "UC SEND_FIRST"},
    {uc_send_middle, S::uc, send, middle, kNone, P::exact_mtu, "UC SEND_MIDDLE"},
    {uc_send_last, S::uc, send, last, kNone, P::up_to_mtu, "UC SEND_LAST"},
    {uc_send_last_immediate, S::uc, send, last, H::immediate, P::up_to_mtu, "UC SEND_LAST_IMM"},
    {uc_send_only, S::uc, send, only, kNone, P::up_to_mtu, "UC SEND_ONLY"},
    {uc_send_only_immediate, S::uc, send, only, H::immediate, P::up_to_mtu, "UC SEND_ONLY_IMM"},
    {uc_write_first, S::uc, rdma_write, first, H::reth, P::exact_mtu, "UC RDMA_WRITE_FIRST"},
    {uc_write_middle, S::uc, rdma_write, middle, kNone, P::exact_mtu, "UC RDMA_WRITE_MIDDLE"},
    {uc_write_last, S::uc, rdma_write, last, kNone, P::up_to_mtu, "UC RDMA_WRITE_LAST"},
    {uc_write_last_immediate, S::uc, rdma_write, last, H::immediate, P::up_to_mtu,
     "UC RDMA_WRITE_LAST_IMM"},
    {uc_write_only, S::uc, rdma_write, only, H::reth, P::up_to_mtu, "UC RDMA_WRITE_ONLY"},
    {uc_write_only_immediate, S::uc, rdma_write, only, H::reth | H::immediate, P::up_to_mtu,
     "UC RDMA_WRITE_ONLY_IMM"},
    {ud_send_only, S::ud, send, only, H::deth, P::up_to_mtu, "UD SEND_ONLY"},
    {ud_send_only_immediate, S::ud, send, only, H::deth | H::immediate, P::up_to_mtu,
     "UD SEND_ONLY_IMM"},
    {cnp, S::cnp, congestion_notification, only, kNone, P::reserved, "CNP"},
}};

constexpr std::size_t size_of_headers(HeaderSet headers) {
  std::size_t size = kBthSize;
  if (headers.has(H::deth)) size += kDethSize;
  if (headers.has(H::reth)) size += kRethSize;
  if (headers.has(H::atomic_eth)) size += kAtomicEthSize;
  if (headers.has(H::aeth)) size += kAethSize;
  if (headers.has(H::atomic_ack_eth)) size += kAtomicAckEthSize;
  if (headers.has(H::immediate)) size += kImmediateSize;
  if (headers.has(H::ieth)) size += kIethSize;
  if (headers.has(H::feth)) size += kFethSize;
  return size;
}

constexpr std::uint8_t kAbsent = 0xFF;

// Opcode byte to row of kTable.
constexpr auto kRows = [] {
  std::array<std::uint8_t, 256> rows{};
  rows.fill(kAbsent);
  for (std::size_t row = 0; row < kTable.size(); ++row) {
    rows[static_cast<std::uint8_t>(kTable[row].opcode)] = static_cast<std::uint8_t>(row);
  }
  return rows;
}();

constexpr auto kHeaderSizes = [] {
  std::array<std::uint8_t, kTable.size()> sizes{};
  for (std::size_t row = 0; row < kTable.size(); ++row) {
    sizes[row] = static_cast<std::uint8_t>(size_of_headers(kTable[row].headers));
  }
  return sizes;
}();

constexpr Trailer trailer_of(const OpcodeInfo& row) {
  if (row.has(H::immediate)) return Trailer::immediate;
  return row.has(H::ieth) ? Trailer::invalidate : Trailer::none;
}

// The index into kDataOpcodes: services rc to ud, SEND or WRITE, four positions, three trailers.
constexpr std::size_t data_index(Service service, Operation operation, Position position,
                                 Trailer trailer) {
  const auto of = [](auto value) { return static_cast<std::size_t>(value); };
  return ((of(service) * 2 + of(operation)) * 4 + of(position)) * 3 + of(trailer);
}

constexpr auto kDataOpcodes = [] {
  std::array<std::uint8_t, std::size_t{4} * 2 * 4 * 3> opcodes{};
  opcodes.fill(kAbsent);
  for (const OpcodeInfo& row : kTable) {
    if (row.operation != send && row.operation != rdma_write) continue;
    const std::size_t index = data_index(row.service, row.operation, row.position, trailer_of(row));
    opcodes[index] = static_cast<std::uint8_t>(row.opcode);
  }
  return opcodes;
}();
static_assert(static_cast<int>(send) == 0 && static_cast<int>(rdma_write) == 1);

}  // namespace

std::size_t OpcodeInfo::header_size() const {
  return kHeaderSizes[kRows[static_cast<std::uint8_t>(opcode)]];
}

const OpcodeInfo* find_opcode(std::uint8_t opcode) {
  const std::uint8_t row = kRows[opcode];
  return row == kAbsent ? nullptr : &kTable[row];
}

const OpcodeInfo& info(Opcode opcode) { return kTable[kRows[static_cast<std::uint8_t>(opcode)]]; }

std::optional<Opcode> data_opcode(Service service, Operation operation, Position position,
                                  Trailer trailer) {
  if (service > S::ud || operation > rdma_write) return std::nullopt;
  const bool ends = position == last || position == only;
  const std::uint8_t opcode =
      kDataOpcodes[data_index(service, operation, position, ends ? trailer : Trailer::none)];
  if (opcode == kAbsent) return std::nullopt;
  return static_cast<Opcode>(opcode);
}

Opcode read_response_opcode(Position position) {
  switch (position) {
    case first:
      return rc_read_response_first;
    case middle:
      return rc_read_response_middle;
    case last:
      return rc_read_response_last;
    case only:
      break;
  }
  return rc_read_response_only;
}

const std::array<OpcodeInfo, 40>& all_opcodes() { return kTable; }

}  // namespace urxe::wire
