// Messages through the rings, as librxe posts and polls them.
#include "tests/unit/verbs/uverbs_pair.h"

using namespace urxe;
using namespace urxe::test;

TEST_CASE("a message goes from ring to ring, and completes at both ends") {
  Pair pair(either_front());
  pair.memory[5] = 0x5A;
  pair.transfer();
  const auto sent = poll_cq(pair.sent);
  REQUIRE(sent);
  CHECK(sent->wr_id == 1);
  CHECK(sent->status == 0);
  CHECK(sent->qp_num == pair.sender.qpn);
  const auto received = poll_cq(pair.received);
  REQUIRE(received);
  CHECK(received->wr_id == 2);
  CHECK(received->byte_len == 64);
  CHECK(pair.memory[2048 + 5] == 0x5A);
}

TEST_CASE("requests of two files on one device meet") {
  Pair pair;
  UverbsClient other(pair.setup.node, Front::write);
  other.open_context();
  const std::uint32_t pd = other.pd();
  std::uint32_t key = 0;
  std::array<std::uint8_t, 64> memory{};
  other.mr(pd, memory.data(), memory.size(), kAllAccess, &key);
  const auto cq = other.cq(5);
  const auto qp = other.qp(pd, cq.handle, 6);
  const auto own = pair.client.qp(pair.pd, pair.send_cq.handle, 7);
  other.connect(qp, own.qpn, Pair::gid());
  pair.client.connect(own, qp.qpn, Pair::gid());
  post_receive(other.map(qp.mappings.rq_mi), 12, {memory.data(), 64, key});
  pair.memory[0] = 0x77;
  post_send(pair.client.map(own.mappings.sq_mi), 11, pair.piece(0, 64));
  REQUIRE(pair.client.ring(own.handle) == 0);
  other.file().drive();
  CHECK(poll_cq(pair.sent)->wr_id == 11);
  CHECK(poll_cq(other.map(cq.mapping))->wr_id == 12);
  CHECK(memory[0] == 0x77);
}

TEST_CASE("completions that wait move with a completion queue that is resized") {
  Pair pair(either_front());
  pair.transfer();
  pair.transfer();
  ib_uverbs_resize_cq request{};
  request.cq_handle = pair.receive_cq.handle;
  request.cqe = 1;
  ib_uverbs_resize_cq_resp response{};
  rxe_resize_cq_resp driver{};
  const auto resize = [&] {
    return pair.client.run(IB_USER_VERBS_CMD_RESIZE_CQ, request, &response, driver_out(driver));
  };
  CHECK(resize() == -EINVAL);
  request.cqe = 100;
  REQUIRE(resize() == 0);
  auto* const received = pair.client.map(driver.mi);
  pair.transfer();
  for (int i = 0; i < 3; ++i) CHECK(poll_cq(received)->wr_id == 2);
  CHECK_FALSE(poll_cq(received));
}

TEST_CASE("receives that are posted move with a shared queue that is resized") {
  Pair pair(either_front());
  const auto srq = pair.client.srq(pair.pd, 3);
  post_receive(pair.client.map(srq.mapping), 31, pair.piece(2048, 64));
  mminfo where{};
  const rxe_modify_srq_cmd driver{.mmap_info_addr = reinterpret_cast<std::uintptr_t>(&where)};
  ib_uverbs_modify_srq request{};
  request.srq_handle = srq.handle;
  request.attr_mask = 1;
  request.max_wr = 100;
  REQUIRE(pair.client.run(IB_USER_VERBS_CMD_MODIFY_SRQ, request, driver_in(driver)) == 0);
  ib_uverbs_create_qp wanted = UverbsClient::usual_qp();
  wanted.is_srq = 1;
  wanted.srq_handle = srq.handle;
  const auto taker = pair.client.qp(pair.pd, pair.receive_cq.handle, 8, wanted);
  const auto sender = pair.client.qp(pair.pd, pair.send_cq.handle, 7);
  pair.client.connect(taker, sender.qpn, Pair::gid());
  pair.client.connect(sender, taker.qpn, Pair::gid());
  post_receive(pair.client.map(where), 32, pair.piece(2048, 64));
  auto* const sends = pair.client.map(sender.mappings.sq_mi);
  post_send(sends, 1, pair.piece(0, 64));
  post_send(sends, 2, pair.piece(0, 64));
  REQUIRE(pair.client.ring(sender.handle) == 0);
  pair.client.file().drive();
  CHECK(poll_cq(pair.received)->wr_id == 31);
  CHECK(poll_cq(pair.received)->wr_id == 32);
}
