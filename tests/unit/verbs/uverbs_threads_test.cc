// Commands from several threads, also while the file is being used and closed by others.
#include <atomic>
#include <thread>
#include <vector>

#include "tests/unit/verbs/uverbs_pair.h"

using namespace urxe;
using namespace urxe::test;

TEST_CASE("threads make, use and destroy objects of one file at the same time") {
  UverbsSetup setup;
  UverbsClient client(setup.node, Front::ioctl);
  client.open_context();
  const std::uint32_t pd = client.pd();
  const auto cq = client.cq(1, -1, 1024);
  constexpr int kThreads = 4;
  constexpr int kRounds = 100;
  std::atomic<int> failures{0};
  const auto work = [&](std::uint64_t number) {
    ib_uverbs_create_qp request = UverbsClient::usual_qp();
    request.user_handle = number;
    request.pd_handle = pd;
    request.send_cq_handle = request.recv_cq_handle = cq.handle;
    for (int i = 0; i < kRounds; ++i) {
      ib_uverbs_create_qp_resp made{};
      rxe_create_qp_resp driver{};
      failures += client.run(IB_USER_VERBS_CMD_CREATE_QP, request, &made, driver_out(driver)) != 0;
      client.file().drive();
      ib_uverbs_destroy_qp destroy{};
      destroy.qp_handle = made.qp_handle;
      ib_uverbs_destroy_qp_resp destroyed{};
      failures += client.run(IB_USER_VERBS_CMD_DESTROY_QP, destroy, &destroyed) != 0;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
  CHECK(setup.census().qps == 0);
}

TEST_CASE("files are opened and closed while another carries traffic") {
  Pair pair;
  std::atomic<bool> done{false};
  std::thread opener([&] {
    while (!done) {
      UverbsClient other(pair.setup.node, Front::ioctl);
      other.open_context();
      other.cq(1, other.channel());
    }
  });
  int completed = 0;
  for (int i = 0; i < 100; ++i) {
    REQUIRE(pair.client.request_notification(pair.receive_cq.handle) == 0);
    pair.transfer();
    completed += poll_cq(pair.received).has_value();
    ib_uverbs_comp_event_desc event{};
    REQUIRE(read(pair.channel, &event, sizeof(event)) == sizeof(event));
    poll_cq(pair.sent);
  }
  done = true;
  opener.join();
  CHECK(completed == 100);
}
