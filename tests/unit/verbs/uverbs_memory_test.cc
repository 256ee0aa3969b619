// Protection domains, memory regions and windows.
#include <array>
#include <cerrno>

#include "tests/unit/verbs/uverbs_setup.h"

using namespace urxe;
using namespace urxe::test;

namespace {

constexpr std::uint32_t kLocalWrite = IB_UVERBS_ACCESS_LOCAL_WRITE;
constexpr std::uint64_t kPage = 4096;

struct MemorySetup : UverbsSetup {
  explicit MemorySetup(Front front) : client(node, front) {
    client.open_context();
    pd = client.pd();
  }
  UverbsClient client;
  std::uint32_t pd = 0;
  alignas(kPage) std::array<std::uint8_t, 2 * kPage> memory{};

  [[nodiscard]] std::uint64_t start() const {
    return reinterpret_cast<std::uintptr_t>(memory.data());
  }
  int register_range(std::uint64_t from, std::uint64_t length, std::uint64_t iova,
                     std::uint32_t access, std::uint32_t in_pd) {
    ib_uverbs_reg_mr request{};
    request.start = from;
    request.length = length;
    request.hca_va = iova;
    request.pd_handle = in_pd;
    request.access_flags = access;
    ib_uverbs_reg_mr_resp response{};
    return client.run(IB_USER_VERBS_CMD_REG_MR, request, &response);
  }
  int deregister(std::uint32_t handle) {
    return client.run(IB_USER_VERBS_CMD_DEREG_MR, ib_uverbs_dereg_mr{handle});
  }
  int dealloc_pd(std::uint32_t handle) {
    return client.run(IB_USER_VERBS_CMD_DEALLOC_PD, ib_uverbs_dealloc_pd{handle});
  }
};

}  // namespace

TEST_CASE("handles are the lowest free numbers, whatever the kind") {
  MemorySetup setup(either_front());
  CHECK(setup.pd == 0);
  CHECK(setup.client.mr(setup.pd, setup.memory.data(), 64, 0) == 1);
  CHECK(setup.client.pd() == 2);
  REQUIRE(setup.deregister(1) == 0);
  CHECK(setup.client.pd() == 1);
}

TEST_CASE("an object that others need is busy until they are gone") {
  MemorySetup setup(either_front());
  const std::uint32_t mr = setup.client.mr(setup.pd, setup.memory.data(), 64, 0);
  CHECK(setup.dealloc_pd(setup.pd) == -EBUSY);
  REQUIRE(setup.deregister(mr) == 0);
  CHECK(setup.dealloc_pd(setup.pd) == 0);
  CHECK(setup.census() == kNothing);
}

TEST_CASE("an unknown handle is ENOENT, one of another kind EINVAL") {
  MemorySetup setup(either_front());
  const std::uint32_t mr = setup.client.mr(setup.pd, setup.memory.data(), 64, 0);
  CHECK(setup.dealloc_pd(77) == -ENOENT);
  CHECK(setup.dealloc_pd(~0U) == -ENOENT);
  CHECK(setup.dealloc_pd(mr) == -EINVAL);
  CHECK(setup.deregister(setup.pd) == -EINVAL);
}

TEST_CASE("a region must be mapped memory, and its flags make sense") {
  MemorySetup setup(either_front());
  const std::uint64_t start = setup.start();
  CHECK(setup.register_range(start, 64, start, kLocalWrite, 99) == -ENOENT);
  CHECK(setup.register_range(start, 64, start, IB_UVERBS_ACCESS_REMOTE_WRITE, setup.pd) == -EINVAL);
  CHECK(setup.register_range(start, 64, start, 1U << 15, setup.pd) == -EINVAL);
  CHECK(setup.register_range(start + 1, 64, start, 0, setup.pd) == -EINVAL);
  CHECK(setup.register_range(start, 0, start, 0, setup.pd) == -EINVAL);
  CHECK(setup.register_range(start, ~std::uint64_t{0}, start, 0, setup.pd) == -EINVAL);
  CHECK(setup.register_range(kPage, kPage, kPage, 0, setup.pd) == -EFAULT);
  CHECK(setup.register_range(start, 64, 0x7000 + (start & (kPage - 1)),
                             kLocalWrite | IB_UVERBS_ACCESS_RELAXED_ORDERING, setup.pd) == 0);
}

TEST_CASE("memory that is paged on demand may be registered before it is mapped") {
  MemorySetup setup(either_front());
  CHECK(setup.register_range(kPage, kPage, kPage, IB_UVERBS_ACCESS_ON_DEMAND, setup.pd) == 0);
  CHECK(setup.register_range(0, ~std::uint64_t{0}, 0, kLocalWrite | IB_UVERBS_ACCESS_ON_DEMAND,
                             setup.pd) == 0);
}

TEST_CASE("a region that is registered again gets new keys, in the place that was asked for") {
  MemorySetup setup(either_front());
  std::uint32_t key = 0;
  ib_uverbs_rereg_mr request{};
  request.mr_handle = setup.client.mr(setup.pd, setup.memory.data(), 64, kLocalWrite, &key);
  ib_uverbs_rereg_mr_resp response{};
  const auto run = [&] { return setup.client.run(IB_USER_VERBS_CMD_REREG_MR, request, &response); };
  CHECK(run() == -EINVAL);
  request.flags = 8;
  CHECK(run() == -EOPNOTSUPP);
  request.flags = 1 | 2 | 4;
  request.start = request.hca_va = setup.start() + kPage;
  request.length = 128;
  request.access_flags = kLocalWrite | IB_UVERBS_ACCESS_REMOTE_READ;
  request.pd_handle = 99;
  CHECK(run() == -ENOENT);
  request.pd_handle = setup.client.pd();
  REQUIRE(run() == 0);
  CHECK(response.lkey != key);
  CHECK(response.lkey == response.rkey);
  CHECK(setup.dealloc_pd(setup.pd) == 0);
  CHECK(setup.dealloc_pd(request.pd_handle) == -EBUSY);
}

