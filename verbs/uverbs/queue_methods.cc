// Methods of completion queues, queue pairs, shared receive queues, and asynchronous event files.
#include <array>
#include <cstddef>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <unistd.h>

#include "verbs/uverbs/creation.h"
#include "verbs/uverbs/method_table.h"

namespace urxe::verbs::uverbs {
namespace {

// Reads several attributes, and keeps the first refusal.
class Reader {
 public:
  explicit Reader(const Attributes& attributes) : attributes_(attributes) {}
  template <typename T>
  void value(std::uint16_t id, T& to) {
    take(attributes_.value<T>(id), to);
  }
  void handle(std::uint16_t id, std::uint32_t& to) { take(attributes_.handle(id), to); }
  void flags(std::uint16_t id, std::uint32_t allowed, std::uint32_t& to) {
    take(attributes_.flags(id, allowed), to);
  }
  void constant(std::uint16_t id, std::uint32_t& to) {
    take(attributes_.constant(id, std::numeric_limits<std::uint32_t>::max()), to);
  }
  void channel(const Context& context, Context::ChannelUse use, std::uint16_t id,
               std::shared_ptr<EventChannel>& to) {
    if (attributes_.has(id)) take(context.channel(use, attributes_.descriptor(id)), to);
  }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  template <typename From, typename To>
  void take(Outcome<From> outcome, To& to) {
    if (outcome) {
      to = static_cast<To>(*std::move(outcome));
    } else if (status_) {
      status_ = tl::unexpected(std::move(outcome).error());
    }
  }

