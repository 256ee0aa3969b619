// Completion queues, queue pairs, shared receive queues and address handles.
#include <array>
#include <cerrno>

#include <unistd.h>

#include "tests/unit/verbs/uverbs_setup.h"

using namespace urxe;
using namespace urxe::test;

namespace {

// Bits of ib_qp_attr_mask.
constexpr std::uint32_t kState = 1U << 0;
constexpr std::uint32_t kCurrentState = 1U << 1;
constexpr std::uint32_t kAccess = 1U << 3;
constexpr std::uint32_t kPKeyIndex = 1U << 4;
constexpr std::uint32_t kPortNumber = 1U << 5;
constexpr std::uint32_t kPath = 1U << 7;
constexpr std::uint32_t kPathMtu = 1U << 8;
constexpr std::uint32_t kReceivePsn = 1U << 12;
constexpr std::uint32_t kAlternatePath = 1U << 14;
constexpr std::uint32_t kMinRnrTimer = 1U << 15;
constexpr std::uint32_t kMaxDestReads = 1U << 17;
constexpr std::uint32_t kDestination = 1U << 20;
constexpr std::uint32_t kRateLimit = 1U << 25;
constexpr std::uint32_t kToInit = kState | kAccess | kPKeyIndex | kPortNumber;
constexpr std::uint32_t kToRtr =
    kState | kPath | kPathMtu | kDestination | kReceivePsn | kMinRnrTimer | kMaxDestReads;

struct QueueSetup : UverbsSetup {
  explicit QueueSetup(Front front) : client(node, front) {
    client.open_context();
    pd = client.pd();
  }
  UverbsClient client;
  std::uint32_t pd = 0;

  int create_cq(const ib_uverbs_create_cq& request) {
    ib_uverbs_create_cq_resp response{};
    rxe_create_cq_resp driver{};
    return client.run(IB_USER_VERBS_CMD_CREATE_CQ, request, &response, driver_out(driver));
  }
  int create_qp(const ib_uverbs_create_qp& request) {
    ib_uverbs_create_qp_resp response{};
    rxe_create_qp_resp driver{};
    return client.run(IB_USER_VERBS_CMD_CREATE_QP, request, &response, driver_out(driver));
  }
  int resize_cq(std::uint32_t cq, std::uint32_t cqe, std::uint32_t* actual = nullptr) {
    ib_uverbs_resize_cq request{};
    request.cq_handle = cq;
    request.cqe = cqe;
    ib_uverbs_resize_cq_resp response{};
    rxe_resize_cq_resp driver{};
    const int result =
        client.run(IB_USER_VERBS_CMD_RESIZE_CQ, request, &response, driver_out(driver));
    if (actual != nullptr) *actual = response.cqe;
    return result;
  }
  int destroy_cq(std::uint32_t cq) {
    ib_uverbs_destroy_cq request{};
    request.cq_handle = cq;
    ib_uverbs_destroy_cq_resp response{};
    return client.run(IB_USER_VERBS_CMD_DESTROY_CQ, request, &response);
  }
  int destroy_qp(std::uint32_t qp) {
    ib_uverbs_destroy_qp request{};
    request.qp_handle = qp;
    ib_uverbs_destroy_qp_resp response{};
    return client.run(IB_USER_VERBS_CMD_DESTROY_QP, request, &response);
  }
  int destroy_srq(std::uint32_t srq) {
    ib_uverbs_destroy_srq request{};
    request.srq_handle = srq;
    ib_uverbs_destroy_srq_resp response{};
    return client.run(IB_USER_VERBS_CMD_DESTROY_SRQ, request, &response);
  }
};

ib_uverbs_modify_qp to_init() {
  ib_uverbs_modify_qp attributes{};
  attributes.qp_state = 1;
  attributes.port_num = 1;
  return attributes;
}

ib_uverbs_modify_qp to_rtr() {
  ib_uverbs_modify_qp attributes{};
  attributes.qp_state = 2;
  attributes.path_mtu = 3;
  attributes.dest_qp_num = 0x1234;
  attributes.rq_psn = 0x1ABCDEF;
  attributes.max_dest_rd_atomic = 1;
  attributes.dest.is_global = 1;
  attributes.dest.port_num = 1;
  attributes.dest.sgid_index = 1;
  attributes.dest.hop_limit = 17;
  attributes.dest.traffic_class = 0x28;
  attributes.dest.flow_label = 0xABCDE;
  attributes.dest.sl = 3;
  std::copy_n(kSecondGid.bytes().data(), 16, attributes.dest.dgid);
  return attributes;
}

}  // namespace

