#include "emulator/qp_table.h"

#include <set>

#include <catch2/catch.hpp>

#include "emulator/device.h"
#include "tests/support/work_doubles.h"

namespace urxe::test {
namespace {

using namespace emulator;

struct Devices {
  explicit Devices(QpnRange range, std::uint32_t seed = 0)
      : device({.seed = seed}, memory, range),
        pd(*device.create_pd()),
        cq(*device.create_cq(completions)) {}
  Result<QueuePair*> create() {
    return device.create_qp(
        *pd, {.send_cq = cq, .receive_cq = cq, .send_source = &sends, .receive_source = &receives});
  }
  MemoryDouble memory;
  Device device;
  SendDouble sends;
  ReceiveDouble receives;
  CompletionDouble completions;
  ProtectionDomain* pd;
  CompletionQueue* cq;
};

TEST_CASE("numbers come from the range, none twice, and the range may be used up") {
  Devices t({wire::Qpn{0x4000}, 100});
  std::set<std::uint32_t> numbers;
  for (int i = 0; i < 100; ++i) {
    const auto qp = t.create();
    REQUIRE(qp);
    numbers.insert((*qp)->qpn().value());
  }
  CHECK(numbers.size() == 100);
  CHECK(*numbers.begin() == 0x4000);
  CHECK(*numbers.rbegin() == 0x4063);
  const auto refused = t.create();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().failure == Failure::no_memory);
}

TEST_CASE("a number that was freed rests until all others were used") {
  Devices t({wire::Qpn{0x4000}, 1000});
  std::set<std::uint32_t> numbers;
  for (int i = 0; i < 1000; ++i) {
    QueuePair* qp = *t.create();
    CHECK(numbers.insert(qp->qpn().value()).second);
    REQUIRE(t.device.destroy(*qp));
  }
  CHECK_FALSE(numbers.insert((*t.create())->qpn().value()).second);
}

TEST_CASE("a full table takes the one number that was freed") {
  Devices t({wire::Qpn{0x4000}, 10});
  std::vector<QueuePair*> qps;
  for (int i = 0; i < 10; ++i) qps.push_back(*t.create());
  const wire::Qpn freed = qps[7]->qpn();
  REQUIRE(t.device.destroy(*qps[7]));
  CHECK((*t.create())->qpn() == freed);
}

TEST_CASE("a second range serves when the first is used up") {
  Devices t({wire::Qpn{0x4000}, 2});
  t.device.add_qpns({wire::Qpn{0x8000}, 2});
  std::vector<QueuePair*> qps;
  for (int i = 0; i < 4; ++i) qps.push_back(*t.create());
  CHECK(qps[2]->qpn().value() >= 0x8000);
  CHECK_FALSE(t.create());
  CHECK(t.device.census().qps == 4);
  REQUIRE(t.device.destroy(*qps[0]));
  CHECK((*t.create())->qpn().value() < 0x8000);
}

TEST_CASE("the seed varies where numbering starts") {
  Devices a({wire::Qpn{0x4000}, 1000}, 1);
  Devices b({wire::Qpn{0x4000}, 1000}, 2);
  CHECK((*a.create())->qpn() != (*b.create())->qpn());
}

}  // namespace
}  // namespace urxe::test
