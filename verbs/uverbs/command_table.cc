#include "verbs/uverbs/command_table.h"

#include <array>

namespace urxe::verbs::uverbs {
namespace {

// The forms in which the kernel describes commands (UAPI_DEF_WRITE_… of its uverbs_cmd.c).

template <typename Request>
constexpr CommandEntry in(const char* name, CommandHandler handler) {
  return {.name = name, .handler = handler, .request_size = sizeof(Request)};
}

template <typename Request, typename Response>
constexpr CommandEntry in_out(const char* name, CommandHandler handler) {
  CommandEntry entry = in<Request>(name, handler);
  entry.response_size = sizeof(Response);
  entry.has_response = true;
  return entry;
}

template <typename Request>
constexpr CommandEntry driver_in(const char* name, CommandHandler handler) {
  CommandEntry entry = in<Request>(name, handler);
  entry.has_driver_data = true;
  return entry;
}

template <typename Request, typename Response>
constexpr CommandEntry driver_in_out(const char* name, CommandHandler handler) {
  CommandEntry entry = in_out<Request, Response>(name, handler);
  entry.has_driver_data = true;
  return entry;
}

constexpr CommandEntry extended(const char* name, CommandHandler handler, std::size_t request,
                                std::size_t response) {
  return {.name = name,
          .handler = handler,
          .request_size = request,
          .response_size = response,
          .has_response = true,
          .is_extended = true};
}

constexpr std::size_t kCommands = IB_USER_VERBS_CMD_OPEN_QP + 1;
using Table = std::array<CommandEntry, kCommands>;

constexpr void add_memory_commands(Table& table) {
  table[IB_USER_VERBS_CMD_ALLOC_PD] =
      driver_in_out<ib_uverbs_alloc_pd, ib_uverbs_alloc_pd_resp>("ALLOC_PD", alloc_pd);
  table[IB_USER_VERBS_CMD_DEALLOC_PD] = in<ib_uverbs_dealloc_pd>("DEALLOC_PD", dealloc_pd);
  table[IB_USER_VERBS_CMD_REG_MR] =
      driver_in_out<ib_uverbs_reg_mr, ib_uverbs_reg_mr_resp>("REG_MR", register_mr);
  table[IB_USER_VERBS_CMD_REREG_MR] =
      driver_in_out<ib_uverbs_rereg_mr, ib_uverbs_rereg_mr_resp>("REREG_MR", reregister_mr);
  table[IB_USER_VERBS_CMD_DEREG_MR] = in<ib_uverbs_dereg_mr>("DEREG_MR", deregister_mr);
  table[IB_USER_VERBS_CMD_ALLOC_MW] =
      driver_in_out<ib_uverbs_alloc_mw, ib_uverbs_alloc_mw_resp>("ALLOC_MW", alloc_mw);
  table[IB_USER_VERBS_CMD_DEALLOC_MW] = in<ib_uverbs_dealloc_mw>("DEALLOC_MW", dealloc_mw);
  table[IB_USER_VERBS_CMD_CREATE_AH] =
      driver_in_out<ib_uverbs_create_ah, ib_uverbs_create_ah_resp>("CREATE_AH", create_ah);
  table[IB_USER_VERBS_CMD_DESTROY_AH] = in<ib_uverbs_destroy_ah>("DESTROY_AH", destroy_ah);
}

constexpr void add_queue_commands(Table& table) {
  table[IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL] =
      in_out<ib_uverbs_create_comp_channel, ib_uverbs_create_comp_channel_resp>(
          "CREATE_COMP_CHANNEL", create_comp_channel);
  table[IB_USER_VERBS_CMD_CREATE_CQ] =
      driver_in_out<ib_uverbs_create_cq, ib_uverbs_create_cq_resp>("CREATE_CQ", create_cq);
  table[IB_USER_VERBS_CMD_RESIZE_CQ] =
      driver_in_out<ib_uverbs_resize_cq, ib_uverbs_resize_cq_resp>("RESIZE_CQ", resize_cq);
  table[IB_USER_VERBS_CMD_DESTROY_CQ] =
      in_out<ib_uverbs_destroy_cq, ib_uverbs_destroy_cq_resp>("DESTROY_CQ", destroy_cq);
  table[IB_USER_VERBS_CMD_REQ_NOTIFY_CQ] =
      in<ib_uverbs_req_notify_cq>("REQ_NOTIFY_CQ", request_notification);
  table[IB_USER_VERBS_CMD_CREATE_SRQ] =
      driver_in_out<ib_uverbs_create_srq, ib_uverbs_create_srq_resp>("CREATE_SRQ", create_srq);
  table[IB_USER_VERBS_CMD_CREATE_XSRQ] =
      driver_in_out<ib_uverbs_create_xsrq, ib_uverbs_create_srq_resp>("CREATE_XSRQ",
                                                                      create_extended_srq);
  table[IB_USER_VERBS_CMD_MODIFY_SRQ] = driver_in<ib_uverbs_modify_srq>("MODIFY_SRQ", modify_srq);
  table[IB_USER_VERBS_CMD_QUERY_SRQ] =
      in_out<ib_uverbs_query_srq, ib_uverbs_query_srq_resp>("QUERY_SRQ", query_srq);
  table[IB_USER_VERBS_CMD_DESTROY_SRQ] =
      in_out<ib_uverbs_destroy_srq, ib_uverbs_destroy_srq_resp>("DESTROY_SRQ", destroy_srq);
}

constexpr void add_queue_pair_commands(Table& table) {
  table[IB_USER_VERBS_CMD_CREATE_QP] =
      driver_in_out<ib_uverbs_create_qp, ib_uverbs_create_qp_resp>("CREATE_QP", create_qp);
  table[IB_USER_VERBS_CMD_QUERY_QP] =
      in_out<ib_uverbs_query_qp, ib_uverbs_query_qp_resp>("QUERY_QP", query_qp);
  table[IB_USER_VERBS_CMD_MODIFY_QP] = in<ib_uverbs_modify_qp>("MODIFY_QP", modify_qp);
  table[IB_USER_VERBS_CMD_DESTROY_QP] =
      in_out<ib_uverbs_destroy_qp, ib_uverbs_destroy_qp_resp>("DESTROY_QP", destroy_qp);
  table[IB_USER_VERBS_CMD_ATTACH_MCAST] =
      in<ib_uverbs_attach_mcast>("ATTACH_MCAST", attach_multicast);
  table[IB_USER_VERBS_CMD_DETACH_MCAST] =
      in<ib_uverbs_detach_mcast>("DETACH_MCAST", detach_multicast);
  table[IB_USER_VERBS_CMD_POST_SEND] =
      in_out<ib_uverbs_post_send, ib_uverbs_post_send_resp>("POST_SEND", post_send);
}

constexpr Table make_commands() {
  Table table{};
  table[IB_USER_VERBS_CMD_GET_CONTEXT] =
      driver_in_out<ib_uverbs_get_context, ib_uverbs_get_context_resp>("GET_CONTEXT", open_context);
  table[IB_USER_VERBS_CMD_QUERY_DEVICE] =
      in_out<ib_uverbs_query_device, ib_uverbs_query_device_resp>("QUERY_DEVICE", query_device);
  table[IB_USER_VERBS_CMD_QUERY_PORT] =
      in_out<ib_uverbs_query_port, ib_uverbs_query_port_resp>("QUERY_PORT", query_port);
  add_memory_commands(table);
  add_queue_commands(table);
  add_queue_pair_commands(table);
  return table;
}

// Programs send so much at least: up to the last member that a first version had.
constexpr Table make_extended_commands() {
  Table table{};
  table[IB_USER_VERBS_EX_CMD_QUERY_DEVICE] =
      extended("QUERY_DEVICE (extended)", query_device_extended, sizeof(ib_uverbs_ex_query_device),
               offsetof(ib_uverbs_ex_query_device_resp, odp_caps));
  table[IB_USER_VERBS_EX_CMD_CREATE_CQ] =
      extended("CREATE_CQ (extended)", create_cq_extended, sizeof(ib_uverbs_ex_create_cq),
               sizeof(ib_uverbs_ex_create_cq_resp));
  table[IB_USER_VERBS_EX_CMD_CREATE_QP] =
      extended("CREATE_QP (extended)", create_qp_extended,
               offsetof(ib_uverbs_ex_create_qp, create_flags), sizeof(ib_uverbs_ex_create_qp_resp));
  table[IB_USER_VERBS_EX_CMD_MODIFY_QP] =
      extended("MODIFY_QP (extended)", modify_qp_extended, sizeof(ib_uverbs_modify_qp),
               sizeof(ib_uverbs_ex_modify_qp_resp));
  return table;
}

constexpr Table kPlain = make_commands();
constexpr Table kExtended = make_extended_commands();

}  // namespace

Outcome<const CommandEntry*> find_command(std::uint32_t command) {
  constexpr std::uint32_t kKnownBits =
      IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_CMD_COMMAND_MASK;
  if ((command & ~kKnownBits) != 0) {
    return refuse(EINVAL, fmt::format("{:#x} is not the number of a command", command));
  }
  const std::uint32_t number = command & IB_USER_VERBS_CMD_COMMAND_MASK;
  const bool is_extended = (command & IB_USER_VERBS_CMD_FLAG_EXTENDED) != 0;
  const Table& table = is_extended ? kExtended : kPlain;
  if (number >= table.size() || table[number].handler == nullptr) {
    return refuse(EOPNOTSUPP, fmt::format("command {}{} is not supported, as by Linux's rxe",
                                          number, is_extended ? " (extended)" : ""));
  }
  return &table[number];
}

}  // namespace urxe::verbs::uverbs
