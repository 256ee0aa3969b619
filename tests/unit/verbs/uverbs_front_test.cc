// What both front ends refuse before a handler sees it.
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/skip.h"
#include "tests/unit/verbs/uverbs_setup.h"
#include "verbs/runtime/fault_guard.h"
#include "verbs/runtime/log.h"

using namespace urxe;
using namespace urxe::test;

namespace {

struct FrontSetup : UverbsSetup {
  FrontSetup() { client.open_context(); }
  UverbsClient client{node, Front::write};

  template <typename Body>
  ssize_t write(const ib_uverbs_cmd_hdr& header, const Body& body, std::size_t body_size) {
    std::vector<std::byte> bytes(sizeof(header) + body_size);
    std::memcpy(bytes.data(), &header, sizeof(header));
    std::memcpy(bytes.data() + sizeof(header), &body, std::min(body_size, sizeof(body)));
    return client.file().write(bytes.data(), bytes.size());
  }
};

// Without the arrays at their ends, and in one piece with the header.
struct ExtendedQuery {
  std::uint64_t response = 0;
  std::uint16_t provider_in_words = 0;
  std::uint16_t provider_out_words = 0;
  std::uint32_t reserved = 0;
  ib_uverbs_ex_query_device request{};
};

constexpr std::uint32_t kExtended = IB_USER_VERBS_CMD_FLAG_EXTENDED;

// A page that is not there.
class Hole {
 public:
  Hole() : start_(mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  Hole(const Hole&) = delete;
  Hole& operator=(const Hole&) = delete;
  ~Hole() { munmap(start_, kSize); }
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(start_); }
  [[nodiscard]] void* pointer() const { return start_; }

 private:
  static constexpr std::size_t kSize = 4096;
  void* start_;
};

// False, and the test is over, where no fault can be survived.
bool faults_can_be_had() {
#ifdef __SANITIZE_THREAD__
  skip("ThreadSanitizer does not survive a fault guard's jump");
  return false;
#else
  REQUIRE(verbs::FaultGuard::arm(&::sigaction));
  return true;
#endif
}

}  // namespace

TEST_CASE("a header that does not fit what was written is refused") {
  FrontSetup setup;
  const ib_uverbs_dealloc_pd body{.pd_handle = setup.client.pd()};
  constexpr std::uint32_t kCommand = IB_USER_VERBS_CMD_DEALLOC_PD;
  CHECK(setup.client.file().write(&body, 4) == -EINVAL);
  CHECK(setup.write({.command = kCommand, .in_words = 2, .out_words = 0}, body, 4) == -EINVAL);
  CHECK(setup.write({.command = kCommand, .in_words = 4, .out_words = 0}, body, 4) == -EINVAL);
  CHECK(setup.write({.command = kCommand, .in_words = 2, .out_words = 0}, body, 0) == -ENOSPC);
  CHECK(setup.write({.command = kCommand, .in_words = 3, .out_words = 0}, body, 4) == 12);
}

TEST_CASE("room for the response is checked before anything is done") {
  FrontSetup setup;
  const std::uint64_t response = 0;
  CHECK(setup.write({.command = IB_USER_VERBS_CMD_ALLOC_PD, .in_words = 4, .out_words = 0},
                    response, sizeof(response)) == -ENOSPC);
  CHECK(setup.census() == kNothing);
}

TEST_CASE("commands that rxe has not, and numbers that are no commands, are told apart") {
  FrontSetup setup;
  const std::uint64_t body = 0;
  const auto run = [&](std::uint32_t command) {
    return setup.write({.command = command, .in_words = 4, .out_words = 2}, body, sizeof(body));
  };
  CHECK(run(IB_USER_VERBS_CMD_OPEN_XRCD) == -EOPNOTSUPP);
  CHECK(run(IB_USER_VERBS_CMD_MODIFY_AH) == -EOPNOTSUPP);
  CHECK(run(IB_USER_VERBS_CMD_POLL_CQ) == -EOPNOTSUPP);
  CHECK(run(0xFF) == -EOPNOTSUPP);
  CHECK(run(0x1FF) == -EINVAL);
  CHECK(run(kExtended | IB_USER_VERBS_EX_CMD_CREATE_FLOW) == -EOPNOTSUPP);
  CHECK(run(kExtended | IB_USER_VERBS_EX_CMD_CREATE_WQ) == -EOPNOTSUPP);
  CHECK(run(kExtended | IB_USER_VERBS_EX_CMD_MODIFY_CQ) == -EOPNOTSUPP);
  CHECK(run(0x40000000) == -EINVAL);
}

