// Methods of protection domains, memory regions and windows, and address handles.
#include <array>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>

#include "verbs/uverbs/advice.h"
#include "verbs/uverbs/creation.h"
#include "verbs/uverbs/method_table.h"

namespace urxe::verbs::uverbs {
namespace {

// All DESTROY methods without a response have one attribute, number 0.
constexpr std::uint16_t kObject = 0;
static_assert(UVERBS_ATTR_DESTROY_PD_HANDLE == kObject);
static_assert(UVERBS_ATTR_DESTROY_MW_HANDLE == kObject);
static_assert(UVERBS_ATTR_DESTROY_AH_HANDLE == kObject);
static_assert(UVERBS_ATTR_DESTROY_MR_HANDLE == kObject);

template <typename T>
Status destroy_method(Context& context, const Attributes& attributes) {
  const auto handle = attributes.handle(kObject);
  if (!handle) return tl::unexpected(handle.error());
  const auto destroyed = destroy<T>(context, *handle);
  if (!destroyed) return tl::unexpected(destroyed.error());
  return {};
}

Status query_mr(Context& context, const Attributes& attributes) {
  const auto handle = attributes.handle(UVERBS_ATTR_QUERY_MR_HANDLE);
  if (!handle) return tl::unexpected(handle.error());
  const auto object = context.objects().find<MrObject>(*handle);
  if (!object) return tl::unexpected(object.error());
  const emulator::MemoryRegion& region = *(*object)->region;
  for (const auto& told : {attributes.put(UVERBS_ATTR_QUERY_MR_RESP_LKEY, region.key()),
                           attributes.put(UVERBS_ATTR_QUERY_MR_RESP_RKEY, region.key()),
                           attributes.put(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, region.spec().length),
                           attributes.put(UVERBS_ATTR_QUERY_MR_RESP_IOVA, region.spec().iova)}) {
    if (!told) return told;
  }
  return {};
}

Status register_dmabuf(Context& context, const Attributes& attributes) {
  const auto handle = attributes.handle(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE);
  if (!handle) return tl::unexpected(handle.error());
  if (auto pd = context.objects().find<PdObject>(*handle); !pd) return tl::unexpected(pd.error());
  return refuse(EOPNOTSUPP, "memory of other devices (DMA-BUF) cannot be registered");
}

constexpr std::array kDestroy{handle(kObject)};
constexpr std::array kQueryMr{
    handle(UVERBS_ATTR_QUERY_MR_HANDLE),
    value_out<std::uint32_t>(UVERBS_ATTR_QUERY_MR_RESP_LKEY, kMandatory),
    value_out<std::uint32_t>(UVERBS_ATTR_QUERY_MR_RESP_RKEY, kMandatory),
    value_out<std::uint64_t>(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, kMandatory),
    value_out<std::uint64_t>(UVERBS_ATTR_QUERY_MR_RESP_IOVA, kOptional),
};
constexpr std::array kAdviseMr{
    handle(UVERBS_ATTR_ADVISE_MR_PD_HANDLE),
    constant_in(UVERBS_ATTR_ADVISE_MR_ADVICE, kMandatory),
    flags_in(UVERBS_ATTR_ADVISE_MR_FLAGS, kMandatory),
    bytes_in(UVERBS_ATTR_ADVISE_MR_SGE_LIST, kMandatory, sizeof(ib_uverbs_sge)),
};
constexpr std::array kRegisterDmabuf{
    handle(UVERBS_ATTR_REG_DMABUF_MR_HANDLE),
    handle(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE),
    value_in<std::uint64_t>(UVERBS_ATTR_REG_DMABUF_MR_OFFSET, kMandatory),
    value_in<std::uint64_t>(UVERBS_ATTR_REG_DMABUF_MR_LENGTH, kMandatory),
    value_in<std::uint64_t>(UVERBS_ATTR_REG_DMABUF_MR_IOVA, kMandatory),
    value_in<std::uint32_t>(UVERBS_ATTR_REG_DMABUF_MR_FD, kMandatory),
    flags_in(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, kOptional),
    value_out<std::uint32_t>(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, kMandatory),
    value_out<std::uint32_t>(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, kMandatory),
};

constexpr std::array kMethods{
    Method{UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, "PD_DESTROY", destroy_method<PdObject>,
           kDestroy},
    Method{UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY, "MW_DESTROY", destroy_method<MwObject>,
           kDestroy},
    Method{UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY, "AH_DESTROY", destroy_method<AhObject>,
           kDestroy},
    Method{UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, "MR_DESTROY", destroy_method<MrObject>,
           kDestroy},
    Method{UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, "QUERY_MR", query_mr, kQueryMr},
    Method{UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, "ADVISE_MR", advise_mr, kAdviseMr},
    Method{UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, "REG_DMABUF_MR", register_dmabuf,
           kRegisterDmabuf},
};

}  // namespace

std::span<const Method> memory_methods() { return kMethods; }

}  // namespace urxe::verbs::uverbs
