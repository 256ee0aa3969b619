// Opening, GET_CONTEXT, and what is told about device and port.
#include <array>
#include <cerrno>

#include <endian.h>
#include <fcntl.h>

#include "tests/unit/verbs/uverbs_setup.h"

using namespace urxe;
using namespace urxe::test;

TEST_CASE("a uverbs file is a memory file that the program can map, and closes on exec") {
  UverbsSetup setup;
  UverbsClient client(setup.node, Front::write);
  REQUIRE(client.fd() >= 0);
  CHECK((fcntl(client.fd(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK(client.file().device_number() == setup.config.uverbs_device());
}

TEST_CASE("a device that cannot be had makes open fail with its errno") {
  UverbsSetup setup;
  setup.source.error = EADDRINUSE;
  CHECK(setup.node.open(0).error() == EADDRINUSE);
}

TEST_CASE("a context is had once, and needed before objects") {
  UverbsSetup setup;
  UverbsClient client(setup.node, either_front());
  ib_uverbs_alloc_pd_resp pd{};
  CHECK(client.run(IB_USER_VERBS_CMD_ALLOC_PD, ib_uverbs_alloc_pd{}, &pd) == -EINVAL);
  ib_uverbs_query_device_resp facts{};
  CHECK(client.run(IB_USER_VERBS_CMD_QUERY_DEVICE, ib_uverbs_query_device{}, &facts) == -EINVAL);
  client.open_context();
  ib_uverbs_get_context_resp again{};
  CHECK(client.run(IB_USER_VERBS_CMD_GET_CONTEXT, ib_uverbs_get_context{}, &again) == -EINVAL);
  CHECK(client.run(IB_USER_VERBS_CMD_ALLOC_PD, ib_uverbs_alloc_pd{}, &pd) == 0);
}

TEST_CASE(
    "a context by ioctl says how many completion vectors there are, and opens no descriptor") {
  UverbsSetup setup;
  UverbsClient client(setup.node, Front::ioctl);
  std::uint32_t vectors = 0;
  std::uint64_t support = 0;
  Ioctl ioctl(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
  ioctl.out(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, vectors)
      .out(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, support);
  REQUIRE(ioctl.run(client.file()) == 0);
  CHECK(vectors >= 2);
  CHECK(support == IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS);
  CHECK((ioctl.attribute(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT).flags &
         UVERBS_ATTR_F_VALID_OUTPUT) != 0);
  Ioctl async(UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC);
  async.object(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE);
  REQUIRE(async.run(client.file()) == 0);
  const int fd = static_cast<int>(async.attribute(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE).data);
  CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  close(fd);
}

TEST_CASE("a device is as large as Linux's rxe in every limit") {
  UverbsSetup setup;
  UverbsClient client(setup.node, either_front());
  client.open_context();
  ib_uverbs_query_device_resp facts{};
  REQUIRE(client.run(IB_USER_VERBS_CMD_QUERY_DEVICE, ib_uverbs_query_device{}, &facts) == 0);
  CHECK(be64toh(facts.node_guid) == setup.config.guid);
  CHECK(be64toh(facts.sys_image_guid) == setup.config.guid);
  CHECK(facts.vendor_id == 0xFFFFFF);
  CHECK(facts.max_mr_size == ~std::uint64_t{0});
  CHECK(facts.page_size_cap == 0xFFFFF000);
  CHECK(facts.max_qp >= 1048560);
  CHECK(facts.max_qp_wr >= 1048576);
  CHECK(facts.device_cap_flags == 0x01223C76);
  CHECK(facts.max_sge >= 32);
  CHECK(facts.max_sge_rd >= 32);
  CHECK(facts.max_cq >= 1048576);
  CHECK(facts.max_cqe >= 32767);
  CHECK(facts.max_mr >= 524287);
  CHECK(facts.max_pd >= 1048576);
  CHECK(facts.max_qp_rd_atom >= 128);
  CHECK(facts.max_res_rd_atom >= 258048);
  CHECK(facts.max_qp_init_rd_atom >= 128);
  CHECK(facts.atomic_cap == 1);
  CHECK(facts.max_mw >= 524287);
  CHECK(facts.max_mcast_grp >= 8192);
  CHECK(facts.max_mcast_qp_attach >= 56);
  CHECK(facts.max_total_mcast_qp_attach >= 458752);
  CHECK(facts.max_ah >= 32767);
  CHECK(facts.max_srq >= 917503);
  CHECK(facts.max_srq_wr >= 1048576);
  CHECK(facts.max_srq_sge >= 27);
  CHECK(facts.max_pkeys >= 64);
  CHECK(facts.local_ca_ack_delay == 15);
  CHECK(facts.phys_port_cnt == 1);
}

TEST_CASE("the extended query tells of on-demand paging, cut to what the program knows") {
  UverbsSetup setup;
  UverbsClient client(setup.node, either_front());
  client.open_context();
  ib_uverbs_ex_query_device_resp facts{};
  REQUIRE(client.run_extended(IB_USER_VERBS_EX_CMD_QUERY_DEVICE, ib_uverbs_ex_query_device{},
                              &facts) == 0);
  CHECK(facts.response_length == sizeof(facts));
  CHECK(facts.odp_caps.general_caps == 3);
  CHECK(facts.odp_caps.per_transport_caps.rc_odp_caps == 0x3F);
  CHECK(facts.device_cap_flags_ex == (facts.base.device_cap_flags | verbs::abi::kDeviceAtomicWrite |
                                      verbs::abi::kDeviceFlushGlobal));
  CHECK(facts.base.max_sge == 32);

  std::array<std::uint64_t, offsetof(ib_uverbs_ex_query_device_resp, odp_caps) / 8> old{};
  REQUIRE(client.run_extended(IB_USER_VERBS_EX_CMD_QUERY_DEVICE, ib_uverbs_ex_query_device{},
                              &old) == 0);
  CHECK(static_cast<std::uint32_t>(old.back() >> 32) == sizeof(old));

  struct {
    ib_uverbs_ex_query_device_resp known;
    std::uint64_t newer;
  } longer{};
  longer.newer = 1;
  REQUIRE(client.run_extended(IB_USER_VERBS_EX_CMD_QUERY_DEVICE, ib_uverbs_ex_query_device{},
                              &longer) == 0);
  CHECK(longer.newer == 0);
  CHECK(client.run_extended(IB_USER_VERBS_EX_CMD_QUERY_DEVICE,
                            ib_uverbs_ex_query_device{.comp_mask = 1, .reserved = 0},
                            &facts) == -EINVAL);
}

TEST_CASE("port 1 is told of, by both front ends, and there is no other") {
  UverbsSetup setup;
  UverbsClient client(setup.node, either_front());
  client.open_context();
  ib_uverbs_query_port request{};
  request.port_num = 1;
  ib_uverbs_query_port_resp port{};
  REQUIRE(client.run(IB_USER_VERBS_CMD_QUERY_PORT, request, &port) == 0);
  CHECK(port.max_mtu == 5);
  CHECK(port.active_mtu == 5);
  CHECK(port.gid_tbl_len == 1024);
  CHECK(port.pkey_tbl_len == 1);
  CHECK(port.link_layer == 2);
  CHECK(port.max_msg_sz >= 0x800000);
  CHECK(port.port_cap_flags == 0x10000);
  ib_uverbs_query_port_resp_ex extended{};
  CHECK(Ioctl(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT)
            .constant(UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1)
            .out(UVERBS_ATTR_QUERY_PORT_RESP, extended)
            .run(client.file()) == 0);
  CHECK(extended.legacy_resp.gid_tbl_len == 1024);
  request.port_num = 2;
  CHECK(client.run(IB_USER_VERBS_CMD_QUERY_PORT, request, &port) == -EINVAL);
  CHECK(Ioctl(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT)
            .constant(UVERBS_ATTR_QUERY_PORT_PORT_NUM, 2)
            .out(UVERBS_ATTR_QUERY_PORT_RESP, extended)
            .run(client.file()) == -EINVAL);
}

TEST_CASE("GIDs are told one by one and as a table, whatever size the program's entries have") {
  UverbsSetup setup;
  UverbsClient client(setup.node, Front::ioctl);
  client.open_context();
  ib_uverbs_gid_entry entry{};
  const auto query = [&](std::uint64_t index) {
    return Ioctl(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY)
        .constant(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 1)
        .constant(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, index)
        .in(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, std::uint32_t{0})
        .out(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, entry)
        .run(client.file());
  };
  REQUIRE(query(1) == 0);
  CHECK(std::memcmp(&entry.gid, kSecondGid.bytes().data(), 16) == 0);
  CHECK(entry.gid_index == 1);
  CHECK(entry.port_num == 1);
  CHECK(entry.gid_type == IB_UVERBS_GID_TYPE_ROCE_V2);
  CHECK(entry.netdev_ifindex == 1);
  CHECK(query(2) == -ENODATA);
  CHECK(query(1024) == -EINVAL);

  const auto table = [&](std::size_t entry_size, void* entries, std::size_t size,
                         std::uint64_t& count) {
    return Ioctl(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE)
        .constant(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, entry_size)
        .in(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, std::uint32_t{0})
        .out(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, entries, size)
        .out(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, count)
        .run(client.file());
  };
  std::uint64_t count = 0;
  std::array<ib_uverbs_gid_entry, 4> entries{};
  REQUIRE(table(sizeof(entry), entries.data(), sizeof(entries), count) == 0);
  CHECK(count == 2);
  CHECK(std::memcmp(&entries[0].gid, kFirstGid.bytes().data(), 16) == 0);
  CHECK(std::memcmp(&entries[1], &entry, sizeof(entry)) == 0);
  std::array<std::array<std::uint8_t, 40>, 2> longer{};
  longer[0].fill(0xFF);
  REQUIRE(table(40, longer.data(), sizeof(longer), count) == 0);
  CHECK(longer[0][39] == 0);
  CHECK(std::memcmp(longer[1].data(), &entry, sizeof(entry)) == 0);
  CHECK(table(sizeof(entry), entries.data(), sizeof(entry), count) == -EINVAL);
  CHECK(table(0, entries.data(), sizeof(entries), count) == -EINVAL);
  CHECK(table(48, entries.data(), 47, count) == -EINVAL);
}

TEST_CASE("a file that knows only write() says that there is no ioctl") {
  UverbsSetup setup;
  verbs::UverbsNode node(setup.config, setup.source, verbs::UverbsAbi::write_only);
  UverbsClient client(node, Front::write);
  client.open_context();
  std::uint32_t vectors = 0;
  Ioctl ioctl(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
  ioctl.out(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, vectors);
  CHECK(ioctl.run(client.file()) == -ENOTTY);
}
