// Shared receive queues.
#include <rdma/ib_user_ioctl_verbs.h>

#include "verbs/abi/rxe_abi.h"
#include "verbs/uverbs/command_table.h"
#include "verbs/uverbs/creation.h"
#include "verbs/uverbs/mapping.h"

namespace urxe::verbs::uverbs {
namespace {

// ib_srq_attr_mask of the kernel's ib_verbs.h.
constexpr std::uint32_t kChangeMaxWr = 1U << 0;
constexpr std::uint32_t kChangeLimit = 1U << 1;

Status check_max_wr(std::uint32_t max_wr, std::uint32_t limit) {
  if (max_wr > 0 && max_wr <= limit) return {};
  return refuse(EINVAL,
                fmt::format("max_wr is {}; a shared receive queue has 1 to {}", max_wr, limit));
}

Status check(const emulator::DeviceLimits& limits, const SrqSpec& spec) {
  if (spec.type != IB_UVERBS_SRQT_BASIC) {
    return refuse(EOPNOTSUPP, "only basic shared receive queues exist: no XRC, no tag matching");
  }
  if (auto sized = check_max_wr(spec.max_wr, limits.max_srq_wr); !sized) return sized;
  if (spec.max_sge > limits.max_srq_sge) {
    return refuse(EINVAL, fmt::format("max_sge is {}, the device allows at most {}", spec.max_sge,
                                      limits.max_srq_sge));
  }
  return {};
}

}  // namespace

Outcome<SrqObject*> make_srq(Context& context, SrqSpec spec, const DriverData& driver) {
  if (auto ready = context.need_context(); !ready) return tl::unexpected(ready.error());
  const auto pd = context.objects().find<PdObject>(spec.pd);
  if (!pd) return tl::unexpected(pd.error());
  if (auto checked = check(context.device().options().limits, spec); !checked) {
    return tl::unexpected(checked.error());
  }
  if (driver.out.size < sizeof(rxe_create_srq_resp)) {
    return refuse(EINVAL, "there is no room for where the ring can be mapped");
  }
  auto ring = ReceiveRing::create(context.rings(), spec.max_wr, std::max(spec.max_sge, 1U), true);
  if (!ring) return refuse(ring.error(), "there is no memory for the receive ring");
  const auto srq = context.device().create_srq(*(*pd)->pd, **ring);
  if (!srq) return refuse(srq.error());
  (*srq)->arm_limit(spec.limit);
  auto object = std::make_unique<SrqObject>();
  object->ring = *std::move(ring);
  object->srq = *srq;
  object->user_handle = spec.user_handle;
  object->async = std::move(spec.async);
  SrqObject& added = context.objects().add(std::move(object));
  context.dispatcher().add(added);
  rxe_create_srq_resp response{};
  response.mi = mapping_of(added.ring->area());
  response.srq_num = (*srq)->number();
  if (auto kept = keep_if(driver.reply(response), context, added); !kept) {
    return tl::unexpected(kept.error());
  }
  return &added;
}

namespace {

Status create(Context& context, SrqSpec spec, const Command& command) {
  const auto srq = make_srq(context, std::move(spec), command.driver);
  if (!srq) return tl::unexpected(srq.error());
  ib_uverbs_create_srq_resp response{};
  response.srq_handle = (*srq)->handle;
  response.max_wr = (*srq)->ring->max_wr();
  response.max_sge = (*srq)->ring->max_sge();
  return keep_if(command.reply(response), context, **srq);
}

}  // namespace

Status create_srq(Context& context, const Command& command) {
  ib_uverbs_create_srq request{};
  if (auto read = command.read(request); !read) return read;
  return create(context,
                {.user_handle = request.user_handle,
                 .pd = request.pd_handle,
                 .type = IB_UVERBS_SRQT_BASIC,
                 .max_wr = request.max_wr,
                 .max_sge = request.max_sge,
                 .limit = request.srq_limit,
                 .async = context.default_async()},
                command);
}

Status create_extended_srq(Context& context, const Command& command) {
  ib_uverbs_create_xsrq request{};
  if (auto read = command.read(request); !read) return read;
  return create(context,
                {.user_handle = request.user_handle,
                 .pd = request.pd_handle,
                 .type = request.srq_type,
                 .max_wr = request.max_wr,
                 .max_sge = request.max_sge,
                 .limit = request.srq_limit,
                 .async = context.default_async()},
                command);
}

namespace {

// The ring that is left is empty, so nothing may fail behind it: the address is tried first.
Status resize(Context& context, SrqObject& object, std::uint32_t max_wr, UserBuffer driver) {
  rxe_modify_srq_cmd request{};
  if (!copy_from_user(&request, driver.address, sizeof(request))) {
    return bad_address("driver's request", driver.address);
  }
  mminfo mapping = mapping_of(object.ring->area());
  if (!copy_to_user(request.mmap_info_addr, &mapping, sizeof(mapping))) {
    return bad_address("driver's response", request.mmap_info_addr);
  }
  auto ring = object.ring->resized(context.rings(), max_wr);
  if (!ring) {
    return refuse(ring.error(), fmt::format("max_wr {} has no room for the {} that are posted",
                                            max_wr, object.ring->posted()));
  }
  object.srq->replace_source(**ring);
  object.ring = *std::move(ring);
  mapping = mapping_of(object.ring->area());
  if (!copy_to_user(request.mmap_info_addr, &mapping, sizeof(mapping))) {
    return bad_address("driver's response", request.mmap_info_addr);
  }
  return {};
}

}  // namespace

Status modify_srq(Context& context, const Command& command) {
  ib_uverbs_modify_srq request{};
  if (auto read = command.read(request); !read) return read;
  const auto found = context.objects().find<SrqObject>(request.srq_handle);
  if (!found) return tl::unexpected(found.error());
  SrqObject& object = **found;
  if (command.driver.in.size < sizeof(rxe_modify_srq_cmd)) {
    return refuse(EINVAL, "the request lacks librxe's part");
  }
  const bool resizes = (request.attr_mask & kChangeMaxWr) != 0;
  const bool arms = (request.attr_mask & kChangeLimit) != 0;
  const std::uint32_t max_wr = resizes ? request.max_wr : object.ring->max_wr();
  if (resizes) {
    const auto& limits = context.device().options().limits;
    if (auto sized = check_max_wr(max_wr, limits.max_srq_wr); !sized) return sized;
    if (max_wr < object.srq->limit()) {
      return refuse(EINVAL, fmt::format("max_wr {} is less than the limit that is armed, {}",
                                        max_wr, object.srq->limit()));
    }
  }
  if (arms && request.srq_limit > object.ring->max_wr()) {
    return refuse(EINVAL, fmt::format("srq_limit {} exceeds max_wr {}", request.srq_limit,
                                      object.ring->max_wr()));
  }
  if (resizes) {
    if (auto resized = resize(context, object, max_wr, command.driver.in); !resized) {
      return resized;
    }
  }
  if (arms) object.srq->arm_limit(request.srq_limit);
  return {};
}

Status query_srq(Context& context, const Command& command) {
  ib_uverbs_query_srq request{};
  if (auto read = command.read(request); !read) return read;
  const auto srq = context.objects().find<SrqObject>(request.srq_handle);
  if (!srq) return tl::unexpected(srq.error());
  return command.reply(ib_uverbs_query_srq_resp{.max_wr = (*srq)->ring->max_wr(),
                                                .max_sge = (*srq)->ring->max_sge(),
                                                .srq_limit = (*srq)->srq->limit(),
                                                .reserved = 0});
}

Status destroy_srq(Context& context, const Command& command) {
  ib_uverbs_destroy_srq request{};
  if (auto read = command.read(request); !read) return read;
  const auto reported = destroy<SrqObject>(context, request.srq_handle);
  if (!reported) return tl::unexpected(reported.error());
  return command.reply(ib_uverbs_destroy_srq_resp{.events_reported = reported->async_events});
}

}  // namespace urxe::verbs::uverbs
