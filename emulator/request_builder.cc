#include "emulator/request_builder.h"

#include <algorithm>
#include <cstring>

namespace urxe::emulator {
namespace {

constexpr std::uint32_t kControlledQKeyBit = 0x80000000;

wire::Service service_of(QpType type) {
  switch (type) {
    case QpType::rc:
      return wire::Service::rc;
    case QpType::uc:
      return wire::Service::uc;
    default:
      return wire::Service::ud;
  }
}

wire::Trailer trailer_of(WorkOpcode opcode) {
  switch (opcode) {
    case WorkOpcode::send_with_immediate:
    case WorkOpcode::rdma_write_with_immediate:
      return wire::Trailer::immediate;
    case WorkOpcode::send_with_invalidate:
      return wire::Trailer::invalidate;
    default:
      return wire::Trailer::none;
  }
}

bool is_write(WorkOpcode opcode) {
  return opcode == WorkOpcode::rdma_write || opcode == WorkOpcode::rdma_write_with_immediate;
}

wire::Opcode data_opcode(const QpContext& context, const Work& work, wire::Position position) {
  const wire::Operation operation =
      is_write(work.request.opcode) ? wire::Operation::rdma_write : wire::Operation::send;
  const auto opcode = wire::data_opcode(service_of(context.type), operation, position,
                                        trailer_of(work.request.opcode));
  URXE_ASSERT(opcode.has_value());  // the requester refused what its service lacks
  return *opcode;
}

wire::Opcode opcode_of(const QpContext& context, const Work& work, std::uint32_t index) {
  switch (work.request.opcode) {
    case WorkOpcode::rdma_read:
      return wire::Opcode::rc_read_request;
    case WorkOpcode::compare_swap:
      return wire::Opcode::rc_compare_swap;
    case WorkOpcode::fetch_add:
      return wire::Opcode::rc_fetch_add;
    case WorkOpcode::atomic_write:
      return wire::Opcode::rc_atomic_write;
    case WorkOpcode::flush:
      return wire::Opcode::rc_flush;
    default:
      return data_opcode(context, work, wire::position_of(index, work.packets));
  }
}

void fill_extensions(const QpContext& context, const Work& work, const RequestPart& part,
                     wire::Packet& packet) {
  const SendRequest& request = work.request;
  const std::uint64_t offset = std::uint64_t{part.index} * context.mtu;
  std::uint64_t length = request.length;
  if (work.is_read()) length = payload_of(request.length, context.mtu, part.index, part.count);
  if (request.opcode == WorkOpcode::flush) length = request.flush.length;
  packet.reth = {.address = request.remote_address + (work.is_read() ? offset : 0),
                 .rkey = request.rkey,
                 .length = static_cast<std::uint32_t>(length)};
  packet.feth = {.placement = request.flush.placement, .selectivity = request.flush.selectivity};
  const bool swaps = request.opcode == WorkOpcode::compare_swap;
  packet.atomic = {.address = request.remote_address,
                   .rkey = request.rkey,
                   .swap_or_add = swaps ? request.swap : request.compare_or_add,
                   .compare = swaps ? request.compare_or_add : 0};
  packet.immediate = request.immediate;
  packet.invalidate = request.invalidate;
  // A Q_Key with the top bit set stands for the sender's own (IBTA 10.2.5, C10-15).
  const bool own_qkey = (request.datagram.qkey.value() & kControlledQKeyBit) != 0;
  packet.deth = {.qkey = own_qkey ? context.attributes.qkey : request.datagram.qkey,
                 .source = context.qpn};
}

std::optional<LocalFault> copy_payload(const QpContext& context, const Work& work,
                                       std::uint64_t offset, SgePosition& position,
                                       wire::MutableBytes to) {
  const SendRequest& request = work.request;
  if (request.inline_data.empty()) return position.gather(request.sges, context.memory(), to);
  std::memcpy(to.data(), request.inline_data.data() + offset, to.size());
  return std::nullopt;
}

}  // namespace

bool supports(QpType type, WorkOpcode opcode) {
  switch (opcode) {
    case WorkOpcode::send:
    case WorkOpcode::send_with_immediate:
      return true;
    case WorkOpcode::rdma_write:
    case WorkOpcode::rdma_write_with_immediate:
    case WorkOpcode::bind_window:
    case WorkOpcode::local_invalidate:
      return type == QpType::rc || type == QpType::uc;
    case WorkOpcode::rdma_read:
    case WorkOpcode::compare_swap:
    case WorkOpcode::fetch_add:
    case WorkOpcode::send_with_invalidate:
    case WorkOpcode::flush:
    case WorkOpcode::atomic_write:
      return type == QpType::rc;
  }
  return false;  // a ring held another number
}

std::size_t pad(wire::MutableBytes slot, std::size_t size) {
  const std::size_t padded = (size + 3) & ~std::size_t{3};
  std::fill(slot.begin() + static_cast<std::ptrdiff_t>(size),
            slot.begin() + static_cast<std::ptrdiff_t>(padded), std::uint8_t{0});
  return padded;
}

tl::expected<std::size_t, LocalFault> build_request(const QpContext& context, const Work& work,
                                                    const RequestPart& part, SgePosition& position,
                                                    wire::MutableBytes slot) {
  const SendRequest& request = work.request;
  const wire::OpcodeInfo& info = wire::info(opcode_of(context, work, part.index));
  const bool carries_data = info.payload != wire::PayloadRule::none;
  const std::uint32_t payload =
      carries_data ? payload_of(request.length, context.mtu, part.index, 1) : 0;

  wire::Bth bth;
  bth.opcode = static_cast<std::uint8_t>(info.opcode);
  bth.solicited = info.ends_message() && request.flags.has(kSolicited) &&
                  request.opcode != WorkOpcode::rdma_write && !work.needs_response();
  bth.pad_count = wire::pad_count(payload);
  bth.destination = context.is_connected() ? context.attributes.destination : request.datagram.qpn;
  bth.ack_request = part.ack_request;
  bth.psn = work.first_psn + part.index;

  std::size_t header = wire::kBthSize;
  if (info.header_size() == wire::kBthSize) {  // most packets of a stream
    bth.serialize(slot);
  } else {
    wire::Packet packet{.bth = bth, .info = &info};
    fill_extensions(context, work, part, packet);
    header = wire::write_headers(packet, slot);
  }
  if (payload != 0) {
    const auto fault = copy_payload(context, work, std::uint64_t{part.index} * context.mtu,
                                    position, slot.subspan(header, payload));
    if (fault) return tl::unexpected(*fault);
  }
  return pad(slot, header + payload);
}

}  // namespace urxe::emulator
