// Making and destroying queue pairs.
#include <rdma/ib_user_ioctl_verbs.h>
#include <unistd.h>

#include "verbs/abi/rxe_abi.h"
#include "verbs/uverbs/command_table.h"
#include "verbs/uverbs/creation.h"
#include "verbs/uverbs/mapping.h"

namespace urxe::verbs::uverbs {
namespace {

Status check_type(std::uint32_t type) {
  switch (type) {
    case IB_UVERBS_QPT_RC:
    case IB_UVERBS_QPT_UC:
    case IB_UVERBS_QPT_UD:
      return {};
    case IB_UVERBS_QPT_RAW_PACKET:
    case IB_UVERBS_QPT_XRC_INI:
    case IB_UVERBS_QPT_XRC_TGT:
    case IB_UVERBS_QPT_DRIVER:
      return refuse(EOPNOTSUPP,
                    fmt::format("queue pairs of type {} do not exist: RC, UC and UD only", type));
    default:
      return refuse(EINVAL, fmt::format("{} is not a type of queue pairs", type));
  }
}

Status check_flags(std::uint32_t flags) {
  if (flags == 0) return {};
  return refuse(EOPNOTSUPP, fmt::format("queue pairs have no flags ({:#x})", flags));
}

// The other objects that a queue pair is made of.
struct Parts {
  PdObject* pd = nullptr;
  CqObject* send_cq = nullptr;
  CqObject* receive_cq = nullptr;
  SrqObject* srq = nullptr;
};

Outcome<Parts> find_parts(Context& context, const QpSpec& spec) {
  const ObjectTable& objects = context.objects();
  Parts parts;
  if (spec.has_srq) {
    const auto srq = objects.find<SrqObject>(spec.srq);
    if (!srq) return tl::unexpected(srq.error());
    parts.srq = *srq;
  }
  const auto receive_cq = objects.find<CqObject>(spec.receive_cq);
  if (!receive_cq) return tl::unexpected(receive_cq.error());
  const auto send_cq = objects.find<CqObject>(spec.send_cq);
  if (!send_cq) return tl::unexpected(send_cq.error());
  const auto pd = objects.find<PdObject>(spec.pd);
  if (!pd) return tl::unexpected(pd.error());
  parts.receive_cq = *receive_cq;
  parts.send_cq = *send_cq;
  parts.pd = *pd;
  return parts;
}

Status check_capabilities(const emulator::DeviceLimits& limits, const QpSpec& spec) {
  struct Limit {
    const char* name;
    std::uint32_t wanted;
    std::uint32_t allowed;
  };
  const emulator::QpCapabilities& wanted = spec.capabilities;
  for (const Limit& limit : {
           Limit{"max_send_wr", wanted.max_send_wr, limits.max_qp_wr},
           Limit{"max_send_sge", wanted.max_send_sge, limits.max_sge},
           Limit{"max_recv_wr", spec.has_srq ? 0 : wanted.max_recv_wr, limits.max_qp_wr},
           Limit{"max_recv_sge", spec.has_srq ? 0 : wanted.max_recv_sge, limits.max_sge},
           Limit{"max_inline_data", wanted.max_inline_data, limits.max_inline_data},
       }) {
    if (limit.wanted <= limit.allowed) continue;
    return refuse(EINVAL, fmt::format("{} is {}, the device allows at most {}", limit.name,
                                      limit.wanted, limit.allowed));
  }
  return {};
}

// The rings, which decide what the queue pair can really do.
Status make_rings(Context& context, const QpSpec& spec, QpObject& object,
                  emulator::QpCapabilities& actual) {
  const emulator::QpCapabilities& wanted = spec.capabilities;
  auto sends = SendRing::create(context.rings(), {.max_wr = std::max(wanted.max_send_wr, 1U),
                                                  .max_sge = wanted.max_send_sge,
                                                  .max_inline = wanted.max_inline_data});
  if (!sends) return refuse(sends.error(), "there is no memory for the send ring");
  object.sends = *std::move(sends);
  const SendRingSize size = object.sends->actual();
  actual.max_send_wr = size.max_wr;
  actual.max_send_sge = size.max_sge;
  actual.max_inline_data = size.max_inline;
  if (spec.has_srq) return {};
  auto receives = ReceiveRing::create(context.rings(), std::max(wanted.max_recv_wr, 1U),
                                      wanted.max_recv_sge, false);
  if (!receives) return refuse(receives.error(), "there is no memory for the receive ring");
  object.receives = *std::move(receives);
  actual.max_recv_wr = object.receives->max_wr();
  actual.max_recv_sge = object.receives->max_sge();
  return {};
}

Status reply_mappings(const QpObject& object, const DriverData& driver) {
  rxe_create_qp_resp response{};
  response.sq_mi = mapping_of(object.sends->area());
  if (object.receives != nullptr) response.rq_mi = mapping_of(object.receives->area());
  return driver.reply(response);
}

}  // namespace

Outcome<QpObject*> make_qp(Context& context, QpSpec spec, const DriverData& driver) {
  if (auto ready = context.need_context(); !ready) return tl::unexpected(ready.error());
  for (const auto& checked : {check_type(spec.type), check_flags(spec.flags),
                              check_capabilities(context.device().options().limits, spec)}) {
    if (!checked) return tl::unexpected(checked.error());
  }
  const auto parts = find_parts(context, spec);
  if (!parts) return tl::unexpected(parts.error());
  if (driver.out.size < sizeof(rxe_create_qp_resp)) {
    return refuse(EINVAL, "there is no room for where the rings can be mapped");
  }
  if (driver.in.size != 0) return refuse(EINVAL, "rxe takes no driver data here");
  auto object = std::make_unique<QpObject>();
  emulator::QpCapabilities actual;
  if (auto made = make_rings(context, spec, *object, actual); !made) {
    return tl::unexpected(made.error());
  }
  const auto qp = context.device().create_qp(
      *parts->pd->pd, {.type = static_cast<emulator::QpType>(spec.type),
                       .send_cq = parts->send_cq->cq,
                       .receive_cq = parts->receive_cq->cq,
                       .srq = parts->srq != nullptr ? parts->srq->srq : nullptr,
                       .send_source = object->sends.get(),
                       .receive_source = object->receives.get(),
                       .capabilities = actual,
                       .signal_all = spec.signal_all});
  if (!qp) return refuse(qp.error());
  object->qp = *qp;
  object->signal_all = spec.signal_all;
  object->user_handle = spec.user_handle;
  object->async = std::move(spec.async);
  QpObject& added = context.objects().add(std::move(object));
  context.dispatcher().add(added);
  if (auto kept = keep_if(reply_mappings(added, driver), context, added); !kept) {
    return tl::unexpected(kept.error());
  }
  return &added;
}

namespace {

template <typename Request>
QpSpec spec_of(const Request& request, const Context& context) {
  return {.user_handle = request.user_handle,
          .type = request.qp_type,
          .pd = request.pd_handle,
          .send_cq = request.send_cq_handle,
          .receive_cq = request.recv_cq_handle,
          .srq = request.srq_handle,
          .has_srq = request.is_srq != 0,
          .signal_all = request.sq_sig_all != 0,
          .flags = 0,
          .capabilities = {.max_send_wr = request.max_send_wr,
                           .max_recv_wr = request.max_recv_wr,
                           .max_send_sge = request.max_send_sge,
                           .max_recv_sge = request.max_recv_sge,
                           .max_inline_data = request.max_inline_data},
          .async = context.default_async()};
}

Status create(Context& context, QpSpec spec, const Command& command) {
  const auto qp = make_qp(context, std::move(spec), command.driver);
  if (!qp) return tl::unexpected(qp.error());
  const emulator::QpCapabilities& actual = (*qp)->qp->attributes().capabilities;
  ib_uverbs_ex_create_qp_resp response{};
  response.base.qp_handle = (*qp)->handle;
  response.base.qpn = (*qp)->qp->qpn().value();
  response.base.max_send_wr = actual.max_send_wr;
  response.base.max_recv_wr = actual.max_recv_wr;
  response.base.max_send_sge = actual.max_send_sge;
  response.base.max_recv_sge = actual.max_recv_sge;
  response.base.max_inline_data = actual.max_inline_data;
  response.response_length = command.response_length<decltype(response)>();
  return keep_if(command.reply(response), context, **qp);
}

}  // namespace

Status create_qp(Context& context, const Command& command) {
  ib_uverbs_create_qp request{};
  if (auto read = command.read(request); !read) return read;
  return create(context, spec_of(request, context), command);
}

Status create_qp_extended(Context& context, const Command& command) {
  ib_uverbs_ex_create_qp request{};
  if (auto read = command.read(request); !read) return read;
  if ((request.comp_mask & ~std::uint32_t{IB_UVERBS_CREATE_QP_SUP_COMP_MASK}) != 0 ||
      request.reserved != 0) {
    return refuse(EINVAL, fmt::format("comp_mask {:#x} names extensions that are not known",
                                      request.comp_mask));
  }
  if (request.comp_mask != 0) {
    return refuse(EOPNOTSUPP, "receive work queues and their tables do not exist");
  }
  QpSpec spec = spec_of(request, context);
  spec.flags = request.create_flags;
  return create(context, std::move(spec), command);
}

Status destroy_qp(Context& context, const Command& command) {
  ib_uverbs_destroy_qp request{};
  if (auto read = command.read(request); !read) return read;
  const auto reported = destroy<QpObject>(context, request.qp_handle);
  if (!reported) return tl::unexpected(reported.error());
  return command.reply(ib_uverbs_destroy_qp_resp{.events_reported = reported->async_events});
}

}  // namespace urxe::verbs::uverbs
