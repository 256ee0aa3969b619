// The commands of the write() ABI: what they are called, how long they must be, who handles them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "verbs/uverbs/command.h"

namespace urxe::verbs::uverbs {

struct CommandEntry {
  const char* name = nullptr;
  CommandHandler handler = nullptr;
  std::size_t request_size = 0;   // at least
  std::size_t response_size = 0;  // at least
  // The request begins with the response's address.
  bool has_response = false;
  // librxe's data follow the request and the response.
  bool has_driver_data = false;
  bool is_extended = false;
};

// `command` as it stands in ib_uverbs_cmd_hdr. EINVAL: it is none; EOPNOTSUPP: rxe has no such
// command either.
[[nodiscard]] Outcome<const CommandEntry*> find_command(std::uint32_t command);

// --- handlers, by file

Status open_context(Context& context, const Command& command);
Status query_device(Context& context, const Command& command);
Status query_device_extended(Context& context, const Command& command);
Status query_port(Context& context, const Command& command);

Status alloc_pd(Context& context, const Command& command);
Status dealloc_pd(Context& context, const Command& command);
Status register_mr(Context& context, const Command& command);
Status reregister_mr(Context& context, const Command& command);
Status deregister_mr(Context& context, const Command& command);
Status alloc_mw(Context& context, const Command& command);
Status dealloc_mw(Context& context, const Command& command);

Status create_comp_channel(Context& context, const Command& command);
Status create_cq(Context& context, const Command& command);
Status create_cq_extended(Context& context, const Command& command);
Status resize_cq(Context& context, const Command& command);
Status request_notification(Context& context, const Command& command);
Status destroy_cq(Context& context, const Command& command);

Status create_qp(Context& context, const Command& command);
Status create_qp_extended(Context& context, const Command& command);
Status query_qp(Context& context, const Command& command);
Status modify_qp(Context& context, const Command& command);
Status modify_qp_extended(Context& context, const Command& command);
Status destroy_qp(Context& context, const Command& command);
Status post_send(Context& context, const Command& command);

Status attach_multicast(Context& context, const Command& command);
Status detach_multicast(Context& context, const Command& command);

Status create_srq(Context& context, const Command& command);
Status create_extended_srq(Context& context, const Command& command);
Status modify_srq(Context& context, const Command& command);
Status query_srq(Context& context, const Command& command);
Status destroy_srq(Context& context, const Command& command);

Status create_ah(Context& context, const Command& command);
Status destroy_ah(Context& context, const Command& command);

}  // namespace urxe::verbs::uverbs
