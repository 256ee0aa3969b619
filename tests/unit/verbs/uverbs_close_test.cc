// Files that are closed with all that was made through them, and several files on one device.
#include <array>
#include <cerrno>
#include <optional>

#include <fcntl.h>
#include <unistd.h>

#include "tests/unit/verbs/uverbs_setup.h"

using namespace urxe;
using namespace urxe::test;

namespace {

// One object of each kind, each needed by another.
void make_everything(UverbsClient& client, void* memory) {
  client.open_context();
  const std::uint32_t pd = client.pd();
  client.mr(pd, memory, 64, IB_UVERBS_ACCESS_LOCAL_WRITE);
  ib_uverbs_alloc_mw window{};
  window.pd_handle = pd;
  window.mw_type = 1;
  ib_uverbs_alloc_mw_resp window_response{};
  REQUIRE(client.run(IB_USER_VERBS_CMD_ALLOC_MW, window, &window_response) == 0);
  const auto srq = client.srq(pd, 3);
  ib_uverbs_create_qp wanted = UverbsClient::usual_qp();
  wanted.is_srq = 1;
  wanted.srq_handle = srq.handle;
  const auto cq = client.cq(1, client.channel());
  const auto qp = client.qp(pd, cq.handle, 9, wanted);
  client.connect(qp, 0x1234, kFirstGid.bytes().data());
  ib_uverbs_create_ah address{};
  address.pd_handle = pd;
  address.attr.is_global = 1;
  address.attr.port_num = 1;
  std::copy_n(kFirstGid.bytes().data(), 16, address.attr.grh.dgid);
  ib_uverbs_create_ah_resp address_response{};
  REQUIRE(client.run(IB_USER_VERBS_CMD_CREATE_AH, address, &address_response) == 0);
}

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("closing a file destroys everything that was made through it") {
  UverbsSetup setup;
  std::array<std::uint8_t, 64> memory{};
  UverbsClient client(setup.node, either_front());
  make_everything(client, memory.data());
  const auto full = setup.census();
  CHECK(full.qps == 1);
  CHECK(full.ahs == 1);
  CHECK(full.windows == 1);
  client.close_file();
  CHECK(setup.census() == kNothing);
}

TEST_CASE("an open and a close leave no descriptor behind") {
  UverbsSetup setup;
  std::array<std::uint8_t, 64> memory{};
  const int before = open_descriptors();
  {
    UverbsClient client(setup.node, Front::write);
    make_everything(client, memory.data());
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("a program that ends its completion channels itself does not use up descriptors") {
  UverbsSetup setup;
  UverbsClient client(setup.node, Front::write);
  client.open_context();
  const auto open_and_close = [&] {
    ib_uverbs_create_comp_channel_resp response{};
    REQUIRE(client.run(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, ib_uverbs_create_comp_channel{},
                       &response) == 0);
    close(static_cast<int>(response.fd));
  };
  for (int i = 0; i < 20; ++i) open_and_close();
  const int after_few = open_descriptors();
  for (int i = 0; i < 200; ++i) open_and_close();
  CHECK(open_descriptors() <= after_few + 20);
}

TEST_CASE("a channel of which the program kept a duplicate lives on") {
  UverbsSetup setup;
  UverbsClient client(setup.node, Front::write);
  client.open_context();
  ib_uverbs_create_comp_channel_resp response{};
  REQUIRE(client.run(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, ib_uverbs_create_comp_channel{},
                     &response) == 0);
  const int duplicate = dup(static_cast<int>(response.fd));
  close(static_cast<int>(response.fd));
  for (int i = 0; i < 20; ++i) client.channel();
  CHECK(client.cq(1, duplicate).mapping.size > 0);
  close(duplicate);
}

TEST_CASE("the objects of two files on one device are strangers") {
  UverbsSetup setup;
  UverbsClient first(setup.node, either_front());
  UverbsClient second(setup.node, Front::ioctl);
  first.open_context();
  second.open_context();
  const std::uint32_t pd = first.pd();
  CHECK(second.run(IB_USER_VERBS_CMD_DEALLOC_PD, ib_uverbs_dealloc_pd{pd}) == -ENOENT);
  ib_uverbs_create_cq request{};
  request.cqe = 1;
  request.comp_channel = first.channel();
  ib_uverbs_create_cq_resp response{};
  rxe_create_cq_resp driver{};
  CHECK(second.run(IB_USER_VERBS_CMD_CREATE_CQ, request, &response, driver_out(driver)) == -EBADF);
  second.pd();
  first.close_file();
  CHECK(setup.census().pds == 1);
}

TEST_CASE(
    "after a fork the inherited descriptors are closed, and files that are opened then work") {
  UverbsSetup setup;
  UverbsClient inherited(setup.node, Front::write);
  inherited.open_context();
  const int channel = inherited.channel();
  setup.node.after_fork_in_child();
  char byte = 0;
  CHECK(read(channel, &byte, 1) == 0);  // the other end is gone
  UverbsClient fresh(setup.node, Front::ioctl);
  const int async = fresh.open_context();
  setup.source.device().listener()->async_event({emulator::AsyncEventType::port_active, {}});
  ib_uverbs_async_event_desc event{};
  REQUIRE(read(async, &event, sizeof(event)) == sizeof(event));
  CHECK(event.element == 1);
}
