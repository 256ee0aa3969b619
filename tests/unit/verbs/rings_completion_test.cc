#include <cerrno>

#include <arpa/inet.h>
#include <catch2/catch.hpp>

#include "tests/support/ring_program.h"
#include "verbs/rings/completion_ring.h"

namespace urxe::verbs {
namespace {

using emulator::Completion;
using test::RingPoller;

struct Fixture {
  explicit Fixture(std::uint32_t cqe = 3) {
    auto made = CompletionRing::create(*memory, cqe);
    REQUIRE(made.has_value());
    ring = std::move(*made);
  }
  [[nodiscard]] RingPoller program() const { return RingPoller(ring->area().bytes()); }
  [[nodiscard]] bool push(std::uint64_t wr_id) const { return ring->push({.wr_id = wr_id}); }
  [[nodiscard]] std::uint64_t poll() const {
    const auto wc = program().poll();
    REQUIRE(wc.has_value());
    return wc->wr_id;
  }

  std::shared_ptr<RingMemory> memory = RingMemory::create().value();
  std::unique_ptr<CompletionRing> ring;
};

TEST_CASE("a completion ring has the sizes that rxe would give it") {
  for (const auto& [wanted, actual] : {std::pair{1U, 1U}, {2U, 3U}, {3U, 3U}, {1000U, 1023U}}) {
    const Fixture f(wanted);
    CHECK(f.ring->cqe() == actual);
    CHECK(f.program().header().index_mask == actual);
    CHECK(f.program().header().log2_elem_size == 6);
  }
  const auto memory = RingMemory::create().value();
  CHECK(CompletionRing::create(*memory, UINT32_MAX).error() == ENOMEM);
}

TEST_CASE("a completion is polled with all of its fields") {
  const Fixture f;
  REQUIRE(f.ring->push({.wr_id = 0x1122334455667788,
                        .status = emulator::CompletionStatus::rnr_retry_exceeded,
                        .opcode = emulator::CompletionOpcode::receive_rdma_with_immediate,
                        .vendor_error = 5,
                        .byte_count = 0x80000000,
                        .immediate = 0x01020304,
                        .qpn = wire::Qpn{0x123456},
                        .source_qpn = wire::Qpn{0x654321},
                        .flags = emulator::kWithGrh | emulator::kWithImmediate,
                        .pkey_index = 6,
                        .source_lid = 7,
                        .service_level = 8}));
  const auto wc = f.program().poll();
  REQUIRE(wc.has_value());
  CHECK(wc->wr_id == 0x1122334455667788);
  CHECK(wc->status == 13);
  CHECK(wc->opcode == 129);
  CHECK(wc->vendor_err == 5);
  CHECK(wc->byte_len == 0x80000000);
  CHECK(ntohl(wc->ex.imm_data) == 0x01020304);
  CHECK(wc->qp_num == 0x123456);
  CHECK(wc->src_qp == 0x654321);
  CHECK(wc->wc_flags == 3);
  CHECK(wc->pkey_index == 6);
  CHECK(wc->slid == 7);
  CHECK(wc->sl == 8);
  CHECK(wc->port_num == 1);
}

TEST_CASE("a completion with an invalidated key has it where immediate data would be") {
  const Fixture f;
  REQUIRE(
      f.ring->push({.invalidated = wire::RKey{0x01020304}, .flags = emulator::kWithInvalidate}));
  CHECK(f.program().poll()->ex.invalidate_rkey == 0x01020304);
}

TEST_CASE("a full completion ring takes no more, and loses nothing") {
  const Fixture f;
  for (std::uint64_t i = 0; i < 3; ++i) CHECK(f.push(i));
  CHECK_FALSE(f.push(3));
  CHECK(f.ring->waiting() == 3);
  CHECK(f.poll() == 0);
  CHECK(f.push(4));
  CHECK_FALSE(f.push(5));
  CHECK(f.poll() == 1);
  CHECK(f.poll() == 2);
  CHECK(f.poll() == 4);
  CHECK_FALSE(f.program().poll().has_value());
  CHECK(f.ring->waiting() == 0);
}

TEST_CASE("a completion ring keeps order around its end many times") {
  const Fixture f;
  std::uint64_t pushed = 0;
  std::uint64_t polled = 0;
  for (int round = 0; round < 100; ++round) {
    while (f.push(pushed)) ++pushed;
    for (int i = 0; i < 1 + round % 3; ++i) CHECK(f.poll() == polled++);
  }
}

TEST_CASE("a resized completion ring holds what waited, in order") {
  for (const std::uint32_t cqe : {3U, 5U, 100U}) {
    CAPTURE(cqe);
    const Fixture f;
    CHECK(f.push(0));
    CHECK(f.push(0));
    f.program().poll();
    f.program().poll();
    for (std::uint64_t i = 1; i <= 3; ++i) CHECK(f.push(i));
    const auto resized = f.ring->resized(*f.memory, cqe);
    REQUIRE(resized.has_value());
    CHECK((*resized)->waiting() == 3);
    RingPoller program((*resized)->area().bytes());
    for (std::uint64_t i = 1; i <= 3; ++i) CHECK(program.poll()->wr_id == i);
    CHECK_FALSE(program.poll().has_value());
    CHECK((*resized)->push({.wr_id = 4}));
    CHECK(program.poll()->wr_id == 4);
  }
}

TEST_CASE("a completion ring is not resized to less than what waits") {
  const Fixture f;
  for (std::uint64_t i = 0; i < 3; ++i) CHECK(f.push(i));
  CHECK(f.ring->resized(*f.memory, 2).error() == EINVAL);
  CHECK(f.ring->resized(*f.memory, UINT32_MAX).error() == ENOMEM);
  CHECK(f.ring->waiting() == 3);
  CHECK(f.poll() == 0);
}

TEST_CASE("what a program writes over the device's side of a completion ring changes nothing") {
  const Fixture f;
  CHECK(f.push(1));
  f.program().producer().store(0xFFFFFFFF);
  f.program().header().index_mask = 0;
  f.program().header().log2_elem_size = 31;
  CHECK(f.ring->waiting() == 1);
  CHECK(f.push(2));
  CHECK(f.program().producer().load() == 2);
  CHECK(f.push(3));
  CHECK_FALSE(f.push(4));
}

TEST_CASE("with any consumer index a push writes no entry that the index leaves unpolled") {
  for (std::uint32_t base = 0; base < 4; ++base) {
    for (const std::uint32_t high : {0U, 4U, 0x80000000U, 0xFFFFFFFCU}) {
      const std::uint32_t index = high | base;
      CAPTURE(index);
      const Fixture f;
      for (std::uint64_t i = 0; i < 2; ++i) CHECK(f.push(i));
      f.program().consumer().store(index);
      const std::uint32_t waiting = f.ring->waiting();
      CHECK(waiting == ((2 - base) & 3));
      std::uint32_t pushed = 0;
      while (f.push(100)) REQUIRE(++pushed <= 3);
      CHECK(pushed == 3 - waiting);
    }
  }
}

TEST_CASE("a completion ring is resized within bounds after its consumer index jumped") {
  const Fixture f;
  f.program().consumer().store(0xFFFFFFFD);
  CHECK(f.ring->waiting() == 3);
  const auto resized = f.ring->resized(*f.memory, 3);
  REQUIRE(resized.has_value());
  CHECK((*resized)->waiting() == 3);
  CHECK_FALSE((*resized)->push({}));
}

}  // namespace
}  // namespace urxe::verbs