TEST_CASE("an extended header is checked word by word") {
  FrontSetup setup;
  std::array<std::byte, sizeof(ib_uverbs_ex_query_device_resp)> response{};
  ExtendedQuery good;
  good.response = reinterpret_cast<std::uintptr_t>(response.data());
  const ib_uverbs_cmd_hdr header{.command = kExtended | IB_USER_VERBS_EX_CMD_QUERY_DEVICE,
                                 .in_words = 1,
                                 .out_words = sizeof(response) / 8};
  const auto run = [&](auto change) {
    ib_uverbs_cmd_hdr changed_header = header;
    ExtendedQuery changed = good;
    change(changed_header, changed);
    return setup.write(changed_header, changed, sizeof(changed));
  };
  CHECK(run([](auto&, auto&) {}) == sizeof(header) + sizeof(good));
  CHECK(run([](auto& head, auto&) { head.in_words = 2; }) == -EINVAL);
  CHECK(run([](auto& head, auto&) { head.in_words = 0; }) == -EINVAL);
  CHECK(run([](auto& head, auto& body) { head.in_words = 0, body.provider_in_words = 1; }) ==
        -ENOSPC);
  CHECK(run([](auto&, auto& body) { body.reserved = 1; }) == -EINVAL);
  CHECK(run([](auto&, auto& body) { body.response = 0; }) == -EINVAL);
  CHECK(run([](auto& head, auto&) { head.out_words = 0; }) == -EINVAL);
  CHECK(run([](auto& head, auto&) { head.out_words = 1; }) == -ENOSPC);
  CHECK(setup.write(header, good, 8) == -EINVAL);
}

TEST_CASE("what a newer program says besides must be zero") {
  FrontSetup setup;
  UverbsClient client(setup.node, Front::ioctl);
  client.open_context();
  struct {
    ib_uverbs_dealloc_pd known;
    std::uint32_t newer;
  } request{};
  request.known.pd_handle = client.pd();
  request.newer = 1;
  CHECK(client.run(IB_USER_VERBS_CMD_DEALLOC_PD, request) == -EOPNOTSUPP);
  request.newer = 0;
  CHECK(client.run(IB_USER_VERBS_CMD_DEALLOC_PD, request) == 0);
}

TEST_CASE("libibverbs' probe for wrapped commands gets the answer that it waits for") {
  FrontSetup setup;
  CHECK(Ioctl(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE)
            .constant(UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_ALLOC_PD)
            .run(setup.client.file()) == -ENOSPC);
  CHECK(Ioctl(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE)
            .constant(UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_OPEN_XRCD)
            .run(setup.client.file()) == -EOPNOTSUPP);
}

TEST_CASE("an ioctl's header is checked") {
  FrontSetup setup;
  const auto run = [&](auto change) {
    Ioctl ioctl(UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY);
    ioctl.object(UVERBS_ATTR_DESTROY_PD_HANDLE, 77);
    change(ioctl.header());
    return ioctl.run(setup.client.file());
  };
  CHECK(run([](auto&) {}) == -ENOENT);
  CHECK(run([](auto& header) { header.length = 24; }) == -EINVAL);
  CHECK(run([](auto& header) { header.length = 5000; }) == -EINVAL);
  CHECK(run([](auto& header) { header.reserved1 = 1; }) == -EPROTONOSUPPORT);
  CHECK(run([](auto& header) { header.reserved2 = 1; }) == -EPROTONOSUPPORT);
  CHECK(run([](auto& header) { header.driver_id = RDMA_DRIVER_MLX5; }) == -EINVAL);
  CHECK(run([](auto& header) { header.method_id = 9; }) == -EPROTONOSUPPORT);
  CHECK(run([](auto& header) { header.object_id = UVERBS_OBJECT_DM; }) == -EPROTONOSUPPORT);
  CHECK(run([](auto& header) { header.object_id = UVERBS_OBJECT_XRCD; }) == -EPROTONOSUPPORT);
  CHECK(run([](auto& header) { header.object_id = 0x1001; }) == -EPROTONOSUPPORT);
  CHECK(setup.client.file().ioctl(0x5401, nullptr) == -ENOTTY);
}

TEST_CASE("attributes are checked against what the method declares") {
  FrontSetup setup;
  const std::uint32_t pd = setup.client.pd();
  const auto run = [&](auto change) {
    Ioctl ioctl(UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY);
    change(ioctl);
    return ioctl.run(setup.client.file());
  };
  constexpr std::uint16_t kHandle = UVERBS_ATTR_DESTROY_PD_HANDLE;
  CHECK(run([](auto&) {}) == -EINVAL);
  CHECK(run([&](auto& ioctl) { ioctl.object(kHandle, pd).last().len = 4; }) == -EINVAL);
  CHECK(run([&](auto& ioctl) { ioctl.object(kHandle, pd).last().attr_data.reserved = 1; }) ==
        -EINVAL);
  CHECK(run([&](auto& ioctl) { ioctl.object(kHandle, pd).object(kHandle, pd); }) == -EINVAL);
  CHECK(run([&](auto& ioctl) { ioctl.object(kHandle, -1); }) == -EINVAL);
  CHECK(run([&](auto& ioctl) { ioctl.object(kHandle, std::int64_t{1} << 40); }) == -ENOENT);
  CHECK(run([&](auto& ioctl) { ioctl.object(kHandle, pd).object(99); }) == -EPROTONOSUPPORT);
  CHECK(run([&](auto& ioctl) {
          ioctl.object(kHandle, pd).object(99);
          ioctl.last().flags = 0;
        }) == 0);
}

