// Completion queues and completion channels.
#include <unistd.h>

#include "verbs/abi/rxe_abi.h"
#include "verbs/uverbs/command_table.h"
#include "verbs/uverbs/creation.h"
#include "verbs/uverbs/device_facts.h"
#include "verbs/uverbs/mapping.h"

namespace urxe::verbs::uverbs {
namespace {

Status check_size(Context& context, std::uint32_t cqe) {
  const std::uint32_t limit = context.device().options().limits.max_cqe;
  if (cqe > 0 && cqe <= limit) return {};
  return refuse(EINVAL,
                fmt::format("cqe is {}; a completion queue has 1 to {} entries", cqe, limit));
}

Status check(Context& context, const CqSpec& spec) {
  if (spec.vector >= completion_vectors()) {
    return refuse(EINVAL, fmt::format("there is no completion vector {}, only {}", spec.vector,
                                      completion_vectors()));
  }
  if (spec.flags != 0) {
    return refuse(EOPNOTSUPP, fmt::format("completion queues have no flags ({:#x})", spec.flags));
  }
  return check_size(context, spec.cqe);
}

}  // namespace

Outcome<CqObject*> make_cq(Context& context, CqSpec spec, const DriverData& driver) {
  if (auto ready = context.need_context(); !ready) return tl::unexpected(ready.error());
  if (auto checked = check(context, spec); !checked) return tl::unexpected(checked.error());
  if (driver.out.size < sizeof(rxe_create_cq_resp)) {
    return refuse(EINVAL, "there is no room for where the ring can be mapped");
  }
  auto ring = CompletionRing::create(context.rings(), spec.cqe);
  if (!ring) return refuse(ring.error(), "there is no memory for the completion ring");
  const rxe_create_cq_resp response{.mi = mapping_of((*ring)->area())};
  if (auto told = driver.reply(response); !told) return tl::unexpected(told.error());
  const auto cq = context.device().create_cq(**ring);
  if (!cq) return refuse(cq.error());
  auto object = std::make_unique<CqObject>();
  object->ring = *std::move(ring);
  object->cq = *cq;
  object->user_handle = spec.user_handle;
  object->channel = std::move(spec.channel);
  object->async = std::move(spec.async);
  CqObject& added = context.objects().add(std::move(object));
  context.dispatcher().add(added);
  return &added;
}

namespace {

Status create(Context& context, const ib_uverbs_ex_create_cq& request, const Command& command) {
  CqSpec spec{.user_handle = request.user_handle,
              .cqe = request.cqe,
              .vector = request.comp_vector,
              .flags = request.flags,
              .channel = nullptr,
              .async = context.default_async()};
  if (request.comp_channel >= 0) {
    auto channel = context.channel(Context::ChannelUse::completions, request.comp_channel);
    if (!channel) return tl::unexpected(channel.error());
    spec.channel = *std::move(channel);
  }
  const auto cq = make_cq(context, std::move(spec), command.driver);
  if (!cq) return tl::unexpected(cq.error());
  ib_uverbs_ex_create_cq_resp response{};
  response.base.cq_handle = (*cq)->handle;
  response.base.cqe = (*cq)->ring->cqe();
  response.response_length = command.response_length<decltype(response)>();
  return keep_if(command.reply(response), context, **cq);
}

}  // namespace

Status create_comp_channel(Context& context, const Command& command) {
  ib_uverbs_create_comp_channel request{};
  if (auto read = command.read(request); !read) return read;
  if (auto ready = context.need_context(); !ready) return ready;
  const auto fd = context.open_channel(Context::ChannelUse::completions);
  if (!fd) return tl::unexpected(fd.error());
  const auto told =
      command.reply(ib_uverbs_create_comp_channel_resp{.fd = static_cast<std::uint32_t>(*fd)});
  if (!told) context.close_channel(*fd);
  return told;
}

Status create_cq(Context& context, const Command& command) {
  ib_uverbs_create_cq request{};
  if (auto read = command.read(request); !read) return read;
  ib_uverbs_ex_create_cq extended{};
  extended.user_handle = request.user_handle;
  extended.cqe = request.cqe;
  extended.comp_vector = request.comp_vector;
  extended.comp_channel = request.comp_channel;
  return create(context, extended, command);
}

Status create_cq_extended(Context& context, const Command& command) {
  ib_uverbs_ex_create_cq request{};
  if (auto read = command.read(request); !read) return read;
  if (request.comp_mask != 0 || request.reserved != 0) {
    return refuse(EINVAL,
                  fmt::format("comp_mask is {:#x}; no extension is known", request.comp_mask));
  }
  return create(context, request, command);
}

Status resize_cq(Context& context, const Command& command) {
  ib_uverbs_resize_cq request{};
  if (auto read = command.read(request); !read) return read;
  const auto found = context.objects().find<CqObject>(request.cq_handle);
  if (!found) return tl::unexpected(found.error());
  CqObject& object = **found;
  if (command.driver.out.size < sizeof(rxe_resize_cq_resp)) {
    return refuse(EINVAL, "there is no room for where the ring can be mapped");
  }
  if (auto sized = check_size(context, request.cqe); !sized) return sized;
  auto ring = object.ring->resized(context.rings(), request.cqe);
  if (!ring) {
    return refuse(ring.error(), fmt::format("{} entries have no room for the {} that wait",
                                            request.cqe, object.ring->waiting()));
  }
  ib_uverbs_resize_cq_resp response{};
  response.cqe = (*ring)->cqe();
  const rxe_resize_cq_resp mapping{.mi = mapping_of((*ring)->area())};
  if (auto told = command.driver.reply(mapping); !told) return told;
  if (auto told = command.reply(response); !told) return told;
  object.cq->replace_sink(**ring);
  object.ring = *std::move(ring);
  return {};
}

Status request_notification(Context& context, const Command& command) {
  ib_uverbs_req_notify_cq request{};
  if (auto read = command.read(request); !read) return read;
  const auto cq = context.objects().find<CqObject>(request.cq_handle);
  if (!cq) return tl::unexpected(cq.error());
  (*cq)->cq->request_notification(request.solicited_only != 0 ? emulator::Notify::solicited
                                                              : emulator::Notify::any);
  return {};
}

Status destroy_cq(Context& context, const Command& command) {
  ib_uverbs_destroy_cq request{};
  if (auto read = command.read(request); !read) return read;
  const auto reported = destroy<CqObject>(context, request.cq_handle);
  if (!reported) return tl::unexpected(reported.error());
  return command.reply(
      ib_uverbs_destroy_cq_resp{.comp_events_reported = reported->completion_events,
                                .async_events_reported = reported->async_events});
}

}  // namespace urxe::verbs::uverbs
