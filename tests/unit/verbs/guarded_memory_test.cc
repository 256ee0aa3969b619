#include "verbs/runtime/guarded_memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/skip.h"
#include "verbs/runtime/fault_guard.h"

namespace urxe::verbs {
namespace {

// Two pages, of which only the first can be used.
class HalfMapped {
 public:
  HalfMapped()
      : pages_(static_cast<std::uint8_t*>(
            mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    munmap(pages_ + kPage, kPage);
  }
  HalfMapped(const HalfMapped&) = delete;
  HalfMapped& operator=(const HalfMapped&) = delete;
  ~HalfMapped() { munmap(pages_, kPage); }

  [[nodiscard]] std::uint8_t* end() const { return pages_ + kPage; }
  [[nodiscard]] std::uint64_t address_of_end() const {
    return reinterpret_cast<std::uintptr_t>(end());
  }

 private:
  static constexpr std::size_t kPage = 4096;
  std::uint8_t* pages_;
};

// A mapping of a file that has become shorter: SIGBUS.
class Truncated {
 public:
  Truncated() {
    const int fd = memfd_create("truncated", MFD_CLOEXEC);
    REQUIRE(ftruncate(fd, 4096) == 0);
    page_ = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(ftruncate(fd, 0) == 0);
    close(fd);
  }
  Truncated(const Truncated&) = delete;
  Truncated& operator=(const Truncated&) = delete;
  ~Truncated() { munmap(page_, 4096); }
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(page_); }

