// Changing, asking about, and posting to queue pairs.
#include <rdma/ib_user_ioctl_verbs.h>
#include <unistd.h>

#include "verbs/uverbs/address_vector.h"
#include "verbs/uverbs/command_table.h"

namespace urxe::verbs::uverbs {
namespace {

using emulator::AttributeMask;

constexpr std::uint32_t kStandardAttributes = (1U << 21) - 1;  // IB_QP_ATTR_STANDARD_BITS

Status check_states(const ib_uverbs_modify_qp& request, AttributeMask mask) {
  constexpr auto kLast = static_cast<std::uint8_t>(emulator::QpState::error);
  if (mask.has(emulator::kAttrState) && request.qp_state > kLast) {
    return refuse(EINVAL, fmt::format("{} is not a state", request.qp_state));
  }
  if (mask.has(emulator::kAttrCurrentState) && request.cur_qp_state > kLast) {
    return refuse(EINVAL, fmt::format("{} is not a state", request.cur_qp_state));
  }
  return {};
}

// The kernel's rules about ports and paths, before those of queue pairs. May add the port to what
// changes: with the path of a queue pair that drains, its port changes, too.
Status check_paths(ib_uverbs_modify_qp& request, AttributeMask& mask,
                   const emulator::QueuePair& qp) {
  using namespace emulator;
  if (mask.has(kAttrPort) && request.port_num != kPort) {
    return refuse(EINVAL, fmt::format("there is no port {}", request.port_num));
  }
  if (mask.has(kAttrAddressVector)) {
    if (request.dest.port_num != kPort) {
      return refuse(EINVAL, fmt::format("the path leaves by port {}, which does not exist",
                                        request.dest.port_num));
    }
    const bool to_rtr =
        mask.has(kAttrState) && request.qp_state == static_cast<int>(QpState::ready_to_receive);
    if (!to_rtr && qp.state() == QpState::send_queue_drain && !mask.has(kAttrPort)) {
      mask |= kAttrPort;
      request.port_num = request.dest.port_num;
    }
  }
  if (mask.has(kAttrAlternatePath)) {
    return refuse(EINVAL, "RoCE has no alternate paths: leave IBV_QP_ALT_PATH away");
  }
  return {};
}

emulator::QpAttributes attributes_of(const ib_uverbs_modify_qp& request) {
  emulator::QpAttributes attributes;
  attributes.state = static_cast<emulator::QpState>(request.qp_state);
  attributes.current_state = static_cast<emulator::QpState>(request.cur_qp_state);
  attributes.path_mtu = static_cast<emulator::Mtu>(request.path_mtu);
  attributes.migration_state = request.path_mig_state;
  attributes.qkey = wire::QKey{request.qkey};
  attributes.receive_psn = wire::Psn{request.rq_psn};
  attributes.send_psn = wire::Psn{request.sq_psn};
  attributes.destination = wire::Qpn{request.dest_qp_num};
  attributes.access = emulator::Access{request.qp_access_flags};
  attributes.vector = vector_of(request.dest);
  attributes.pkey_index = request.pkey_index;
  attributes.drain_notify = request.en_sqd_async_notify != 0;
  attributes.max_read_atomic = request.max_rd_atomic;
  attributes.max_dest_read_atomic = request.max_dest_rd_atomic;
  attributes.min_rnr_timer = request.min_rnr_timer;
  attributes.port = request.port_num;
  attributes.timeout = request.timeout;
  attributes.retry_count = request.retry_cnt;
  attributes.rnr_retry = request.rnr_retry;
  return attributes;
}

Status modify(Context& context, ib_uverbs_modify_qp request) {
  const auto object = context.objects().find<QpObject>(request.qp_handle);
  if (!object) return tl::unexpected(object.error());
  emulator::QueuePair& qp = *(*object)->qp;
  AttributeMask mask{request.attr_mask};
  if (auto checked = check_states(request, mask); !checked) return checked;
  if (auto checked = check_paths(request, mask, qp); !checked) return checked;
  if (auto changed = qp.modify(attributes_of(request), mask); !changed) {
    auto refusal = refuse(changed.error());
    refusal.value().sentence = fmt::format("QP {:#x} in state {}: {}", qp.qpn().value(),
                                           to_string(qp.state()), refusal.value().sentence);
    return refusal;
  }
  return {};
}

tl::unexpected<Refusal> unknown_attributes(std::uint32_t mask) {
  return refuse(EOPNOTSUPP,
                fmt::format("attr_mask {:#x} names attributes that are not known", mask));
}

}  // namespace

Status modify_qp(Context& context, const Command& command) {
  ib_uverbs_modify_qp request{};
  if (auto read = command.read(request); !read) return read;
  if ((request.attr_mask & ~kStandardAttributes) != 0) {
    return unknown_attributes(request.attr_mask);
  }
  return modify(context, request);
}

Status modify_qp_extended(Context& context, const Command& command) {
  ib_uverbs_ex_modify_qp request{};
  if (auto read = command.read(request); !read) return read;
  // The rate limit is known, but rxe has none.
  if ((request.base.attr_mask & ~kStandardAttributes) != 0) {
    return unknown_attributes(request.base.attr_mask);
  }
  if (auto modified = modify(context, request.base); !modified) return modified;
  ib_uverbs_ex_modify_qp_resp response{};
  response.response_length = command.response_length<decltype(response)>();
  return command.reply(response);
}

Status query_qp(Context& context, const Command& command) {
  ib_uverbs_query_qp request{};
  if (auto read = command.read(request); !read) return read;
  const auto object = context.objects().find<QpObject>(request.qp_handle);
  if (!object) return tl::unexpected(object.error());
  const emulator::QpAttributes& attributes = (*object)->qp->attributes();
  const emulator::QpCapabilities& capabilities = attributes.capabilities;
  ib_uverbs_query_qp_resp response{};
  response.dest = destination_of(attributes.vector);
  response.alt_dest = destination_of(attributes.alternate_vector);
  response.max_send_wr = capabilities.max_send_wr;
  response.max_recv_wr = capabilities.max_recv_wr;
  response.max_send_sge = capabilities.max_send_sge;
  response.max_recv_sge = capabilities.max_recv_sge;
  response.max_inline_data = capabilities.max_inline_data;
  response.qkey = attributes.qkey.value();
  response.rq_psn = attributes.receive_psn.value();
  response.sq_psn = attributes.send_psn.value();
  response.dest_qp_num = attributes.destination.value();
  response.qp_access_flags = attributes.access.bits();
  response.pkey_index = attributes.pkey_index;
  response.alt_pkey_index = attributes.alternate_pkey_index;
  response.qp_state = static_cast<std::uint8_t>(attributes.state);
  response.cur_qp_state = static_cast<std::uint8_t>(attributes.current_state);
  response.path_mtu = static_cast<std::uint8_t>(attributes.path_mtu);
  response.path_mig_state = attributes.migration_state;
  response.sq_draining = attributes.draining ? 1 : 0;
  response.max_rd_atomic = attributes.max_read_atomic;
  response.max_dest_rd_atomic = attributes.max_dest_read_atomic;
  response.min_rnr_timer = attributes.min_rnr_timer;
  response.port_num = attributes.port;
  response.timeout = attributes.timeout;
  response.retry_cnt = attributes.retry_count;
  response.rnr_retry = attributes.rnr_retry;
  response.alt_port_num = attributes.alternate_port;
  response.alt_timeout = attributes.alternate_timeout;
  response.sq_sig_all = (*object)->signal_all ? 1 : 0;
  return command.reply(response);
}

// The requests are in the ring already: this is a doorbell. librxe sends none along, and Linux's
// rxe looks at none of a program's.
Status post_send(Context& context, const Command& command) {
  ib_uverbs_post_send request;
  if (command.in.size < sizeof(request)) return refuse(ENOSPC, "the request is too short");
  if (!copy_from_user(&request, command.in.address, sizeof(request))) {
    return bad_address("request", command.in.address);
  }
  const std::uint64_t lists = std::uint64_t{request.wqe_size} * request.wr_count +
                              std::uint64_t{request.sge_count} * sizeof(ib_uverbs_sge);
  if (lists > command.in.size - sizeof(request)) {
    return refuse(ENOSPC, fmt::format("the lists of {} requests and {} SGEs are cut off",
                                      request.wr_count, request.sge_count));
  }
  if (request.wqe_size < sizeof(ib_uverbs_send_wr)) {
    return refuse(EINVAL, fmt::format("wqe_size is {}, at least {} are needed", request.wqe_size,
                                      sizeof(ib_uverbs_send_wr)));
  }
  const auto object = context.objects().find<QpObject>(request.qp_handle);
  if (!object) return tl::unexpected(object.error());
  const auto rung = (*object)->qp->ring_doorbell();
  if (auto told = command.reply(ib_uverbs_post_send_resp{.bad_wr = 0}); !told) return told;
  if (!rung) return refuse(rung.error());
  return {};
}

}  // namespace urxe::verbs::uverbs
