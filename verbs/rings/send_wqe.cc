#include "verbs/rings/send_wqe.h"

#include <algorithm>
#include <bit>

#include <endian.h>

#include "verbs/rings/ring.h"

namespace urxe::verbs {
namespace {

using emulator::Sge;
using emulator::WorkOpcode;

static_assert(sizeof(Sge) == sizeof(rxe_sge) && offsetof(Sge, address) == offsetof(rxe_sge, addr) &&
              offsetof(Sge, length) == offsetof(rxe_sge, length) &&
              offsetof(Sge, lkey) == offsetof(rxe_sge, lkey));

constexpr emulator::SendFlags kKnownFlags =
    emulator::kFence | emulator::kSignaled | emulator::kSolicited | emulator::kInline;
// A number that no opcode has, for those that do not fit WorkOpcode.
constexpr std::uint32_t kNoOpcode = 0xFF;

enum class Kind : std::uint8_t { unknown, send, rdma, atomic, flush, invalidate, bind };

Kind kind_of(std::uint32_t opcode) {
  if (opcode >= kNoOpcode) return Kind::unknown;
  switch (static_cast<WorkOpcode>(opcode)) {
    case WorkOpcode::send:
    case WorkOpcode::send_with_immediate:
    case WorkOpcode::send_with_invalidate:
      return Kind::send;
    case WorkOpcode::rdma_write:
    case WorkOpcode::rdma_write_with_immediate:
    case WorkOpcode::rdma_read:
    case WorkOpcode::atomic_write:
      return Kind::rdma;
    case WorkOpcode::compare_swap:
    case WorkOpcode::fetch_add:
      return Kind::atomic;
    case WorkOpcode::flush:
      return Kind::flush;
    case WorkOpcode::local_invalidate:
      return Kind::invalidate;
    case WorkOpcode::bind_window:
      return Kind::bind;
  }
  return Kind::unknown;
}

// librxe writes it for every UD send: the number of an address handle, or, if the device gave the
// handle no number, the vector. In a connected queue pair's sends it means nothing, and the device
// does not look at it.
emulator::DatagramAddress datagram_of(const rxe_send_wr& wr) {
  const auto& ud = wr.wr.ud;
  const rxe_global_route& route = ud.av.grh;
  return {.handle_number = ud.ah_num,
          .vector = {.destination = wire::IpAddress::from_bytes(route.dgid.raw),
                     .flow_label = route.flow_label & 0xFFFFFU,
                     .source_gid_index = route.sgid_index,
                     .hop_limit = route.hop_limit,
                     .traffic_class = route.traffic_class,
                     .port = ud.av.port_num,
                     .global = true},
          .qpn = wire::Qpn{ud.remote_qpn},
          .qkey = wire::QKey{ud.remote_qkey}};
}

emulator::WindowBind bind_of(const rxe_send_wr& wr) {
  const auto& mw = wr.wr.mw;
  return {.address = mw.addr,
          .length = mw.length,
          .region = wire::LKey{mw.mr_lkey},
          .window = wire::RKey{mw.mw_rkey},
          .new_key = wire::RKey{mw.rkey},
          .access = emulator::Access{mw.access}};
}

emulator::FlushRange flush_of(const rxe_send_wqe& wqe) {
  const auto target = snapshot<abi::FlushTarget>(reinterpret_cast<const std::byte*>(&wqe.wr) +
                                                 offsetof(rxe_send_wr, wr));
  return {
      .length = wqe.dma.length, .placement = target.placement, .selectivity = target.selectivity};
}

void decode_target(emulator::SendRequest& request, const rxe_send_wr& wr, Kind kind) {
  switch (kind) {
    case Kind::send:
      request.datagram = datagram_of(wr);
      break;
    case Kind::rdma:
      request.remote_address = wr.wr.rdma.remote_addr;
      request.rkey = wire::RKey{wr.wr.rdma.rkey};
      break;
    case Kind::flush:
      request.remote_address = wr.wr.rdma.remote_addr;
      request.rkey = wire::RKey{wr.wr.rdma.reserved};
      break;
    case Kind::atomic:
      request.remote_address = wr.wr.atomic.remote_addr;
      request.rkey = wire::RKey{wr.wr.atomic.rkey};
      request.compare_or_add = wr.wr.atomic.compare_add;
      request.swap = wr.wr.atomic.swap;
      break;
    case Kind::bind:
      request.bind = bind_of(wr);
      break;
    case Kind::invalidate:
    case Kind::unknown:
      break;
  }
}

// ibv_wr_set_inline_data() sets no flag in librxe: it leaves data without a list.
bool is_inline(const rxe_send_wqe& wqe, emulator::SendFlags flags) {
  return flags.has(emulator::kInline) || wqe.dma.num_sge == 0;
}

// An atomic write's data stand in the WQE of every queue pair, also of one without inline data.
constexpr std::uint32_t kAtomicWriteSize = 8;
static_assert(std::bit_ceil(sizeof(rxe_send_wqe)) - sizeof(rxe_send_wqe) >= kAtomicWriteSize);

// False: it is longer than what the queue pair was made for. The length that stands in a WQE with a
// list is not used: librxe keeps 32 bits of the sum.
bool decode_data(emulator::SendRequest& request, const rxe_send_wqe& wqe, const std::byte* data,
                 SendLimits limits) {
  if (is_inline(wqe, request.flags)) {
    const bool is_atomic_write = request.opcode == WorkOpcode::atomic_write;
    const std::uint32_t room =
        is_atomic_write ? std::max(limits.max_inline, kAtomicWriteSize) : limits.max_inline;
    if (wqe.dma.length > room) return false;
    request.length = wqe.dma.length;
    request.inline_data = {reinterpret_cast<const std::uint8_t*>(data), wqe.dma.length};
    return true;
  }
  if (wqe.dma.num_sge > limits.max_sge) return false;
  request.sges = {reinterpret_cast<const Sge*>(data), wqe.dma.num_sge};
  for (std::size_t i = 0; i < request.sges.size(); ++i) {
    request.length += snapshot<Sge>(data + i * sizeof(Sge)).length;
  }
  return true;
}

}  // namespace

emulator::SendRequest decode_send(const std::byte* element, SendLimits limits) {
  const auto wqe = snapshot<rxe_send_wqe>(element);
  const std::uint32_t opcode = std::min(wqe.wr.opcode, kNoOpcode);
  const Kind kind = kind_of(opcode);
  emulator::SendRequest request;
  request.wr_id = wqe.wr.wr_id;
  request.opcode = static_cast<WorkOpcode>(opcode);
  request.flags = emulator::SendFlags{wqe.wr.send_flags} & kKnownFlags;
  request.immediate = be32toh(wqe.wr.ex.imm_data);
  request.invalidate = wire::RKey{wqe.wr.ex.invalidate_rkey};
  decode_target(request, wqe.wr, kind);
  if (kind == Kind::flush) request.flush = flush_of(wqe);
  if (kind == Kind::send || kind == Kind::rdma || kind == Kind::atomic) {
    request.malformed = !decode_data(request, wqe, element + sizeof(rxe_send_wqe), limits);
  } else {
    request.malformed = kind == Kind::unknown;
  }
  return request;
}

}  // namespace urxe::verbs
