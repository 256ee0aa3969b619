#include "verbs/uverbs/advice.h"

#include <cerrno>

#include <rdma/ib_user_ioctl_verbs.h>
#include <sys/mman.h>
#include <unistd.h>

namespace urxe::verbs::uverbs {
namespace {

constexpr std::uint64_t kLastAdvice = IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;

struct Range {
  std::uint64_t address;
  std::uint64_t length;
};

Outcome<Range> find_range(Context& context, const emulator::ProtectionDomain& pd,
                          const ib_uverbs_sge& sge, bool for_writing) {
  const emulator::KeyTable& keys = context.device().keys();
  const emulator::MemoryRegion* const region = keys.find_region(sge.lkey);
  if (region == nullptr || !region->spec().access.has(emulator::kOnDemand)) {
    return refuse(EINVAL, fmt::format("no region with on-demand paging has lkey {:#x}", sge.lkey));
  }
  const auto where = keys.resolve_local(pd, sge.lkey, sge.addr, sge.length,
                                        for_writing ? emulator::kLocalWrite : emulator::kLocalRead);
  if (where) return Range{*where, sge.length};
  const bool outside = where.error() == emulator::MemoryFault::out_of_bounds;
  return refuse(outside ? EFAULT : EPERM,
                fmt::format("advice on {:#x} + {:#x} with lkey {:#x}: {}", sge.addr, sge.length,
                            sge.lkey, to_string(where.error())));
}

// Makes pages present, or asks for it. Kernels before 5.14 do not know how; then they come when
// they are used.
Status prefetch(const Range& range, std::uint64_t advice, bool waits) {
  static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (range.length == 0 || advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) return {};
  const std::uint64_t first = range.address & ~(page - 1);
  const std::size_t size = range.length + (range.address - first);
  const bool writes = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE;
  const int how = !waits ? MADV_WILLNEED : (writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
  const bool there =
      madvise(reinterpret_cast<void*>(static_cast<std::uintptr_t>(first)), size, how) == 0;
  if (there || !waits || errno == EINVAL) return {};
  return refuse(EFAULT, fmt::format("not all of {:#x} + {:#x} is mapped, or not with this "
                                    "permission",
                                    range.address, range.length));
}

}  // namespace

Status advise_mr(Context& context, const Attributes& attributes) {
  const auto handle = attributes.handle(UVERBS_ATTR_ADVISE_MR_PD_HANDLE);
  if (!handle) return tl::unexpected(handle.error());
  const auto pd = context.objects().find<PdObject>(*handle);
  if (!pd) return tl::unexpected(pd.error());
  const auto advice =
      attributes.constant(UVERBS_ATTR_ADVISE_MR_ADVICE, std::numeric_limits<std::uint32_t>::max());
  if (!advice) return tl::unexpected(advice.error());
  const auto flags = attributes.flags(UVERBS_ATTR_ADVISE_MR_FLAGS, IB_UVERBS_ADVISE_MR_FLAG_FLUSH);
  if (!flags) return tl::unexpected(flags.error());
  if (*advice > kLastAdvice) {
    return refuse(EOPNOTSUPP, fmt::format("there is no advice {} on memory regions", *advice));
  }
  UserBuffer list = attributes.buffer(UVERBS_ATTR_ADVISE_MR_SGE_LIST);
  if (list.size % sizeof(ib_uverbs_sge) != 0) {
    return refuse(EINVAL, fmt::format("{} bytes are not a list of ranges", list.size));
  }
  const bool writes = *advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE;
  for (; list.size > 0; list = list.behind(sizeof(ib_uverbs_sge))) {
    ib_uverbs_sge sge{};
    if (!copy_from_user(&sge, list.address, sizeof(sge))) return bad_address("range", list.address);
    const auto range = find_range(context, *(*pd)->pd, sge, writes);
    if (!range) return tl::unexpected(range.error());
    if (auto done = prefetch(*range, *advice, *flags != 0); !done) return done;
  }
  return {};
}

}  // namespace urxe::verbs::uverbs
