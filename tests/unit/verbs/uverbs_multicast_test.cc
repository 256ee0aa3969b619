// UD queue pairs in multicast groups.
#include <cerrno>

#include "tests/unit/verbs/uverbs_pair.h"

using namespace urxe;
using namespace urxe::test;

namespace {

const wire::IpAddress kGroup = *wire::IpAddress::parse("ff0e::1:2");
constexpr std::uint32_t kQKey = 0x11111111;

struct MulticastSetup : UverbsSetup {
  explicit MulticastSetup(Front front) : client(node, front) {
    client.open_context();
    pd = client.pd();
    cq = client.cq(1);
    client.mr(pd, memory.data(), memory.size(), kAllAccess, &key);
  }
  UverbsClient::QueuePair datagram_qp(int type = IB_UVERBS_QPT_UD) {
    ib_uverbs_create_qp wanted = UverbsClient::usual_qp();
    wanted.qp_type = static_cast<std::uint8_t>(type);
    const auto qp = client.qp(pd, cq.handle, 9, wanted);
    if (type != IB_UVERBS_QPT_UD) return qp;
    ib_uverbs_modify_qp attributes{};
    attributes.port_num = 1;
    attributes.qkey = kQKey;
    for (const auto& [state, mask] : {std::pair{1, 0x71U}, {2, 0x1U}, {3, 0x10001U}}) {
      attributes.qp_state = static_cast<std::uint8_t>(state);
      REQUIRE(client.modify(qp.handle, mask, attributes) == 0);
    }
    return qp;
  }
  int attach(std::uint32_t qp, const wire::IpAddress& group,
             std::uint32_t command = IB_USER_VERBS_CMD_ATTACH_MCAST) {
    struct {
      std::uint8_t gid[16];
      std::uint32_t qp_handle;
      std::uint16_t mlid = 0xC000;
      std::uint16_t reserved = 0;
    } request{.gid = {}, .qp_handle = qp};
    std::copy_n(group.bytes().data(), 16, request.gid);
    return client.run(command, request);
  }
  int detach(std::uint32_t qp, const wire::IpAddress& group) {
    return attach(qp, group, IB_USER_VERBS_CMD_DETACH_MCAST);
  }

  UverbsClient client;
  std::uint32_t pd = 0;
  std::uint32_t key = 0;
  UverbsClient::Queue cq;
  std::array<std::uint8_t, 4096> memory{};
};

}  // namespace

TEST_CASE("a datagram to a group reaches every queue pair that is attached, and no other") {
  MulticastSetup setup(either_front());
  const auto sender = setup.datagram_qp();
  const auto first = setup.datagram_qp();
  const auto second = setup.datagram_qp();
  const auto stranger = setup.datagram_qp();
  REQUIRE(setup.attach(first.handle, kGroup) == 0);
  CHECK(setup.source.device().joined.contains(kGroup));
  REQUIRE(setup.attach(second.handle, kGroup) == 0);
  const auto piece = [&](std::size_t offset) {
    return Piece{setup.memory.data() + offset, 104, setup.key};
  };
  post_receive(setup.client.map(first.mappings.rq_mi), 11, piece(1024));
  post_receive(setup.client.map(second.mappings.rq_mi), 12, piece(2048));
  post_receive(setup.client.map(stranger.mappings.rq_mi), 13, piece(3072));

  auto* const sends = setup.client.map(sender.mappings.sq_mi);
  setup.memory[0] = 0x42;
  post_send(sends, 1, {setup.memory.data(), 64, setup.key});
  auto& wr = slot<rxe_send_wqe>(sends, sends->producer_index - 1)->wr;
  wr.wr.ud.remote_qpn = 0xFFFFFF;
  wr.wr.ud.remote_qkey = kQKey;
  wr.wr.ud.av.port_num = 1;
  std::copy_n(kGroup.bytes().data(), 16, wr.wr.ud.av.grh.dgid.raw);
  REQUIRE(setup.client.ring(sender.handle) == 0);
  setup.client.file().drive();

  auto* const completions = setup.client.map(setup.cq.mapping);
  std::set<std::uint64_t> completed;
  while (const auto completion = poll_cq(completions)) {
    CHECK(completion->status == 0);
    completed.insert(completion->wr_id);
  }
  CHECK(completed == std::set<std::uint64_t>{1, 11, 12});
  CHECK(setup.memory[1024 + 40] == 0x42);
  CHECK(setup.memory[2048 + 40] == 0x42);
}

TEST_CASE("the network's packets of a group are wanted while somebody is attached") {
  MulticastSetup setup(either_front());
  const auto first = setup.datagram_qp();
  const auto second = setup.datagram_qp();
  REQUIRE(setup.attach(first.handle, kGroup) == 0);
  REQUIRE(setup.attach(first.handle, kGroup) == 0);
  REQUIRE(setup.attach(second.handle, kGroup) == 0);
  CHECK(setup.detach(first.handle, kGroup) == 0);
  CHECK(setup.detach(first.handle, kGroup) == -EINVAL);
  CHECK(setup.source.device().joined.contains(kGroup));
  CHECK(setup.detach(second.handle, kGroup) == 0);
  CHECK_FALSE(setup.source.device().joined.contains(kGroup));
}

TEST_CASE("only UD queue pairs, and only multicast groups, go together") {
  MulticastSetup setup(either_front());
  const auto qp = setup.datagram_qp();
  CHECK(setup.attach(qp.handle, kFirstGid) == -EINVAL);
  CHECK(setup.attach(qp.handle, wire::IpAddress::from_v4(0xE0010203)) == 0);
  CHECK(setup.attach(setup.datagram_qp(IB_UVERBS_QPT_RC).handle, kGroup) == -EINVAL);
  CHECK(setup.attach(99, kGroup) == -ENOENT);
  CHECK(setup.detach(99, kGroup) == -ENOENT);
}

TEST_CASE("a group that the interface cannot join has no member") {
  MulticastSetup setup(either_front());
  const auto qp = setup.datagram_qp();
  setup.source.device().join_error = ENODEV;
  CHECK(setup.attach(qp.handle, kGroup) == -ENODEV);
  CHECK(setup.detach(qp.handle, kGroup) == -EINVAL);
}

TEST_CASE("an attached queue pair is busy, and leaves its groups when the file is closed") {
  MulticastSetup setup(either_front());
  const auto qp = setup.datagram_qp();
  REQUIRE(setup.attach(qp.handle, kGroup) == 0);
  ib_uverbs_destroy_qp request{};
  request.qp_handle = qp.handle;
  ib_uverbs_destroy_qp_resp response{};
  CHECK(setup.client.run(IB_USER_VERBS_CMD_DESTROY_QP, request, &response) == -EBUSY);
  setup.client.close_file();
  CHECK(setup.source.device().joined.empty());
  CHECK(setup.census() == kNothing);
}
