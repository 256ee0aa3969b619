// Commands about the device itself.
#include <unistd.h>

#include "verbs/uverbs/command_table.h"
#include "verbs/uverbs/device_facts.h"

namespace urxe::verbs::uverbs {

Status open_context(Context& context, const Command& command) {
  ib_uverbs_get_context request{};
  if (auto read = command.read(request); !read) return read;
  if (context.is_established()) return refuse(EINVAL, "this file has a context already");
  const auto fd = context.open_channel(Context::ChannelUse::async);
  if (!fd) return tl::unexpected(fd.error());
  ib_uverbs_get_context_resp response{};
  response.async_fd = static_cast<std::uint32_t>(*fd);
  response.num_comp_vectors = completion_vectors();
  if (auto told = command.reply(response); !told) {
    context.close_channel(*fd);
    return told;
  }
  context.establish();
  return {};
}

Status query_device(Context& context, const Command& command) {
  if (auto ready = context.need_context(); !ready) return ready;
  ib_uverbs_query_device request{};
  if (auto read = command.read(request); !read) return read;
  return command.reply(device_facts(context.config(), context.device()));
}

Status query_device_extended(Context& context, const Command& command) {
  if (auto ready = context.need_context(); !ready) return ready;
  ib_uverbs_ex_query_device request{};
  if (auto read = command.read(request); !read) return read;
  if (request.comp_mask != 0 || request.reserved != 0) {
    return refuse(EINVAL,
                  fmt::format("comp_mask is {:#x}; no extension is known", request.comp_mask));
  }
  if (command.driver.in.size != 0 || command.driver.out.size != 0) {
    return refuse(EINVAL, "rxe takes no driver data here");
  }
  auto facts = extended_device_facts(context.config(), context.device());
  facts.response_length = command.response_length<decltype(facts)>();
  return command.reply(facts);
}

Status query_port(Context& context, const Command& command) {
  if (auto ready = context.need_context(); !ready) return ready;
  ib_uverbs_query_port request{};
  if (auto read = command.read(request); !read) return read;
  if (request.port_num != kPort) {
    return refuse(EINVAL, fmt::format("there is no port {}", request.port_num));
  }
  return command.reply(port_facts(context.config(), context.device()));
}

}  // namespace urxe::verbs::uverbs
