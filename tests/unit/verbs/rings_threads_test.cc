// A program on one thread, the device on another. An honest program uses the device's mapping,
// because ThreadSanitizer does not know that two addresses are one memory; a hostile one races on
// purpose, and has a mapping of its own.
#include <atomic>
#include <thread>

#include <catch2/catch.hpp>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/ring_program.h"
#include "verbs/rings/completion_ring.h"
#include "verbs/rings/receive_ring.h"
#include "verbs/rings/send_ring.h"

namespace urxe::verbs {
namespace {

constexpr std::uint64_t kCount = 20000;
constexpr std::uint32_t kHostileRounds = 100000;

// The key says whose the list is, so a list that is read too early or too late is seen.
rxe_sge sge_of(std::uint64_t wr_id) { return {wr_id * 16, 1, static_cast<__u32>(wr_id)}; }

template <typename Wqe>
void post_all(std::span<std::byte> ring) {
  test::RingPoster program(ring);
  for (std::uint64_t i = 0; i < kCount;) {
    Wqe wqe{};
    if constexpr (std::is_same_v<Wqe, rxe_send_wqe>) {
      wqe.wr.wr_id = i;
      wqe.wr.opcode = IB_UVERBS_WR_SEND;
    } else {
      wqe.wr_id = i;
    }
    wqe.dma.num_sge = 1;
    const rxe_sge sge = sge_of(i);
    if (program.post(wqe, std::as_bytes(std::span(&sge, 1)))) {
      ++i;
    } else {
      std::this_thread::yield();
    }
  }
}

TEST_CASE("a program posts sends while the device takes and retires them") {
  const auto memory = RingMemory::create().value();
  const auto ring = SendRing::create(*memory, {.max_wr = 7, .max_sge = 1}).value();
  std::jthread program(post_all<rxe_send_wqe>, ring->area().bytes());
  std::uint64_t taken = 0;
  std::uint64_t wrong = 0;
  while (taken < kCount) {
    std::uint32_t batch = 0;
    emulator::SendRequest request;
    while (batch < 3 && ring->take(request)) {
      const bool right = request.wr_id == taken && request.sges.size() == 1 &&
                         request.sges[0].lkey == sge_of(taken).lkey;
      wrong += right ? 0 : 1;
      ++taken;
      ++batch;
    }
    if (batch > 0) {
      ring->retire(batch);
    } else {
      std::this_thread::yield();
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("a program posts receives while the device takes them") {
  const auto memory = RingMemory::create().value();
  const auto ring = ReceiveRing::create(*memory, 7, 1, true).value();
  std::jthread program(post_all<rxe_recv_wqe>, ring->area().bytes());
  std::uint64_t taken = 0;
  std::uint64_t wrong = 0;
  emulator::ReceiveRequest request;
  while (taken < kCount) {
    if (!ring->take(request)) {
      std::this_thread::yield();
      continue;
    }
    const bool right = request.wr_id == taken && request.list().size() == 1 &&
                       request.list()[0].address == sge_of(taken).addr;
    wrong += right ? 0 : 1;
    ++taken;
  }
  CHECK(wrong == 0);
}

TEST_CASE("a program polls completions while the device pushes them") {
  const auto memory = RingMemory::create().value();
  const auto ring = CompletionRing::create(*memory, 7).value();
  std::uint64_t wrong = 0;
  std::jthread program([&] {
    test::RingPoller poller(ring->area().bytes());
    for (std::uint64_t polled = 0; polled < kCount;) {
      const auto wc = poller.poll();
      if (!wc) {
        std::this_thread::yield();
        continue;
      }
      wrong += wc->wr_id == polled && wc->byte_len == polled ? 0 : 1;
      ++polled;
    }
  });
  for (std::uint64_t i = 0; i < kCount;) {
    if (ring->push({.wr_id = i, .byte_count = static_cast<std::uint32_t>(i)})) {
      ++i;
    } else {
      std::this_thread::yield();
    }
  }
  program.join();
  CHECK(wrong == 0);
}

// Rewrites the lengths of all lists of a ring, from another thread, as long as it lives.
class Vandal {
 public:
  Vandal(const RingMemory& memory, const RingArea& area, std::size_t num_sge)
      : size_(area.size()), num_sge_(num_sge) {
    const int fd = memory.descriptor().value();
    void* const mapped = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                              static_cast<off_t>(area.offset()));
    close(fd);
    REQUIRE(mapped != MAP_FAILED);
    bytes_ = static_cast<std::byte*>(mapped);
    thread_ = std::jthread([this](const std::stop_token& stop) { rampage(stop); });
  }
  Vandal(const Vandal&) = delete;
  Vandal& operator=(const Vandal&) = delete;
  ~Vandal() {
    thread_.request_stop();
    thread_.join();
    munmap(bytes_, size_);
  }

  // The device waits for the first blow, so that it works on a ring that is being rewritten.
  void wait_for_start() const { started_.wait(false); }

 private:
  void rampage(const std::stop_token& stop) {
    const test::RingProgram program({bytes_, size_});
    while (!stop.stop_requested()) {
      flip_counts(program, 1);
      flip_counts(program, 0xFFFFFFFF);
      if (!started_.exchange(true)) started_.notify_all();
    }
  }
  void flip_counts(const test::RingProgram& program, std::uint32_t count) const {
    for (std::uint32_t i = 0; i <= program.header().index_mask; ++i) {
      auto* const num_sge = reinterpret_cast<__u32*>(program.element(i) + num_sge_);
      std::atomic_ref(*num_sge).store(count, std::memory_order_relaxed);
    }
  }

  std::size_t size_;
  std::size_t num_sge_;
  std::byte* bytes_ = nullptr;
  std::atomic<bool> started_{false};
  std::jthread thread_;
};

// As if everything had been posted: all elements but one.
void post_everything(const RingArea& area, std::uint32_t round) {
  const test::RingProgram program(area.bytes());
  program.producer().store(round * program.header().index_mask);
}

TEST_CASE("a program that rewrites its send ring meanwhile gets requests within bounds") {
  const auto memory = RingMemory::create().value();
  const auto ring = SendRing::create(*memory, {.max_wr = 7, .max_sge = 1}).value();
  const Vandal vandal(*memory, ring->area(), offsetof(rxe_send_wqe, dma.num_sge));
  vandal.wait_for_start();
  std::uint64_t wrong = 0;
  emulator::SendRequest request;
  for (std::uint32_t round = 1; round <= kHostileRounds; ++round) {
    post_everything(ring->area(), round);
    std::uint32_t taken = 0;
    for (; ring->take(request); ++taken) wrong += request.sges.size() <= 1 ? 0 : 1;
    wrong += taken == ring->actual().max_wr ? 0 : 1;
    ring->retire(taken);
  }
  CHECK(wrong == 0);
}

TEST_CASE("a program that rewrites its receive ring meanwhile gets requests within bounds") {
  const auto memory = RingMemory::create().value();
  const auto ring = ReceiveRing::create(*memory, 7, 1, true).value();
  const Vandal vandal(*memory, ring->area(), offsetof(rxe_recv_wqe, dma.num_sge));
  vandal.wait_for_start();
  std::uint64_t wrong = 0;
  emulator::ReceiveRequest request;
  for (std::uint32_t round = 1; round <= kHostileRounds; ++round) {
    post_everything(ring->area(), round);
    std::uint32_t taken = 0;
    for (; ring->take(request); ++taken) wrong += request.sge_count <= 1 ? 0 : 1;
    wrong += taken == ring->max_wr() ? 0 : 1;
  }
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace urxe::verbs