TEST_CASE("sizes of attributes are checked, inline or not") {
  FrontSetup setup;
  ib_uverbs_query_port_resp_ex response{};
  const auto run = [&](std::size_t size, const auto& port) {
    return Ioctl(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT)
        .in(UVERBS_ATTR_QUERY_PORT_PORT_NUM, port)
        .out(UVERBS_ATTR_QUERY_PORT_RESP, &response, size)
        .run(setup.client.file());
  };
  CHECK(run(sizeof(response), std::uint64_t{1}) == 0);
  CHECK(run(sizeof(response), std::uint32_t{1}) == -EINVAL);
  CHECK(run(sizeof(response), std::array<std::uint64_t, 2>{1, 0}) == -EINVAL);
  CHECK(run(sizeof(response) - 1, std::uint64_t{1}) == -EINVAL);
  CHECK(run(sizeof(response), std::uint64_t{1} << 32) == -EINVAL);
}

TEST_CASE("addresses that are not memory are EFAULT, and leave nothing behind") {
  if (!faults_can_be_had()) return;
  FrontSetup setup;
  const Hole hole;
  CHECK(setup.client.file().write(hole.pointer(), 16) == -EFAULT);
  CHECK(setup.client.file().write(nullptr, 16) == -EFAULT);
  CHECK(setup.client.file().ioctl(RDMA_VERBS_IOCTL, hole.pointer()) == -EFAULT);
  CHECK(setup.client.file().ioctl(RDMA_VERBS_IOCTL, nullptr) == -EFAULT);

  const std::uint64_t response = hole.address();
  CHECK(setup.write({.command = IB_USER_VERBS_CMD_ALLOC_PD, .in_words = 4, .out_words = 1},
                    response, sizeof(response)) == -EFAULT);
  CHECK(
      setup.write({.command = IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, .in_words = 4, .out_words = 1},
                  response, sizeof(response)) == -EFAULT);
  struct {
    std::uint64_t response;
    std::uint64_t user_handle = 0;
    std::uint32_t cqe = 1;
    std::uint32_t vector = 0;
    std::int32_t channel = -1;
    std::uint32_t reserved = 0;
  } cq{.response = response};
  CHECK(setup.write({.command = IB_USER_VERBS_CMD_CREATE_CQ, .in_words = 10, .out_words = 6}, cq,
                    sizeof(cq)) == -EFAULT);
  CHECK(setup.census() == kNothing);
}

TEST_CASE("attributes that point to nothing are EFAULT, and leave nothing behind") {
  if (!faults_can_be_had()) return;
  FrontSetup setup;
  const Hole hole;
  std::uint32_t cqe = 0;
  rxe_create_cq_resp driver{};
  const auto run = [&](auto change) {
    Ioctl ioctl(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
    ioctl.object(UVERBS_ATTR_CREATE_CQ_HANDLE)
        .in(UVERBS_ATTR_CREATE_CQ_CQE, std::uint32_t{20})
        .in(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, std::uint64_t{7})
        .in(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, std::uint32_t{0})
        .out(UVERBS_ATTR_CREATE_CQ_RESP_CQE, cqe);
    change(ioctl);
    return ioctl.run(setup.client.file());
  };
  const auto with_driver = [&](Ioctl& ioctl) { ioctl.out(UVERBS_ATTR_UHW_OUT, driver); };
  CHECK(run([&](auto& ioctl) {
          ioctl.last().data = hole.address();
          with_driver(ioctl);
        }) == -EFAULT);
  CHECK(run([&](auto& ioctl) {
          with_driver(ioctl);
          ioctl.last().data = hole.address();
        }) == -EFAULT);
  CHECK(setup.census() == kNothing);
  CHECK(run(with_driver) == 0);
  const std::array<std::uint64_t, 4> cap{};
  CHECK(Ioctl(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE)
            .constant(UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_ALLOC_PD)
            .in(UVERBS_ATTR_CORE_IN, hole.pointer(), 32)
            .out(UVERBS_ATTR_CORE_OUT, const_cast<std::uint64_t*>(cap.data()), 4)
            .run(setup.client.file()) == -EFAULT);
}

TEST_CASE(
    "a refused command is explained in the log, and what programs try as a matter of course not") {
  std::string path = "/tmp/urxe-uverbs-log.XXXXXX";
  close(mkstemp(path.data()));
  REQUIRE(verbs::set_up_log("info:" + path));
  FrontSetup setup;
  ib_uverbs_gid_entry entry{};
  CHECK(Ioctl(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY)
            .constant(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 1)
            .constant(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, 9)
            .in(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, std::uint32_t{0})
            .out(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, entry)
            .run(setup.client.file()) == -ENODATA);
  CHECK(setup.client.run(IB_USER_VERBS_CMD_DEALLOC_PD, ib_uverbs_dealloc_pd{77}) == -ENOENT);
  REQUIRE(verbs::set_up_log("error"));
  std::ifstream log(path);
  std::string line;
  REQUIRE(std::getline(log, line));
  CHECK_THAT(line, Catch::Contains("rxe0: write refused with ENOENT: DEALLOC_PD: handle 77"));
  CHECK_FALSE(std::getline(log, line));
  unlink(path.c_str());
}
