#include "verbs/preload/advice_hook.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <limits>

#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl.h>

#include "verbs/preload/descriptor_table.h"
#include "verbs/preload/quiet.h"

namespace urxe::verbs {
namespace {

using AdviseMr = int (*)(ibv_pd*, ibv_advise_mr_advice, std::uint32_t, ibv_sge*, std::uint32_t);

// The provider's own: all of our contexts are served by one.
std::atomic<AdviseMr> provider_advise_mr{nullptr};

constexpr std::uint16_t kAttributes = 4;

// ib_uverbs_ioctl_hdr, whose list has no length in the header.
struct AdviseCommand {
  std::uint16_t length = sizeof(AdviseCommand);
  std::uint16_t object = UVERBS_OBJECT_MR;
  std::uint16_t method = UVERBS_METHOD_ADVISE_MR;
  std::uint16_t count = kAttributes;
  std::uint64_t reserved1 = 0;
  std::uint32_t driver = RDMA_DRIVER_RXE;
  std::uint32_t reserved2 = 0;
  std::array<ib_uverbs_attr, kAttributes> attributes{};
};
static_assert(sizeof(AdviseCommand) ==
              sizeof(ib_uverbs_ioctl_hdr) + kAttributes * sizeof(ib_uverbs_attr));

ib_uverbs_attr attribute(std::uint16_t id, std::size_t length, std::uint64_t data) {
  ib_uverbs_attr result{};
  result.attr_id = id;
  result.len = static_cast<std::uint16_t>(length);
  result.flags = UVERBS_ATTR_F_MANDATORY;
  result.data = data;
  return result;
}

int give_advice(const ibv_pd& pd, ibv_advise_mr_advice advice, std::uint32_t flags,
                const ibv_sge* list, std::uint32_t count) {
  const std::size_t size = std::size_t{count} * sizeof(ibv_sge);
  if (size > std::numeric_limits<std::uint16_t>::max()) return EINVAL;
  const auto reference = descriptors.find(pd.context->cmd_fd);
  if (!reference || reference.is_private() || reference.file() == nullptr) return EIO;
  AdviseCommand command;
  command.attributes = {
      attribute(UVERBS_ATTR_ADVISE_MR_PD_HANDLE, 0, pd.handle),
      attribute(UVERBS_ATTR_ADVISE_MR_ADVICE, sizeof(std::uint64_t), advice),
      attribute(UVERBS_ATTR_ADVISE_MR_FLAGS, sizeof(flags), flags),
      attribute(UVERBS_ATTR_ADVISE_MR_SGE_LIST, size, reinterpret_cast<std::uintptr_t>(list)),
  };
  const Quiet quiet;
  const int error = -reference.file()->ioctl(RDMA_VERBS_IOCTL, &command);
  return error == ENOTTY ? EOPNOTSUPP : error;  // a kernel with write() only
}

int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* list,
              std::uint32_t count) {
  const AdviseMr provider = provider_advise_mr.load(std::memory_order_relaxed);
  const int result = provider == nullptr ? EOPNOTSUPP : provider(pd, advice, flags, list, count);
  return result == EOPNOTSUPP ? give_advice(*pd, advice, flags, list, count) : result;
}

}  // namespace

void hook_advice(ibv_context& context) noexcept {
  if (!descriptors.holds(context.cmd_fd)) return;
  verbs_context* const extended = verbs_get_ctx(&context);
  const std::size_t from_advise_mr = sizeof(*extended) - offsetof(verbs_context, advise_mr);
  if (extended == nullptr || extended->sz < from_advise_mr) return;
  AdviseMr expected = nullptr;
  const bool is_first = provider_advise_mr.compare_exchange_strong(expected, extended->advise_mr);
  if (is_first || expected == extended->advise_mr) extended->advise_mr = &advise_mr;
}

}  // namespace urxe::verbs
