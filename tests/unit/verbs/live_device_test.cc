// A device that several threads move: one that posts, one that polls, the progress thread.
#include "verbs/runtime/live_device.h"

#include <thread>

#include <catch2/catch.hpp>
#include <sys/resource.h>

using namespace urxe;

namespace {

// A network on which nothing comes and nothing may be sent.
class SilentFabric final : public net::Fabric {
 public:
  wire::MutableBytes reserve() override { return {}; }
  void commit(Time, const wire::Outbound&) override {}
  bool flush(Time) override { return true; }
  net::ReceiveResult receive(Time, net::Receiver&, std::size_t) override { return {}; }
  void wait_for(std::vector<pollfd>&) const override {}
  int join(const wire::IpAddress&) override { return 0; }
  int leave(const wire::IpAddress&) override { return 0; }
};

class NoWaker final : public verbs::ProgressWaker {
 public:
  void arm(Time) override {}
  void wake() override {}
};

struct Alone {
  NoWaker waker;
  verbs::LiveDevice device{
      {}, {wire::Qpn{0x4000}, 64}, std::make_unique<SilentFabric>(), waker, nullptr};
};

// How often a thread that polls so often went to sleep. To yield is not to sleep.
long sleeps_of_poller(verbs::LiveDevice& device, int polls) {
  long slept = 0;
  std::thread poller([&] {
    const auto sleeps = [] {
      rusage usage{};
      getrusage(RUSAGE_THREAD, &usage);
      return usage.ru_nvcsw;
    };
    const long before = sleeps();
    for (int i = 0; i < polls; ++i) device.drive();
    slept = sleeps() - before;
  });
  poller.join();
  return slept;
}

}  // namespace

TEST_CASE("a thread that polls in vain sleeps, so that the one that moves the packets may run") {
  Alone alone;
  const auto mover = alone.device.access();
  CHECK(sleeps_of_poller(alone.device, 2000) > 1000);
}

TEST_CASE("a thread that polls does not sleep because another moves packets for a moment") {
  Alone alone;
  for (int i = 0; i < 20; ++i) {
    {
      const auto mover = alone.device.access();
      CHECK(sleeps_of_poller(alone.device, 200) < 10);
    }
    CHECK(sleeps_of_poller(alone.device, 200) < 10);
  }
}
