#include <cerrno>

#include <catch2/catch.hpp>

#include "tests/support/ring_program.h"
#include "verbs/rings/receive_ring.h"

namespace urxe::verbs {
namespace {

using emulator::ReceiveRequest;
using test::RingPoster;

struct Fixture {
  explicit Fixture(std::uint32_t max_wr = 3, std::uint32_t max_sge = 2, bool shared = false) {
    auto made = ReceiveRing::create(*memory, max_wr, max_sge, shared);
    REQUIRE(made.has_value());
    ring = std::move(*made);
  }
  [[nodiscard]] RingPoster program() const { return RingPoster(ring->area().bytes()); }
  ReceiveRequest take() const {
    ReceiveRequest request;
    REQUIRE(ring->take(request));
    return request;
  }

  std::shared_ptr<RingMemory> memory = RingMemory::create().value();
  std::unique_ptr<ReceiveRing> ring;
};

TEST_CASE("a receive ring has the sizes that rxe would give it") {
  struct Row {
    std::uint32_t max_wr, max_sge, capacity, log2_element_size;
  };
  const Row rows[] = {{0, 1, 0, 6}, {1, 1, 1, 6},       {2, 2, 3, 7},
                      {3, 5, 3, 7}, {1000, 6, 1023, 8}, {1024, 32, 2047, 10}};
  for (const Row& row : rows) {
    CAPTURE(row.max_wr, row.max_sge);
    const Fixture f(row.max_wr, row.max_sge);
    CHECK(f.ring->max_wr() == row.capacity);
    CHECK(f.ring->max_sge() == row.max_sge);
    CHECK(f.program().header().index_mask == row.capacity);
    CHECK(f.program().header().log2_elem_size == row.log2_element_size);
  }
}

TEST_CASE("a receive ring that cannot be is refused") {
  const auto memory = RingMemory::create().value();
  CHECK(ReceiveRing::create(*memory, 1, emulator::kMaxSge + 1, false).error() == EINVAL);
  CHECK(ReceiveRing::create(*memory, 1, UINT32_MAX, false).error() == EINVAL);
  CHECK(ReceiveRing::create(*memory, UINT32_MAX, 1, false).error() == ENOMEM);
}

TEST_CASE("posted receive requests come out in order, with their lists") {
  const Fixture f;
  RingPoster program = f.program();
  ReceiveRequest request;
  CHECK_FALSE(f.ring->take(request));
  REQUIRE(program.post_receive(1, {{0x1000, 0xFFFFFFFF, 5}, {0x2000, 2, 6}}));
  REQUIRE(program.post_receive(2));
  CHECK(f.ring->posted() == 2);
  request = f.take();
  CHECK(request.wr_id == 1);
  CHECK(request.length == 0x100000001);
  REQUIRE(request.list().size() == 2);
  CHECK(request.list()[1].address == 0x2000);
  CHECK(request.list()[1].length == 2);
  CHECK(request.list()[1].lkey == 6);
  CHECK_FALSE(request.malformed);
  CHECK(f.ring->posted() == 1);
  REQUIRE(f.ring->take(request));  // into one that was used before
  CHECK(request.wr_id == 2);
  CHECK(request.length == 0);
  CHECK(request.list().empty());
  CHECK_FALSE(f.ring->take(request));
}

TEST_CASE("a receive slot is the program's again when it is taken") {
  const Fixture f;
  RingPoster program = f.program();
  std::uint64_t posted = 0;
  std::uint64_t seen = 0;
  for (int round = 0; round < 50; ++round) {
    while (program.post_receive(posted)) ++posted;
    CHECK(f.ring->posted() == 3);
    CHECK(f.take().wr_id == seen++);
    CHECK(f.ring->posted() == 2);
  }
}

TEST_CASE("clearing empties a queue pair's own ring, not a shared one") {
  for (const bool shared : {false, true}) {
    const Fixture f(3, 2, shared);
    RingPoster program = f.program();
    REQUIRE(program.post_receive(1));
    f.ring->clear();
    CHECK(f.ring->posted() == (shared ? 1 : 0));
    REQUIRE(program.post_receive(2));
    CHECK(f.take().wr_id == (shared ? 1 : 2));
  }
}

TEST_CASE("a resized ring holds what was posted, in order, and the old one nothing") {
  const Fixture f;
  RingPoster program = f.program();
  REQUIRE(program.post_receive(0));
  REQUIRE(program.post_receive(0));
  f.take();
  f.take();
  for (std::uint64_t i = 1; i <= 3; ++i) REQUIRE(program.post_receive(i, {{i, 10, 1}}));
  const auto resized = f.ring->resized(*f.memory, 5);
  REQUIRE(resized.has_value());
  ReceiveRing& other = **resized;
  CHECK(other.max_wr() == 7);
  CHECK(other.max_sge() == 2);
  CHECK(other.posted() == 3);
  CHECK(f.ring->posted() == 0);
  REQUIRE(RingPoster(other.area().bytes()).post_receive(4));
  ReceiveRequest request;
  for (std::uint64_t i = 1; i <= 4; ++i) {
    REQUIRE(other.take(request));
    CHECK(request.wr_id == i);
    CHECK(request.length == (i < 4 ? 10 : 0));
  }
  CHECK_FALSE(other.take(request));
}

TEST_CASE("a ring is not resized to less than what is posted") {
  const Fixture f;
  for (std::uint64_t i = 1; i <= 3; ++i) REQUIRE(f.program().post_receive(i));
  CHECK(f.ring->resized(*f.memory, 1).error() == EINVAL);
  CHECK(f.ring->resized(*f.memory, UINT32_MAX).error() == ENOMEM);
  CHECK(f.ring->posted() == 3);
  CHECK(f.ring->resized(*f.memory, 2).has_value());  // which makes 3
}

TEST_CASE("a receive list that is too long is malformed, and the ring goes on") {
  for (const std::uint32_t count : {3U, 33U, 1U << 28, 0x80000000U, 0xFFFFFFFFU}) {
    CAPTURE(count);
    const Fixture f;
    RingPoster program = f.program();
    rxe_recv_wqe wqe{};
    wqe.wr_id = 8;
    wqe.dma.num_sge = count;
    REQUIRE(program.post(wqe));
    REQUIRE(program.post_receive(9));
    const ReceiveRequest request = f.take();
    CHECK(request.malformed);
    CHECK(request.wr_id == 8);
    CHECK(request.length == 0);
    CHECK(request.list().empty());
    CHECK_FALSE(f.take().malformed);
  }
}

TEST_CASE("the rest of a receive WQE is not looked at") {
  const Fixture f;
  rxe_recv_wqe wqe{};
  wqe.reserved = wqe.padding = 0xFFFFFFFF;
  wqe.dma.length = wqe.dma.resid = wqe.dma.cur_sge = 0xFFFFFFFF;
  wqe.dma.sge_offset = wqe.dma.reserved = 0xFFFFFFFF;
  wqe.dma.num_sge = 1;
  const rxe_sge sge{0x1000, 4, 1};
  REQUIRE(f.program().post(wqe, std::as_bytes(std::span(&sge, 1))));
  const ReceiveRequest request = f.take();
  CHECK(request.length == 4);
  CHECK_FALSE(request.malformed);
}

TEST_CASE("a receive ring's producer index that jumps posts no more than it holds") {
  for (const std::uint32_t index : {3U, 4U, 5U, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU}) {
    CAPTURE(index);
    const Fixture f;
    f.program().producer().store(index);
    f.program().consumer().store(0xDEADBEEF);
    CHECK(f.ring->posted() == (index & 3));
    ReceiveRequest request;
    std::uint32_t taken = 0;
    while (f.ring->take(request)) REQUIRE(++taken <= f.ring->max_wr());
    CHECK(taken == (index & 3));
    if (taken > 0) CHECK(f.program().consumer().load() == (index & 3));
  }
}

TEST_CASE("a ring with a producer index that jumped is resized within bounds") {
  const Fixture f;
  f.program().producer().store(0xFFFFFFFF);
  const auto resized = f.ring->resized(*f.memory, 3);
  REQUIRE(resized.has_value());
  CHECK((*resized)->posted() == 3);
}

}  // namespace
}  // namespace urxe::verbs