TEST_CASE("a region tells its keys and place by ioctl") {
  MemorySetup setup(Front::ioctl);
  std::uint32_t key = 0;
  const std::uint32_t mr = setup.client.mr(setup.pd, setup.memory.data(), 64, 0, &key);
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
  std::uint64_t length = 0;
  std::uint64_t iova = 0;
  const auto query = [&](std::uint32_t handle) {
    return Ioctl(UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR)
        .object(UVERBS_ATTR_QUERY_MR_HANDLE, handle)
        .out(UVERBS_ATTR_QUERY_MR_RESP_LKEY, lkey)
        .out(UVERBS_ATTR_QUERY_MR_RESP_RKEY, rkey)
        .out(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, length)
        .out(UVERBS_ATTR_QUERY_MR_RESP_IOVA, iova)
        .run(setup.client.file());
  };
  REQUIRE(query(mr) == 0);
  CHECK(lkey == key);
  CHECK(rkey == key);
  CHECK(length == 64);
  CHECK(iova == setup.start());
  CHECK(query(setup.pd) == -EINVAL);
  CHECK(query(50) == -ENOENT);
}

TEST_CASE("windows are of type 1 or 2") {
  MemorySetup setup(either_front());
  ib_uverbs_alloc_mw request{};
  request.pd_handle = setup.pd;
  ib_uverbs_alloc_mw_resp response{};
  for (const std::uint8_t type : {0, 3}) {
    request.mw_type = type;
    CHECK(setup.client.run(IB_USER_VERBS_CMD_ALLOC_MW, request, &response) == -EINVAL);
  }
  for (const std::uint8_t type : {1, 2}) {
    request.mw_type = type;
    REQUIRE(setup.client.run(IB_USER_VERBS_CMD_ALLOC_MW, request, &response) == 0);
    CHECK(response.rkey != 0);
    CHECK(setup.client.run(IB_USER_VERBS_CMD_DEALLOC_MW,
                           ib_uverbs_dealloc_mw{response.mw_handle}) == 0);
  }
  CHECK(setup.client.run(IB_USER_VERBS_CMD_DEALLOC_MW, ib_uverbs_dealloc_mw{setup.pd}) == -EINVAL);
  request.pd_handle = 99;
  CHECK(setup.client.run(IB_USER_VERBS_CMD_ALLOC_MW, request, &response) == -ENOENT);
}

TEST_CASE("objects are destroyed by ioctl as well") {
  MemorySetup setup(Front::ioctl);
  const std::uint32_t mr = setup.client.mr(setup.pd, setup.memory.data(), 64, 0);
  const auto destroy = [&](std::uint16_t object, std::uint16_t method, std::uint32_t handle) {
    return Ioctl(object, method).object(0, handle).run(setup.client.file());
  };
  CHECK(destroy(UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, setup.pd) == -EBUSY);
  CHECK(destroy(UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, setup.pd) == -EINVAL);
  CHECK(destroy(UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, mr) == 0);
  CHECK(destroy(UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, mr) == -ENOENT);
  CHECK(destroy(UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY, mr) == -ENOENT);
  CHECK(destroy(UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY, mr) == -ENOENT);
  CHECK(destroy(UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, setup.pd) == 0);
  CHECK(setup.census() == kNothing);
}

TEST_CASE("memory of other devices is refused as by Linux's rxe") {
  MemorySetup setup(Front::ioctl);
  std::uint32_t key = 0;
  CHECK(Ioctl(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR)
            .object(UVERBS_ATTR_REG_DMABUF_MR_HANDLE)
            .object(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, setup.pd)
            .in(UVERBS_ATTR_REG_DMABUF_MR_OFFSET, std::uint64_t{0})
            .in(UVERBS_ATTR_REG_DMABUF_MR_LENGTH, kPage)
            .in(UVERBS_ATTR_REG_DMABUF_MR_IOVA, std::uint64_t{0})
            .in(UVERBS_ATTR_REG_DMABUF_MR_FD, std::uint32_t{0})
            .out(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, key)
            .out(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, key)
            .run(setup.client.file()) == -EOPNOTSUPP);
}

TEST_CASE("the handles of a kind can be listed") {
  MemorySetup setup(Front::ioctl);
  const std::uint32_t mr = setup.client.mr(setup.pd, setup.memory.data(), 64, 0);
  const std::uint32_t second = setup.client.pd();
  std::array<std::uint32_t, 4> handles{};
  std::uint32_t total = 0;
  const auto list = [&](std::uint64_t object, std::size_t room) {
    return Ioctl(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES)
        .constant(UVERBS_ATTR_INFO_OBJECT_ID, object)
        .out(UVERBS_ATTR_INFO_TOTAL_HANDLES, total)
        .out(UVERBS_ATTR_INFO_HANDLES_LIST, handles.data(), room * sizeof(std::uint32_t))
        .run(setup.client.file());
  };
  REQUIRE(list(UVERBS_OBJECT_PD, 4) == 0);
  CHECK(total == 2);
  CHECK(handles[0] == setup.pd);
  CHECK(handles[1] == second);
  REQUIRE(list(UVERBS_OBJECT_MR, 4) == 0);
  CHECK(total == 1);
  CHECK(handles[0] == mr);
  REQUIRE(list(UVERBS_OBJECT_PD, 1) == 0);
  CHECK(total == 1);
  CHECK(list(UVERBS_OBJECT_FLOW, 4) == -EINVAL);
}