// --- completion queues

TEST_CASE("a completion queue has at least the entries that were asked for, in a ring of its own") {
  QueueSetup setup(either_front());
  const auto first = setup.client.cq(1, -1, 100);
  const auto second = setup.client.cq(2, -1, 1);
  CHECK(first.mapping.offset != second.mapping.offset);
  CHECK(setup.client.map(first.mapping)->index_mask >= 100);
  CHECK(setup.destroy_cq(first.handle) == 0);
  CHECK(setup.destroy_cq(first.handle) == -ENOENT);
}

TEST_CASE("a completion queue is refused what no queue has") {
  QueueSetup setup(either_front());
  ib_uverbs_create_cq request{};
  request.comp_channel = -1;
  CHECK(setup.create_cq(request) == -EINVAL);
  request.cqe = 1U << 30;
  CHECK(setup.create_cq(request) == -EINVAL);
  request.cqe = 1;
  request.comp_vector = 100000;
  CHECK(setup.create_cq(request) == -EINVAL);
  request.comp_vector = 1;
  request.comp_channel = 0;
  CHECK(setup.create_cq(request) == -EBADF);
  request.comp_channel = setup.client.fd();
  CHECK(setup.create_cq(request) == -EBADF);
  request.comp_channel = -1;
  ib_uverbs_create_cq_resp response{};
  CHECK(setup.client.run(IB_USER_VERBS_CMD_CREATE_CQ, request, &response) == -EINVAL);
  CHECK(setup.create_cq(request) == 0);
}

TEST_CASE("the extended form of CREATE_CQ takes no flags and no extensions") {
  QueueSetup setup(either_front());
  ib_uverbs_ex_create_cq request{};
  request.cqe = 10;
  request.comp_channel = -1;
  ib_uverbs_ex_create_cq_resp response{};
  rxe_create_cq_resp driver{};
  const auto run = [&] {
    return setup.client.run_extended(IB_USER_VERBS_EX_CMD_CREATE_CQ, request, &response,
                                     driver_out(driver));
  };
  REQUIRE(run() == 0);
  CHECK(response.base.cqe >= 10);
  CHECK(response.response_length == sizeof(response));
  CHECK(driver.mi.size > 0);
  request.flags = IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION;
  CHECK(run() == -EOPNOTSUPP);
  request.flags = 0;
  request.comp_mask = 1;
  CHECK(run() == -EINVAL);
}

TEST_CASE("a completion queue can be resized") {
  QueueSetup setup(either_front());
  const auto cq = setup.client.cq(1, -1, 4);
  std::uint32_t actual = 0;
  REQUIRE(setup.resize_cq(cq.handle, 1000, &actual) == 0);
  CHECK(actual >= 1000);
  CHECK(setup.resize_cq(cq.handle, 0) == -EINVAL);
  CHECK(setup.resize_cq(cq.handle, 1U << 30) == -EINVAL);
  CHECK(setup.resize_cq(setup.pd, 10) == -EINVAL);
  CHECK(setup.resize_cq(90, 10) == -ENOENT);
}