  const Attributes& attributes_;
  Status status_;
};

// Tells the program what was made; if that is not possible, it is destroyed again.
template <std::size_t N>
Status tell(Context& context, Object& object, const std::array<Status, N>& told) {
  for (const Status& status : told) {
    if (auto kept = keep_if(status, context, object); !kept) return kept;
  }
  return {};
}

// --- completion queues

Status create_cq_method(Context& context, const Attributes& attributes) {
  CqSpec spec{.async = context.default_async()};
  Reader reader(attributes);
  reader.value(UVERBS_ATTR_CREATE_CQ_CQE, spec.cqe);
  reader.value(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, spec.user_handle);
  reader.value(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, spec.vector);
  reader.flags(UVERBS_ATTR_CREATE_CQ_FLAGS,
               IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION | IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN,
               spec.flags);
  reader.channel(context, Context::ChannelUse::completions, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL,
                 spec.channel);
  reader.channel(context, Context::ChannelUse::async, UVERBS_ATTR_CREATE_CQ_EVENT_FD, spec.async);
  if (!reader.status()) return reader.status();
  const auto cq = make_cq(context, std::move(spec), attributes.driver());
  if (!cq) return tl::unexpected(cq.error());
  return tell(context, **cq,
              std::array{attributes.put_new(UVERBS_ATTR_CREATE_CQ_HANDLE, (*cq)->handle),
                         attributes.put(UVERBS_ATTR_CREATE_CQ_RESP_CQE, (*cq)->ring->cqe())});
}

Status destroy_cq_method(Context& context, const Attributes& attributes) {
  const auto reported =
      attributes.handle(UVERBS_ATTR_DESTROY_CQ_HANDLE).and_then([&](std::uint32_t handle) {
        return destroy<CqObject>(context, handle);
      });
  if (!reported) return tl::unexpected(reported.error());
  return attributes.put(
      UVERBS_ATTR_DESTROY_CQ_RESP,
      ib_uverbs_destroy_cq_resp{.comp_events_reported = reported->completion_events,
                                .async_events_reported = reported->async_events});
}

// --- queue pairs

Outcome<QpSpec> read_qp(const Context& context, const Attributes& attributes) {
  QpSpec spec{.async = context.default_async()};
  ib_uverbs_qp_cap wanted{};
  std::uint32_t flags = 0;
  Reader reader(attributes);
  reader.value(UVERBS_ATTR_CREATE_QP_CAP, wanted);
  reader.value(UVERBS_ATTR_CREATE_QP_USER_HANDLE, spec.user_handle);
  reader.constant(UVERBS_ATTR_CREATE_QP_TYPE, spec.type);
  reader.handle(UVERBS_ATTR_CREATE_QP_PD_HANDLE, spec.pd);
  reader.handle(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, spec.send_cq);
  reader.handle(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, spec.receive_cq);
  reader.flags(UVERBS_ATTR_CREATE_QP_FLAGS,
               IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK | IB_UVERBS_QP_CREATE_SCATTER_FCS |
                   IB_UVERBS_QP_CREATE_CVLAN_STRIPPING | IB_UVERBS_QP_CREATE_PCI_WRITE_END_PADDING |
                   IB_UVERBS_QP_CREATE_SQ_SIG_ALL,
               flags);
  spec.has_srq = attributes.has(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE);
  if (spec.has_srq) reader.handle(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, spec.srq);
  reader.channel(context, Context::ChannelUse::async, UVERBS_ATTR_CREATE_QP_EVENT_FD, spec.async);
  if (!reader.status()) return tl::unexpected(reader.status().error());
  if (attributes.has(UVERBS_ATTR_CREATE_QP_SOURCE_QPN)) {
    return refuse(EOPNOTSUPP, "queue pairs cannot be given a source QPN");
  }
  spec.signal_all = (flags & IB_UVERBS_QP_CREATE_SQ_SIG_ALL) != 0;
  spec.flags = flags & ~std::uint32_t{IB_UVERBS_QP_CREATE_SQ_SIG_ALL};
  spec.capabilities = {.max_send_wr = wanted.max_send_wr,
                       .max_recv_wr = wanted.max_recv_wr,
                       .max_send_sge = wanted.max_send_sge,
                       .max_recv_sge = wanted.max_recv_sge,
                       .max_inline_data = wanted.max_inline_data};
  return spec;
}

Status create_qp_method(Context& context, const Attributes& attributes) {
  auto spec = read_qp(context, attributes);
  if (!spec) return tl::unexpected(spec.error());
  const auto made = make_qp(context, *std::move(spec), attributes.driver());
  if (!made) return tl::unexpected(made.error());
  QpObject& object = **made;
  const emulator::QpCapabilities& actual = object.qp->attributes().capabilities;
  const ib_uverbs_qp_cap capabilities{.max_send_wr = actual.max_send_wr,
                                      .max_recv_wr = actual.max_recv_wr,
                                      .max_send_sge = actual.max_send_sge,
                                      .max_recv_sge = actual.max_recv_sge,
                                      .max_inline_data = actual.max_inline_data};
  return tell(
      context, object,
      std::array{attributes.put_new(UVERBS_ATTR_CREATE_QP_HANDLE, object.handle),
                 attributes.put_struct(UVERBS_ATTR_CREATE_QP_RESP_CAP, capabilities),
                 attributes.put(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, object.qp->qpn().value())});
}

Status destroy_qp_method(Context& context, const Attributes& attributes) {
  const auto reported =
      attributes.handle(UVERBS_ATTR_DESTROY_QP_HANDLE).and_then([&](std::uint32_t handle) {
        return destroy<QpObject>(context, handle);
      });
  if (!reported) return tl::unexpected(reported.error());
  return attributes.put(UVERBS_ATTR_DESTROY_QP_RESP,
                        ib_uverbs_destroy_qp_resp{.events_reported = reported->async_events});
}

// --- shared receive queues

Status create_srq_method(Context& context, const Attributes& attributes) {
  SrqSpec spec{.async = context.default_async()};
  Reader reader(attributes);
  reader.handle(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, spec.pd);
  reader.value(UVERBS_ATTR_CREATE_SRQ_MAX_SGE, spec.max_sge);
  reader.value(UVERBS_ATTR_CREATE_SRQ_MAX_WR, spec.max_wr);
  reader.value(UVERBS_ATTR_CREATE_SRQ_LIMIT, spec.limit);
  reader.value(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, spec.user_handle);
  reader.constant(UVERBS_ATTR_CREATE_SRQ_TYPE, spec.type);
  reader.channel(context, Context::ChannelUse::async, UVERBS_ATTR_CREATE_SRQ_EVENT_FD, spec.async);
  if (!reader.status()) return reader.status();
  const auto made = make_srq(context, std::move(spec), attributes.driver());
  if (!made) return tl::unexpected(made.error());
  SrqObject& object = **made;
  return tell(
      context, object,
      std::array{attributes.put_new(UVERBS_ATTR_CREATE_SRQ_HANDLE, object.handle),
                 attributes.put(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, object.ring->max_wr()),
                 attributes.put(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, object.ring->max_sge())});
}

Status destroy_srq_method(Context& context, const Attributes& attributes) {
  const auto reported =
      attributes.handle(UVERBS_ATTR_DESTROY_SRQ_HANDLE).and_then([&](std::uint32_t handle) {
        return destroy<SrqObject>(context, handle);
      });
  if (!reported) return tl::unexpected(reported.error());
  return attributes.put(UVERBS_ATTR_DESTROY_SRQ_RESP,
                        ib_uverbs_destroy_srq_resp{.events_reported = reported->async_events});
}

// --- asynchronous events

Status alloc_async_event(Context& context, const Attributes& attributes) {
  if (auto ready = context.need_context(); !ready) return ready;
  const auto fd = context.open_channel(Context::ChannelUse::async);
  if (!fd) return tl::unexpected(fd.error());
  const auto told = attributes.put_new(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, *fd);
  if (!told) context.close_channel(*fd);
  return told;
}

constexpr AttributeSpec kDriverIn = bytes_in(UVERBS_ATTR_UHW_IN, kOptional);
constexpr AttributeSpec kDriverOut = bytes_out(UVERBS_ATTR_UHW_OUT, kOptional);

constexpr std::array kCreateCq{
    handle(UVERBS_ATTR_CREATE_CQ_HANDLE),
    value_in<std::uint32_t>(UVERBS_ATTR_CREATE_CQ_CQE, kMandatory),
    value_in<std::uint64_t>(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, kMandatory),
    descriptor(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, kOptional),
    value_in<std::uint32_t>(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, kMandatory),
    flags_in(UVERBS_ATTR_CREATE_CQ_FLAGS, kOptional),
    value_out<std::uint32_t>(UVERBS_ATTR_CREATE_CQ_RESP_CQE, kMandatory),
    descriptor(UVERBS_ATTR_CREATE_CQ_EVENT_FD, kOptional),
    kDriverIn,
    kDriverOut,
};
constexpr std::array kDestroyCq{
    handle(UVERBS_ATTR_DESTROY_CQ_HANDLE),
    value_out<ib_uverbs_destroy_cq_resp>(UVERBS_ATTR_DESTROY_CQ_RESP, kMandatory),
};
constexpr std::array kCreateQp{
    handle(UVERBS_ATTR_CREATE_QP_HANDLE),
    handle(UVERBS_ATTR_CREATE_QP_PD_HANDLE, kOptional),
    handle(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, kOptional),
    handle(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, kOptional),
    handle(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, kOptional),
    value_in<std::uint64_t>(UVERBS_ATTR_CREATE_QP_USER_HANDLE, kMandatory),
    struct_in<ib_uverbs_qp_cap>(UVERBS_ATTR_CREATE_QP_CAP, kMandatory, sizeof(ib_uverbs_qp_cap)),
    constant_in(UVERBS_ATTR_CREATE_QP_TYPE, kMandatory),
    flags_in(UVERBS_ATTR_CREATE_QP_FLAGS, kOptional),
    value_in<std::uint32_t>(UVERBS_ATTR_CREATE_QP_SOURCE_QPN, kOptional),
    descriptor(UVERBS_ATTR_CREATE_QP_EVENT_FD, kOptional),
    struct_out<ib_uverbs_qp_cap>(UVERBS_ATTR_CREATE_QP_RESP_CAP, kMandatory,
                                 sizeof(ib_uverbs_qp_cap)),
    value_out<std::uint32_t>(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, kMandatory),
    kDriverIn,
    kDriverOut,
};
constexpr std::array kDestroyQp{
    handle(UVERBS_ATTR_DESTROY_QP_HANDLE),
    value_out<ib_uverbs_destroy_qp_resp>(UVERBS_ATTR_DESTROY_QP_RESP, kMandatory),
};
constexpr std::array kCreateSrq{
    handle(UVERBS_ATTR_CREATE_SRQ_HANDLE),
    handle(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE),
    handle(UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, kOptional),
    value_in<std::uint64_t>(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, kMandatory),
    value_in<std::uint32_t>(UVERBS_ATTR_CREATE_SRQ_MAX_WR, kMandatory),
    value_in<std::uint32_t>(UVERBS_ATTR_CREATE_SRQ_MAX_SGE, kMandatory),
    value_in<std::uint32_t>(UVERBS_ATTR_CREATE_SRQ_LIMIT, kMandatory),
    value_in<std::uint32_t>(UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS, kOptional),
    constant_in(UVERBS_ATTR_CREATE_SRQ_TYPE, kMandatory),
    descriptor(UVERBS_ATTR_CREATE_SRQ_EVENT_FD, kOptional),
    value_out<std::uint32_t>(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, kMandatory),
    value_out<std::uint32_t>(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, kMandatory),
    value_out<std::uint32_t>(UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, kOptional),
    kDriverIn,
    kDriverOut,
};
constexpr std::array kDestroySrq{
    handle(UVERBS_ATTR_DESTROY_SRQ_HANDLE),
    value_out<ib_uverbs_destroy_srq_resp>(UVERBS_ATTR_DESTROY_SRQ_RESP, kMandatory),
};
constexpr std::array kAllocAsyncEvent{descriptor(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE)};

constexpr std::array kMethods{
    Method{UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, "CQ_CREATE", create_cq_method, kCreateCq},
    Method{UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, "CQ_DESTROY", destroy_cq_method, kDestroyCq},
    Method{UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, "QP_CREATE", create_qp_method, kCreateQp},
    Method{UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, "QP_DESTROY", destroy_qp_method, kDestroyQp},
    Method{UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, "SRQ_CREATE", create_srq_method,
           kCreateSrq},
    Method{UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, "SRQ_DESTROY", destroy_srq_method,
           kDestroySrq},
    Method{UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, "ASYNC_EVENT_ALLOC",
           alloc_async_event, kAllocAsyncEvent},
};

}  // namespace

std::span<const Method> queue_methods() { return kMethods; }

}  // namespace urxe::verbs::uverbs
