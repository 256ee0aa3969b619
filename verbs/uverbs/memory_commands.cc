// Protection domains, memory regions and windows.
#include <rdma/ib_user_ioctl_verbs.h>
#include <unistd.h>

#include "verbs/abi/rxe_abi.h"
#include "verbs/uverbs/command_table.h"
#include "verbs/uverbs/creation.h"

namespace urxe::verbs::uverbs {
namespace {

constexpr std::uint64_t kPageMask = 4096 - 1;
constexpr std::uint32_t kKnownAccess = ((IB_UVERBS_ACCESS_HUGETLB << 1) - 1) |
                                       abi::kAccessFlushGlobal | IB_UVERBS_ACCESS_OPTIONAL_RANGE;
// ib_mr_rereg_flags of the kernel's ib_verbs.h.
constexpr std::uint32_t kChangeTranslation = 1U << 0;
constexpr std::uint32_t kChangePd = 1U << 1;
constexpr std::uint32_t kChangeAccess = 1U << 2;

Status check_access(std::uint32_t flags) {
  if ((flags & abi::kAccessFlushPersistent) != 0) {
    return refuse(EINVAL, "FLUSH_PERSISTENT: this is not known to be persistent memory");
  }
  if ((flags & ~kKnownAccess) == 0) return {};
  return refuse(
      EINVAL, fmt::format("access flags {:#x}: {:#x} are not known", flags, flags & ~kKnownAccess));
}

// What the kernel would find out by pinning the pages.
Status check_range(std::uint64_t start, std::uint64_t length, std::uint64_t iova,
                   std::uint32_t access) {
  if ((start & kPageMask) != (iova & kPageMask)) {
    return refuse(EINVAL, fmt::format("start {:#x} and iova {:#x} differ in their offset in a page",
                                      start, iova));
  }
  if ((access & IB_UVERBS_ACCESS_ON_DEMAND) != 0) return {};
  if (length == 0 && (start & kPageMask) == 0) {
    return refuse(EINVAL, "the region has no byte");
  }
  if (start + length < start || start + length > ~kPageMask) {
    return refuse(EINVAL, fmt::format("{:#x} + {:#x} exceeds the address space", start, length));
  }
  if (!is_mapped({start, length})) {
    return refuse(EFAULT, fmt::format("not all of {:#x} + {:#x} is mapped", start, length));
  }
  return {};
}

emulator::RegionSpec region_of(std::uint64_t start, std::uint64_t length, std::uint64_t iova,
                               std::uint32_t access) {
  const bool on_demand = (access & IB_UVERBS_ACCESS_ON_DEMAND) != 0;
  return {.start = start,
          .length = length,
          .iova = iova,
          .access = emulator::Access{access},
          .whole_address_space = on_demand && start == 0 && length == ~std::uint64_t{0}};
}

}  // namespace

Status alloc_pd(Context& context, const Command& command) {
  if (auto ready = context.need_context(); !ready) return ready;
  ib_uverbs_alloc_pd request{};
  if (auto read = command.read(request); !read) return read;
  auto pd = context.device().create_pd();
  if (!pd) return refuse(pd.error());
  auto object = std::make_unique<PdObject>();
  object->pd = *pd;
  PdObject& added = context.objects().add(std::move(object));
  ib_uverbs_alloc_pd_resp response{};
  response.pd_handle = added.handle;
  return keep_if(command.reply(response), context, added);
}

Status dealloc_pd(Context& context, const Command& command) {
  ib_uverbs_dealloc_pd request{};
  if (auto read = command.read(request); !read) return read;
  const auto destroyed = destroy<PdObject>(context, request.pd_handle);
  if (!destroyed) return tl::unexpected(destroyed.error());
  return {};
}

Status register_mr(Context& context, const Command& command) {
  ib_uverbs_reg_mr request{};
  if (auto read = command.read(request); !read) return read;
  if (auto ready = context.need_context(); !ready) return ready;
  if (auto allowed = check_access(request.access_flags); !allowed) return allowed;
  const auto pd = context.objects().find<PdObject>(request.pd_handle);
  if (!pd) return tl::unexpected(pd.error());
  if (auto there = check_range(request.start, request.length, request.hca_va, request.access_flags);
      !there) {
    return there;
  }
  const auto region = context.device().register_region(
      *(*pd)->pd, region_of(request.start, request.length, request.hca_va, request.access_flags));
  if (!region) return refuse(region.error());
  auto object = std::make_unique<MrObject>();
  object->region = *region;
  MrObject& added = context.objects().add(std::move(object));
  ib_uverbs_reg_mr_resp response{};
  response.mr_handle = added.handle;
  response.lkey = response.rkey = (*region)->key();
  return keep_if(command.reply(response), context, added);
}

Status reregister_mr(Context& context, const Command& command) {
  ib_uverbs_rereg_mr request{};
  if (auto read = command.read(request); !read) return read;
  const std::uint32_t flags = request.flags;
  if (flags == 0) return refuse(EINVAL, "flags is 0: nothing would change");
  if ((flags & ~(kChangeTranslation | kChangePd | kChangeAccess)) != 0) {
    return refuse(EOPNOTSUPP, fmt::format("flags {:#x} are not known", flags));
  }
  const auto object = context.objects().find<MrObject>(request.mr_handle);
  if (!object) return tl::unexpected(object.error());
  emulator::MemoryRegion& region = *(*object)->region;
  std::uint32_t access = region.spec().access.bits();
  if ((flags & kChangeAccess) != 0) {
    access = request.access_flags;
    if (auto allowed = check_access(access); !allowed) return allowed;
  }
  emulator::ProtectionDomain* new_pd = nullptr;
  if ((flags & kChangePd) != 0) {
    const auto pd = context.objects().find<PdObject>(request.pd_handle);
    if (!pd) return tl::unexpected(pd.error());
    new_pd = (*pd)->pd;
  }
  std::optional<emulator::RegionSpec> where;
  if ((flags & kChangeTranslation) != 0) {
    if (auto there = check_range(request.start, request.length, request.hca_va, access); !there) {
      return there;
    }
    where = region_of(request.start, request.length, request.hca_va, access);
  }
  if (auto changed = context.device().reregister(region, new_pd, where, emulator::Access{access});
      !changed) {
    return refuse(changed.error());
  }
  ib_uverbs_rereg_mr_resp response{};
  response.lkey = response.rkey = region.key();
  return command.reply(response);
}

Status deregister_mr(Context& context, const Command& command) {
  ib_uverbs_dereg_mr request{};
  if (auto read = command.read(request); !read) return read;
  const auto destroyed = destroy<MrObject>(context, request.mr_handle);
  if (!destroyed) return tl::unexpected(destroyed.error());
  return {};
}

Status alloc_mw(Context& context, const Command& command) {
  ib_uverbs_alloc_mw request{};
  if (auto read = command.read(request); !read) return read;
  if (auto ready = context.need_context(); !ready) return ready;
  const auto pd = context.objects().find<PdObject>(request.pd_handle);
  if (!pd) return tl::unexpected(pd.error());
  const auto type = static_cast<emulator::WindowType>(request.mw_type);
  if (type != emulator::WindowType::type1 && type != emulator::WindowType::type2) {
    return refuse(EINVAL,
                  fmt::format("memory windows are of type 1 or 2, not {}", request.mw_type));
  }
  const auto window = context.device().create_window(*(*pd)->pd, type);
  if (!window) return refuse(window.error());
  auto object = std::make_unique<MwObject>();
  object->window = *window;
  MwObject& added = context.objects().add(std::move(object));
  ib_uverbs_alloc_mw_resp response{};
  response.mw_handle = added.handle;
  response.rkey = (*window)->key();
  return keep_if(command.reply(response), context, added);
}

Status dealloc_mw(Context& context, const Command& command) {
  ib_uverbs_dealloc_mw request{};
  if (auto read = command.read(request); !read) return read;
  const auto destroyed = destroy<MwObject>(context, request.mw_handle);
  if (!destroyed) return tl::unexpected(destroyed.error());
  return {};
}

}  // namespace urxe::verbs::uverbs