TEST_CASE("completion queues are made and destroyed by ioctl methods of their own") {
  QueueSetup setup(Front::ioctl);
  std::uint32_t cqe = 0;
  rxe_create_cq_resp driver{};
  Ioctl create(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
  create.object(UVERBS_ATTR_CREATE_CQ_HANDLE)
      .in(UVERBS_ATTR_CREATE_CQ_CQE, std::uint32_t{20})
      .in(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, std::uint64_t{7})
      .in(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, std::uint32_t{0})
      .object(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, setup.client.channel())
      .out(UVERBS_ATTR_CREATE_CQ_RESP_CQE, cqe)
      .out(UVERBS_ATTR_UHW_OUT, driver);
  REQUIRE(create.run(setup.client.file()) == 0);
  CHECK(cqe >= 20);
  CHECK(driver.mi.size > 0);
  CHECK((create.attribute(UVERBS_ATTR_UHW_OUT).flags & UVERBS_ATTR_F_VALID_OUTPUT) != 0);
  ib_uverbs_destroy_cq_resp response{};
  const auto destroy = [&] {
    return Ioctl(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY)
        .object(UVERBS_ATTR_DESTROY_CQ_HANDLE, create.handle(UVERBS_ATTR_CREATE_CQ_HANDLE))
        .out(UVERBS_ATTR_DESTROY_CQ_RESP, response)
        .run(setup.client.file());
  };
  CHECK(destroy() == 0);
  CHECK(destroy() == -ENOENT);
}

TEST_CASE("a completion queue is busy while a queue pair uses it, and told as before") {
  QueueSetup setup(either_front());
  const auto sends = setup.client.cq(1);
  const auto receives = setup.client.cq(2);
  ib_uverbs_create_qp request = UverbsClient::usual_qp();
  request.pd_handle = setup.pd;
  request.send_cq_handle = sends.handle;
  request.recv_cq_handle = receives.handle;
  ib_uverbs_create_qp_resp response{};
  rxe_create_qp_resp driver{};
  REQUIRE(setup.client.run(IB_USER_VERBS_CMD_CREATE_QP, request, &response, driver_out(driver)) ==
          0);
  CHECK(setup.destroy_cq(sends.handle) == -EBUSY);
  CHECK(setup.destroy_cq(receives.handle) == -EBUSY);
  CHECK(setup.client.request_notification(sends.handle) == 0);
  CHECK(setup.destroy_qp(response.qp_handle) == 0);
  CHECK(setup.destroy_cq(sends.handle) == 0);
  CHECK(setup.destroy_cq(receives.handle) == 0);
}

// --- queue pairs

TEST_CASE("a queue pair has at least what was asked for, and says what") {
  QueueSetup setup(either_front());
  const auto cq = setup.client.cq(1);
  ib_uverbs_create_qp wanted = UverbsClient::usual_qp();
  wanted.max_send_wr = 100;
  wanted.max_inline_data = 100;
  const auto qp = setup.client.qp(setup.pd, cq.handle, 9, wanted);
  CHECK(qp.capabilities.max_send_wr >= 100);
  CHECK(qp.capabilities.max_recv_wr >= 16);
  CHECK(qp.capabilities.max_inline_data >= 100);
  CHECK(qp.mappings.sq_mi.offset != qp.mappings.rq_mi.offset);
  const auto query = setup.client.query_qp(qp.handle);
  CHECK(query.qp_state == 0);
  CHECK(query.max_send_wr == qp.capabilities.max_send_wr);
  CHECK(query.max_recv_wr == qp.capabilities.max_recv_wr);
  CHECK(query.max_inline_data == qp.capabilities.max_inline_data);
  CHECK(query.sq_sig_all == 1);
  CHECK(setup.destroy_cq(cq.handle) == -EBUSY);
  CHECK(setup.destroy_qp(qp.handle) == 0);
  CHECK(setup.destroy_cq(cq.handle) == 0);
}

TEST_CASE("a queue pair is refused what the device has not") {
  QueueSetup setup(either_front());
  const auto cq = setup.client.cq(1);
  ib_uverbs_create_qp good = UverbsClient::usual_qp();
  good.pd_handle = setup.pd;
  good.send_cq_handle = good.recv_cq_handle = cq.handle;
  const auto with = [&](auto change) {
    ib_uverbs_create_qp request{};
    std::memcpy(&request, &good, sizeof(request));
    change(request);
    return setup.create_qp(request);
  };
  CHECK(with([](auto& request) { request.qp_type = 1; }) == -EINVAL);
  CHECK(with([](auto& request) { request.qp_type = 77; }) == -EINVAL);
  for (const int type : {IB_UVERBS_QPT_RAW_PACKET, IB_UVERBS_QPT_XRC_INI, IB_UVERBS_QPT_XRC_TGT}) {
    CHECK(with([type](auto& request) { request.qp_type = static_cast<std::uint8_t>(type); }) ==
          -EOPNOTSUPP);
  }
  CHECK(with([](auto& request) { request.max_send_wr = 1U << 30; }) == -EINVAL);
  CHECK(with([](auto& request) { request.max_recv_wr = 1U << 30; }) == -EINVAL);
  CHECK(with([](auto& request) { request.max_send_sge = 33; }) == -EINVAL);
  CHECK(with([](auto& request) { request.max_recv_sge = 33; }) == -EINVAL);
  CHECK(with([](auto& request) { request.max_inline_data = 1U << 20; }) == -EINVAL);
  CHECK(with([](auto& request) { request.pd_handle = 99; }) == -ENOENT);
  CHECK(with([](auto& request) { request.send_cq_handle = 99; }) == -ENOENT);
  CHECK(with([](auto& request) { request.recv_cq_handle = request.pd_handle; }) == -EINVAL);
  CHECK(with([](auto& request) { request.is_srq = 1, request.srq_handle = 99; }) == -ENOENT);
  ib_uverbs_create_qp_resp response{};
  CHECK(setup.client.run(IB_USER_VERBS_CMD_CREATE_QP, good, &response) == -EINVAL);
  CHECK(with([](auto&) {}) == 0);
  CHECK(setup.census().qps == 1);
}

TEST_CASE("the extended form of CREATE_QP takes no flags and no receive work queues") {
  QueueSetup setup(either_front());
  ib_uverbs_ex_create_qp request{};
  request.pd_handle = setup.pd;
  request.send_cq_handle = request.recv_cq_handle = setup.client.cq(1).handle;
  request.max_send_wr = request.max_recv_wr = 1;
  request.qp_type = IB_UVERBS_QPT_UD;
  ib_uverbs_ex_create_qp_resp response{};
  rxe_create_qp_resp driver{};
  const auto run = [&] {
    return setup.client.run_extended(IB_USER_VERBS_EX_CMD_CREATE_QP, request, &response,
                                     driver_out(driver));
  };
  REQUIRE(run() == 0);
  CHECK(response.response_length == sizeof(response));
  request.create_flags = IB_UVERBS_QP_CREATE_SCATTER_FCS;
  CHECK(run() == -EOPNOTSUPP);
  request.create_flags = 0;
  request.comp_mask = 2;
  CHECK(run() == -EINVAL);
  request.comp_mask = IB_UVERBS_CREATE_QP_MASK_IND_TABLE;
  CHECK(run() == -EOPNOTSUPP);
}

TEST_CASE("queue pairs are made and destroyed by ioctl methods of their own") {
  QueueSetup setup(Front::ioctl);
  const auto cq = setup.client.cq(1);
  const ib_uverbs_qp_cap wanted{.max_send_wr = 5,
                                .max_recv_wr = 5,
                                .max_send_sge = 1,
                                .max_recv_sge = 1,
                                .max_inline_data = 0};
  ib_uverbs_qp_cap actual{};
  std::uint32_t qpn = 0;
  rxe_create_qp_resp driver{};
  const auto create = [&](std::uint64_t type, std::uint32_t flags) {
    Ioctl ioctl(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
    ioctl.object(UVERBS_ATTR_CREATE_QP_HANDLE)
        .object(UVERBS_ATTR_CREATE_QP_PD_HANDLE, setup.pd)
        .object(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, cq.handle)
        .object(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, cq.handle)
        .in(UVERBS_ATTR_CREATE_QP_USER_HANDLE, std::uint64_t{5})
        .in(UVERBS_ATTR_CREATE_QP_CAP, wanted)
        .constant(UVERBS_ATTR_CREATE_QP_TYPE, type)
        .in(UVERBS_ATTR_CREATE_QP_FLAGS, flags)
        .out(UVERBS_ATTR_CREATE_QP_RESP_CAP, actual)
        .out(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, qpn)
        .out(UVERBS_ATTR_UHW_OUT, driver);
    return ioctl;
  };
  auto ioctl = create(IB_UVERBS_QPT_RC, IB_UVERBS_QP_CREATE_SQ_SIG_ALL);
  REQUIRE(ioctl.run(setup.client.file()) == 0);
  const std::uint32_t handle = ioctl.handle(UVERBS_ATTR_CREATE_QP_HANDLE);
  CHECK(actual.max_send_wr >= 5);
  CHECK(qpn != 0);
  CHECK(setup.client.query_qp(handle).sq_sig_all == 1);
  CHECK(create(IB_UVERBS_QPT_RC, 1U << 30).run(setup.client.file()) == -EINVAL);
  CHECK(create(IB_UVERBS_QPT_RC, IB_UVERBS_QP_CREATE_SCATTER_FCS).run(setup.client.file()) ==
        -EOPNOTSUPP);
  CHECK(create(1, 0).run(setup.client.file()) == -EINVAL);
  ib_uverbs_destroy_qp_resp response{};
  CHECK(Ioctl(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY)
            .object(UVERBS_ATTR_DESTROY_QP_HANDLE, handle)
            .out(UVERBS_ATTR_DESTROY_QP_RESP, response)
            .run(setup.client.file()) == 0);
  CHECK(setup.census().qps == 0);
}

TEST_CASE("a queue pair remembers what it was told") {
  QueueSetup setup(either_front());
  const auto qp = setup.client.qp(setup.pd, setup.client.cq(1).handle, 9);
  ib_uverbs_modify_qp init = to_init();
  init.qp_access_flags = IB_UVERBS_ACCESS_REMOTE_READ;
  REQUIRE(setup.client.modify(qp.handle, kToInit, init) == 0);
  REQUIRE(setup.client.modify(qp.handle, kToRtr, to_rtr()) == 0);
  const auto query = setup.client.query_qp(qp.handle);
  CHECK(query.qp_state == 2);
  CHECK(query.cur_qp_state == 2);
  CHECK(query.path_mtu == 3);
  CHECK(query.dest_qp_num == 0x1234);
  CHECK(query.rq_psn == 0xABCDEF);
  CHECK(query.max_dest_rd_atomic == 1);
  CHECK(query.qp_access_flags == IB_UVERBS_ACCESS_REMOTE_READ);
  CHECK(query.port_num == 1);
  CHECK(query.dest.is_global == 1);
  CHECK(query.dest.sgid_index == 1);
  CHECK(query.dest.hop_limit == 17);
  CHECK(query.dest.traffic_class == 0x28);
  CHECK(query.dest.flow_label == 0xABCDE);
  CHECK(query.dest.sl == 3);
  CHECK(std::memcmp(query.dest.dgid, kSecondGid.bytes().data(), 16) == 0);
}

TEST_CASE("what a queue pair cannot become is refused, and leaves it as it was") {
  QueueSetup setup(either_front());
  const auto qp = setup.client.qp(setup.pd, setup.client.cq(1).handle, 9);
  const auto init = [&](std::uint32_t mask, auto change) {
    ib_uverbs_modify_qp attributes = to_init();
    change(attributes);
    return setup.client.modify(qp.handle, mask, attributes);
  };
  CHECK(init(kState, [](auto&) {}) == -EINVAL);
  CHECK(init(kToInit | kPathMtu, [](auto&) {}) == -EINVAL);
  CHECK(init(kToInit, [](auto& wanted) { wanted.port_num = 2; }) == -EINVAL);
  CHECK(init(kToInit, [](auto& wanted) { wanted.qp_state = 9; }) == -EINVAL);
  CHECK(init(kToInit, [](auto& wanted) { wanted.qp_state = 3; }) == -EINVAL);
  CHECK(init(kToInit, [](auto& wanted) { wanted.pkey_index = 1; }) == -EINVAL);
  CHECK(init(kToInit | kCurrentState, [](auto& wanted) { wanted.cur_qp_state = 9; }) == -EINVAL);
  CHECK(init(kToInit | 1U << 22, [](auto&) {}) == -EOPNOTSUPP);
  CHECK(setup.client.modify(99, kToInit, to_init()) == -ENOENT);
  CHECK(setup.client.modify(setup.pd, kToInit, to_init()) == -EINVAL);
  CHECK(setup.client.query_qp(qp.handle).qp_state == 0);
  REQUIRE(init(kToInit, [](auto&) {}) == 0);
  const auto rtr = [&](std::uint32_t mask, auto change) {
    ib_uverbs_modify_qp attributes = to_rtr();
    change(attributes);
    return setup.client.modify(qp.handle, mask, attributes);
  };
  CHECK(rtr(kToRtr, [](auto& wanted) { wanted.dest.port_num = 2; }) == -EINVAL);
  CHECK(rtr(kToRtr, [](auto& wanted) { wanted.dest.is_global = 0; }) == -EINVAL);
  CHECK(rtr(kToRtr, [](auto& wanted) { wanted.dest.sgid_index = 2; }) == -EINVAL);
  CHECK(rtr(kToRtr, [](auto& wanted) { wanted.path_mtu = 6; }) == -EINVAL);
  CHECK(rtr(kToRtr, [](auto& wanted) { wanted.path_mtu = 0; }) == -EINVAL);
  CHECK(rtr(kToRtr, [](auto& wanted) { wanted.max_dest_rd_atomic = 200; }) == -EINVAL);
  CHECK(rtr(kToRtr | kAlternatePath, [](auto&) {}) == -EINVAL);
  CHECK(setup.client.query_qp(qp.handle).qp_state == 1);
  CHECK(rtr(kToRtr, [](auto&) {}) == 0);
}

TEST_CASE("the extended form of MODIFY_QP knows no rate limit") {
  QueueSetup setup(either_front());
  const auto qp = setup.client.qp(setup.pd, setup.client.cq(1).handle, 9);
  struct {
    ib_uverbs_qp_dest paths[2];
    std::uint32_t qp_handle, attr_mask;
    std::uint32_t rest[12];
  } request{};
  static_assert(sizeof(request) == sizeof(ib_uverbs_ex_modify_qp));
  ib_uverbs_modify_qp attributes = to_init();
  attributes.qp_handle = qp.handle;
  attributes.attr_mask = kToInit | kRateLimit;
  std::memcpy(&request, &attributes, sizeof(attributes));
  ib_uverbs_ex_modify_qp_resp response{};
  CHECK(setup.client.run_extended(IB_USER_VERBS_EX_CMD_MODIFY_QP, request, &response) ==
        -EOPNOTSUPP);
  request.attr_mask = kToInit;
  REQUIRE(setup.client.run_extended(IB_USER_VERBS_EX_CMD_MODIFY_QP, request, &response) == 0);
  CHECK(response.response_length == sizeof(response));
  CHECK(setup.client.query_qp(qp.handle).qp_state == 1);
}

TEST_CASE("a doorbell needs a queue pair that takes requests") {
  QueueSetup setup(either_front());
  const auto cq = setup.client.cq(1);
  const auto qp = setup.client.qp(setup.pd, cq.handle, 9);
  CHECK(setup.client.ring(qp.handle) == -EINVAL);
  CHECK(setup.client.ring(cq.handle) == -EINVAL);
  CHECK(setup.client.ring(99) == -ENOENT);
  setup.client.connect(qp, 0x1234, kFirstGid.bytes().data());
  CHECK(setup.client.ring(qp.handle) == 0);
  ib_uverbs_post_send request{};
  request.qp_handle = qp.handle;
  request.wqe_size = sizeof(ib_uverbs_send_wr);
  ib_uverbs_post_send_resp response{.bad_wr = 1};
  CHECK(setup.client.run(IB_USER_VERBS_CMD_POST_SEND, request, &response) == 0);
  CHECK(response.bad_wr == 0);
  request.wr_count = 1;
  CHECK(setup.client.run(IB_USER_VERBS_CMD_POST_SEND, request, &response) == -ENOSPC);
  request.wr_count = 0;
  request.sge_count = ~0U;
  CHECK(setup.client.run(IB_USER_VERBS_CMD_POST_SEND, request, &response) == -ENOSPC);
  request.sge_count = 0;
  request.wqe_size = 8;
  CHECK(setup.client.run(IB_USER_VERBS_CMD_POST_SEND, request, &response) == -EINVAL);
}

// --- shared receive queues

TEST_CASE("a shared receive queue can be asked, resized, armed, and is busy while it is shared") {
  QueueSetup setup(either_front());
  const auto srq = setup.client.srq(setup.pd, 3, 2);
  ib_uverbs_query_srq query{};
  query.srq_handle = srq.handle;
  ib_uverbs_query_srq_resp facts{};
  REQUIRE(setup.client.run(IB_USER_VERBS_CMD_QUERY_SRQ, query, &facts) == 0);
  CHECK(facts.max_wr >= 16);
  CHECK(facts.max_sge >= 1);
  CHECK(facts.srq_limit == 2);

  mminfo where{};
  const rxe_modify_srq_cmd driver{.mmap_info_addr = reinterpret_cast<std::uintptr_t>(&where)};
  ib_uverbs_modify_srq request{};
  request.srq_handle = srq.handle;
  const auto modify = [&](std::uint32_t mask, std::uint32_t max_wr, std::uint32_t limit) {
    request.attr_mask = mask;
    request.max_wr = max_wr;
    request.srq_limit = limit;
    return setup.client.run(IB_USER_VERBS_CMD_MODIFY_SRQ, request, driver_in(driver));
  };
  CHECK(modify(1, 500, 0) == 0);
  CHECK(where.size > 0);
  CHECK(where.offset != srq.mapping.offset);
  CHECK(modify(2, 0, 400) == 0);
  CHECK(modify(1, 100, 0) == -EINVAL);
  CHECK(modify(1, 0, 0) == -EINVAL);
  CHECK(modify(1, 1U << 30, 0) == -EINVAL);
  CHECK(modify(2, 0, 1U << 20) == -EINVAL);
  CHECK(setup.client.run(IB_USER_VERBS_CMD_MODIFY_SRQ, request) == -EINVAL);
  REQUIRE(setup.client.run(IB_USER_VERBS_CMD_QUERY_SRQ, query, &facts) == 0);
  CHECK(facts.max_wr >= 500);
  CHECK(facts.srq_limit == 400);

  ib_uverbs_create_qp wanted = UverbsClient::usual_qp();
  wanted.is_srq = 1;
  wanted.srq_handle = srq.handle;
  const auto qp = setup.client.qp(setup.pd, setup.client.cq(1).handle, 9, wanted);
  CHECK(qp.mappings.rq_mi.size == 0);
  CHECK(setup.destroy_srq(srq.handle) == -EBUSY);
  CHECK(setup.destroy_qp(qp.handle) == 0);
  CHECK(setup.destroy_srq(srq.handle) == 0);
}

TEST_CASE("a shared receive queue is refused what the device has not") {
  QueueSetup setup(either_front());
  ib_uverbs_create_srq_resp response{};
  rxe_create_srq_resp driver{};
  ib_uverbs_create_srq request{};
  request.pd_handle = setup.pd;
  const auto run = [&] {
    return setup.client.run(IB_USER_VERBS_CMD_CREATE_SRQ, request, &response, driver_out(driver));
  };
  CHECK(run() == -EINVAL);
  request.max_wr = 1U << 30;
  CHECK(run() == -EINVAL);
  request.max_wr = 1;
  request.max_sge = 100;
  CHECK(run() == -EINVAL);
  request.max_sge = 0;
  request.pd_handle = 99;
  CHECK(run() == -ENOENT);
  request.pd_handle = setup.pd;
  CHECK(setup.client.run(IB_USER_VERBS_CMD_CREATE_SRQ, request, &response) == -EINVAL);
  CHECK(run() == 0);
  ib_uverbs_create_xsrq extended{};
  extended.pd_handle = setup.pd;
  extended.max_wr = 1;
  extended.srq_type = IB_UVERBS_SRQT_XRC;
  const auto run_extended = [&] {
    return setup.client.run(IB_USER_VERBS_CMD_CREATE_XSRQ, extended, &response, driver_out(driver));
  };
  CHECK(run_extended() == -EOPNOTSUPP);
  extended.srq_type = IB_UVERBS_SRQT_BASIC;
  CHECK(run_extended() == 0);
}

TEST_CASE("shared receive queues are made and destroyed by ioctl methods of their own") {
  QueueSetup setup(Front::ioctl);
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 0;
  rxe_create_srq_resp driver{};
  Ioctl create(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE);
  create.object(UVERBS_ATTR_CREATE_SRQ_HANDLE)
      .object(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, setup.pd)
      .in(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, std::uint64_t{4})
      .in(UVERBS_ATTR_CREATE_SRQ_MAX_WR, std::uint32_t{10})
      .in(UVERBS_ATTR_CREATE_SRQ_MAX_SGE, std::uint32_t{2})
      .in(UVERBS_ATTR_CREATE_SRQ_LIMIT, std::uint32_t{0})
      .constant(UVERBS_ATTR_CREATE_SRQ_TYPE, IB_UVERBS_SRQT_BASIC)
      .out(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, max_wr)
      .out(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, max_sge)
      .out(UVERBS_ATTR_UHW_OUT, driver);
  REQUIRE(create.run(setup.client.file()) == 0);
  CHECK(max_wr >= 10);
  CHECK(max_sge >= 2);
  CHECK(driver.mi.size > 0);
  ib_uverbs_destroy_srq_resp response{};
  CHECK(Ioctl(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY)
            .object(UVERBS_ATTR_DESTROY_SRQ_HANDLE, create.handle(UVERBS_ATTR_CREATE_SRQ_HANDLE))
            .out(UVERBS_ATTR_DESTROY_SRQ_RESP, response)
            .run(setup.client.file()) == 0);
  CHECK(setup.census().srqs == 0);
}

// --- address handles

TEST_CASE("an address handle has a number for librxe's requests, if there is room for it") {
  QueueSetup setup(either_front());
  ib_uverbs_create_ah request{};
  request.pd_handle = setup.pd;
  request.attr.is_global = 1;
  request.attr.port_num = 1;
  std::copy_n(kFirstGid.bytes().data(), 16, request.attr.grh.dgid);
  ib_uverbs_create_ah_resp response{};
  rxe_create_ah_resp driver{};
  const auto run = [&] {
    return setup.client.run(IB_USER_VERBS_CMD_CREATE_AH, request, &response, driver_out(driver));
  };
  REQUIRE(run() == 0);
  CHECK(driver.ah_num != 0);
  CHECK(setup.client.run(IB_USER_VERBS_CMD_DESTROY_AH, ib_uverbs_destroy_ah{response.ah_handle}) ==
        0);
  CHECK(setup.client.run(IB_USER_VERBS_CMD_CREATE_AH, request, &response) == 0);
  request.attr.port_num = 0;
  CHECK(run() == -EINVAL);
  request.attr.port_num = 1;
  request.attr.is_global = 0;
  CHECK(run() == -EINVAL);
  request.attr.is_global = 1;
  request.attr.grh.sgid_index = 1;  // IPv4, to an IPv6 address
  CHECK(run() == -EINVAL);
  request.attr.grh.sgid_index = 0;
  request.pd_handle = 99;
  CHECK(run() == -ENOENT);
}
