// Prefetching regions with on-demand paging.
#include <array>
#include <cerrno>

#include <sys/mman.h>

#include "tests/unit/verbs/uverbs_setup.h"

using namespace urxe;
using namespace urxe::test;

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint32_t kOnDemandWritable =
    IB_UVERBS_ACCESS_ON_DEMAND | IB_UVERBS_ACCESS_LOCAL_WRITE;
constexpr std::uint32_t kWait = IB_UVERBS_ADVISE_MR_FLAG_FLUSH;

struct AdviceSetup : UverbsSetup {
  AdviceSetup() {
    client.open_context();
    pd = client.pd();
  }
  ~AdviceSetup() { munmap(memory, 4 * kPage); }

  std::uint32_t region(std::uint32_t access) {
    std::uint32_t key = 0;
    client.mr(pd, memory, 4 * kPage, access, &key);
    return key;
  }
  int advise(std::uint64_t advice, std::uint32_t flags, std::vector<ib_uverbs_sge> list,
             std::size_t surplus = 0) {
    return Ioctl(UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR)
        .object(UVERBS_ATTR_ADVISE_MR_PD_HANDLE, pd)
        .constant(UVERBS_ATTR_ADVISE_MR_ADVICE, advice)
        .in(UVERBS_ATTR_ADVISE_MR_FLAGS, flags)
        .in(UVERBS_ATTR_ADVISE_MR_SGE_LIST, list.data(),
            list.size() * sizeof(ib_uverbs_sge) + surplus)
        .run(client.file());
  }
  [[nodiscard]] std::uint64_t start() const { return reinterpret_cast<std::uintptr_t>(memory); }
  [[nodiscard]] std::size_t present_pages() const {
    std::array<unsigned char, 4> pages{};
    REQUIRE(mincore(memory, 4 * kPage, pages.data()) == 0);
    std::size_t present = 0;
    for (const unsigned char page : pages) present += page & 1U;
    return present;
  }

  UverbsClient client{node, Front::ioctl};
  std::uint32_t pd = 0;
  void* memory =
      mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
};

}  // namespace

TEST_CASE("a prefetch that waits makes the pages present, and only those of its range") {
  AdviceSetup setup;
  const std::uint32_t key = setup.region(kOnDemandWritable);
  REQUIRE(setup.present_pages() == 0);
  CHECK(setup.advise(IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, kWait,
                     {{setup.start(), 4 * kPage, key}}) == 0);
  CHECK(setup.present_pages() == 0);
  CHECK(setup.advise(IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE, kWait,
                     {{setup.start() + kPage + 10, kPage, key}}) == 0);
  CHECK(setup.present_pages() == 2);
}

TEST_CASE("advice on an implicit region may be about any address") {
  AdviceSetup setup;
  ib_uverbs_reg_mr request{};
  request.length = ~std::uint64_t{0};
  request.pd_handle = setup.pd;
  request.access_flags = kOnDemandWritable;
  ib_uverbs_reg_mr_resp region{};
  REQUIRE(setup.client.run(IB_USER_VERBS_CMD_REG_MR, request, &region) == 0);
  const auto advice =
      GENERATE(IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE);
  CHECK(setup.advise(advice, kWait, {{setup.start(), 4 * kPage, region.lkey}}) == 0);
  CHECK(setup.present_pages() == 4);
}

TEST_CASE("advice on memory that is gone fails for who waits, and only then") {
  AdviceSetup setup;
  const std::uint32_t key = setup.region(kOnDemandWritable);
  REQUIRE(munmap(setup.memory, 4 * kPage) == 0);
  const std::vector<ib_uverbs_sge> list{{setup.start(), kPage, key}};
  CHECK(setup.advise(IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH, 0, list) == 0);
  CHECK(setup.advise(IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH, kWait, list) == -EFAULT);
}

TEST_CASE("advice that makes no sense is refused with the kernel's errno") {
  AdviceSetup setup;
  const std::uint32_t key = setup.region(kOnDemandWritable);
  const std::uint64_t at = setup.start();
  constexpr auto kPrefetch = IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH;
  CHECK(setup.advise(kPrefetch, 0, {{at, kPage, key}, {at, kPage, key ^ 0x100}}) == -EINVAL);
  CHECK(setup.advise(kPrefetch, 0, {{at, kPage, setup.region(0)}}) == -EINVAL);
  CHECK(setup.advise(kPrefetch, 0, {{at + kPage, 4 * kPage, key}}) == -EFAULT);
  const std::uint32_t read_only = setup.region(IB_UVERBS_ACCESS_ON_DEMAND);
  CHECK(setup.advise(kPrefetch, 0, {{at, kPage, read_only}}) == 0);
  CHECK(setup.advise(IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, {{at, kPage, read_only}}) ==
        -EPERM);
  CHECK(setup.advise(99, 0, {{at, kPage, key}}) == -EOPNOTSUPP);
  CHECK(setup.advise(kPrefetch, 2, {{at, kPage, key}}) == -EINVAL);
  std::vector<ib_uverbs_sge> longer{{at, kPage, key}};
  longer.reserve(2);
  CHECK(setup.advise(kPrefetch, 0, longer, 4) == -EINVAL);
  setup.pd = setup.client.pd();
  CHECK(setup.advise(kPrefetch, 0, {{at, kPage, key}}) == -EPERM);
  setup.pd = 999;
  CHECK(setup.advise(kPrefetch, 0, {{at, kPage, key}}) == -ENOENT);
}