 private:
  void* page_ = nullptr;
};

// ThreadSanitizer runs handlers from its own, which it does not expect to be left by a jump.
bool cannot_fault() {
#ifdef __SANITIZE_THREAD__
  test::skip("ThreadSanitizer does not survive a fault guard's jump");
  return true;
#else
  return false;
#endif
}

sigjmp_buf after_fault;
volatile sig_atomic_t signal_seen = 0;

void program_handler(int signal) {
  signal_seen = signal;
  siglongjmp(after_fault, 1);
}

TEST_CASE("memory that is there is read and written") {
  REQUIRE(FaultGuard::arm(&::sigaction));
  GuardedMemory memory;
  std::array<std::uint8_t, 100> place{};
  std::array<std::uint8_t, 100> data{};
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(i + 1);
  const auto address = reinterpret_cast<std::uintptr_t>(place.data());
  for (const std::size_t size : {0, 1, 7, 8, 9, 100}) {
    place.fill(0);
    REQUIRE(memory.write(address, {data.data(), size}));
    CHECK(std::equal(data.begin(), data.begin() + static_cast<long>(size), place.begin()));
    CHECK((size == place.size() || place[size] == 0));
    std::array<std::uint8_t, 100> back{};
    REQUIRE(memory.read(address, {back.data(), size}));
    CHECK(std::equal(back.begin(), back.begin() + static_cast<long>(size), data.begin()));
  }
}

TEST_CASE("memory that is not there makes the call fail") {
  if (cannot_fault()) return;
  REQUIRE(FaultGuard::arm(&::sigaction));
  GuardedMemory memory;
  const HalfMapped half;
  std::array<std::uint8_t, 16> bytes{};
  CHECK(memory.read(half.address_of_end() - 16, bytes));
  CHECK_FALSE(memory.read(half.address_of_end() - 15, bytes));
  CHECK_FALSE(memory.write(half.address_of_end() - 8, bytes));
  CHECK_FALSE(memory.read(0, bytes));
  CHECK_FALSE(memory.write(0, bytes));
  CHECK_FALSE(memory.compare_swap(0, 0, 1).has_value());
  CHECK_FALSE(memory.fetch_add(0, 1).has_value());
  CHECK_FALSE(memory.store(0, 1));
  CHECK_FALSE(memory.compare_swap(half.address_of_end(), 0, 1).has_value());
  CHECK_FALSE(memory.fetch_add(half.address_of_end(), 1).has_value());
  CHECK_FALSE(memory.store(half.address_of_end(), 1));
  const Truncated truncated;
  CHECK_FALSE(memory.read(truncated.address(), bytes));
  CHECK_FALSE(memory.write(truncated.address(), bytes));
}

TEST_CASE("atomics return what was there before") {
  REQUIRE(FaultGuard::arm(&::sigaction));
  GuardedMemory memory;
  alignas(8) std::uint64_t word = 5;
  const auto address = reinterpret_cast<std::uintptr_t>(&word);
  CHECK(memory.compare_swap(address, 4, 9) == 5);
  CHECK(word == 5);
  CHECK(memory.compare_swap(address, 5, 9) == 5);
  CHECK(word == 9);
  CHECK(memory.fetch_add(address, ~std::uint64_t{0}) == 9);
  CHECK(word == 8);
  CHECK(memory.store(address, 1));
  CHECK(word == 1);
}

TEST_CASE("the program's own faults reach its handler, and guarded ones do not") {
  if (cannot_fault()) return;
  REQUIRE(FaultGuard::arm(&::sigaction));
  struct sigaction wanted {};
  struct sigaction before {};
  wanted.sa_handler = program_handler;
  FaultGuard::exchange_program_action(SIGSEGV, &wanted, &before);
  struct sigaction seen {};
  FaultGuard::exchange_program_action(SIGSEGV, nullptr, &seen);
  CHECK(seen.sa_handler == program_handler);
  const HalfMapped half;
  GuardedMemory memory;
  std::array<std::uint8_t, 8> bytes{};
  signal_seen = 0;
  CHECK_FALSE(memory.read(half.address_of_end(), bytes));
  CHECK(signal_seen == 0);
  if (sigsetjmp(after_fault, 1) == 0) {
    *const_cast<volatile std::uint8_t*>(half.end()) = 1;
  }
  CHECK(signal_seen == SIGSEGV);
  // And the guard works as before.
  CHECK_FALSE(memory.read(half.address_of_end(), bytes));
  FaultGuard::exchange_program_action(SIGSEGV, &before, nullptr);
}

TEST_CASE("every thread has faults of its own") {
  if (cannot_fault()) return;
  REQUIRE(FaultGuard::arm(&::sigaction));
  const HalfMapped half;
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      GuardedMemory memory;
      std::array<std::uint8_t, 8> bytes{};
      for (int round = 0; round < 1000; ++round) {
        if (!memory.read(half.address_of_end(), bytes)) ++failed;
        if (!memory.read(half.address_of_end() - 8, bytes)) failed = -1'000'000;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 4000);
}

TEST_CASE("a thread that blocks the signals of faults has them, too") {
  if (cannot_fault()) return;
  REQUIRE(FaultGuard::arm(&::sigaction));
  bool read = true;
  std::thread([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    const HalfMapped half;
    const Truncated truncated;
    std::array<std::uint8_t, 8> bytes{};
    GuardedMemory memory;
    read = memory.read(half.address_of_end(), bytes) || memory.read(truncated.address(), bytes);
  }).join();
  CHECK_FALSE(read);
}

// As when a signal stops an access, and its handler polls another device.
TEST_CASE("an access within an access leaves the outer one its way out") {
  if (cannot_fault()) return;
  REQUIRE(FaultGuard::arm(&::sigaction));
  const HalfMapped half;
  for (const bool inner_faults : {false, true}) {
    bool inner = false;
    std::uint8_t byte = 0;
    const bool outer = FaultGuard::run([&] {
      inner = FaultGuard::run([&] {
        byte = *const_cast<const volatile std::uint8_t*>(half.end() - (inner_faults ? 0 : 1));
      });
      byte = *const_cast<const volatile std::uint8_t*>(half.end());
    });
    CHECK(inner != inner_faults);
    CHECK_FALSE(outer);
  }
}

TEST_CASE("a signal of faults that somebody sends is ignored if the program says so") {
  REQUIRE(FaultGuard::arm(&::sigaction));
  struct sigaction ignore {};
  struct sigaction before {};
  ignore.sa_handler = SIG_IGN;
  for (const int signal : {SIGSEGV, SIGBUS}) {
    FaultGuard::exchange_program_action(signal, &ignore, &before);
    CHECK(raise(signal) == 0);
    FaultGuard::exchange_program_action(signal, &before, nullptr);
  }
}

}  // namespace
}  // namespace urxe::verbs
