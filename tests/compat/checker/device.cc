#include <cstring>

#include "tests/compat/checker/check.h"
#include "tests/compat/checker/verbs.h"

namespace checker {

Device::Device(const Options& options) {
  int count = 0;
  ibv_device** list = exists(ibv_get_device_list(&count), "ibv_get_device_list");
  for (int i = 0; i < count; ++i) {
    if (options.device != ibv_get_device_name(list[i])) continue;
    context_ = exists(ibv_open_device(list[i]), "ibv_open_device");
  }
  ibv_free_device_list(list);
  if (context_ == nullptr) fail("there is no device %s", options.device.c_str());
  pd_ = exists(ibv_alloc_pd(context_), "ibv_alloc_pd");
  succeeds(ibv_query_device(context_, &limits_), "ibv_query_device");
  succeeds(ibv_query_port(context_, 1, &port_), "ibv_query_port");
  succeeds(ibv_query_gid(context_, 1, options.gid_index, &gid_), "ibv_query_gid");
}

Device::~Device() {
  succeeds(ibv_dealloc_pd(pd_), "ibv_dealloc_pd");
  succeeds(ibv_close_device(context_), "ibv_close_device");
}

SharedReceiveQueue::SharedReceiveQueue(ibv_pd* pd, std::uint32_t entries, std::uint32_t sges) {
  ibv_srq_init_attr attributes{};
  attributes.attr.max_wr = entries;
  attributes.attr.max_sge = sges;
  srq_ = exists(ibv_create_srq(pd, &attributes), "ibv_create_srq");
}

SharedReceiveQueue::~SharedReceiveQueue() { succeeds(ibv_destroy_srq(srq_), "ibv_destroy_srq"); }

}  // namespace checker
