// Making objects: what the write() commands and the ioctl methods have in common.
#pragma once

#include <cstdint>
#include <memory>

#include <rdma/ib_user_verbs.h>

#include "verbs/uverbs/command.h"
#include "verbs/uverbs/context.h"

namespace urxe::verbs::uverbs {

struct CqSpec {
  std::uint64_t user_handle = 0;
  std::uint32_t cqe = 0;
  std::uint32_t vector = 0;
  std::uint32_t flags = 0;  // ib_uverbs_ex_create_cq_flags
  std::shared_ptr<EventChannel> channel;
  std::shared_ptr<EventChannel> async;
};
Outcome<CqObject*> make_cq(Context& context, CqSpec spec, const DriverData& driver);

struct QpSpec {
  std::uint64_t user_handle = 0;
  std::uint32_t type = 0;  // ib_uverbs_qp_type
  std::uint32_t pd = 0;    // handles
  std::uint32_t send_cq = 0;
  std::uint32_t receive_cq = 0;
  std::uint32_t srq = 0;
  bool has_srq = false;
  bool signal_all = false;
  std::uint32_t flags = 0;  // ib_uverbs_qp_create_flags
  emulator::QpCapabilities capabilities;
  std::shared_ptr<EventChannel> async;
};
Outcome<QpObject*> make_qp(Context& context, QpSpec spec, const DriverData& driver);

struct SrqSpec {
  std::uint64_t user_handle = 0;
  std::uint32_t pd = 0;    // handle
  std::uint32_t type = 0;  // ib_uverbs_srq_type
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t limit = 0;
  std::shared_ptr<EventChannel> async;
};
Outcome<SrqObject*> make_srq(Context& context, SrqSpec spec, const DriverData& driver);

// Destroys an object of which the program could not be told.
Status keep_if(const Status& told, Context& context, Object& object);

// Destroys the object that a handle names.
template <typename T>
Outcome<Context::Reported> destroy(Context& context, std::uint32_t handle) {
  return context.objects().find<T>(handle).and_then(
      [&](T* object) { return context.destroy(*object); });
}

}  // namespace urxe::verbs::uverbs
