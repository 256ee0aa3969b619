// As many objects as a large program has, in one process: made, used, destroyed, and then memory
// and descriptors are what they were: verbs_many [--device NAME] [--gid INDEX] [QPS CQS MRS].
// Twice, because what the first round leaves behind for good (code, tables that grew) the second
// must not add to. Status 0: all was right.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include <malloc.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/compat/checker/bench.h"
#include "tests/compat/checker/check.h"

namespace checker {
namespace {

constexpr std::size_t kSlice = 64;               // bytes of a region
constexpr std::size_t kSourcePorts = 16;         // sockets that an address may need besides
constexpr std::uint64_t kMayStay = 16ULL << 20;  // bytes, of RSS: libraries, and their tables
constexpr std::uint64_t kMayGrow = 4ULL << 20;   // bytes, of RSS in the second round
constexpr std::uint64_t kBlock = 512;            // bytes, of st_blocks

struct Counts {
  std::size_t queue_pairs = 10000;
  std::size_t completion_queues = 10000;
  std::size_t regions = 100000;
};

// What a process has of the machine.
struct Usage {
  std::uint64_t resident = 0;  // bytes
  std::uint64_t shared = 0;    // bytes of the file behind the rings
  std::size_t heap = 0;        // bytes that malloc gave out
  std::size_t descriptors = 0;
};

Usage usage(int rings_fd) {
  malloc_trim(0);
  Usage now;
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  now.resident = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  // Not by the C library: that would tell of a character device.
  struct stat rings {};
  if (syscall(SYS_fstat, rings_fd, &rings) == 0)
    now.shared = static_cast<std::uint64_t>(rings.st_blocks) * kBlock;
  now.heap = mallinfo2().uordblks;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++now.descriptors;
  return now;
}

void print(const char* when, const Usage& now) {
  std::printf("%-14s RSS %8.1f MiB, rings %8.1f MiB, heap %8.1f MiB, %zu descriptors\n", when,
              static_cast<double>(now.resident) / (1 << 20),
              static_cast<double>(now.shared) / (1 << 20),
              static_cast<double>(now.heap) / (1 << 20), now.descriptors);
}

class Stopwatch {
 public:
  void lap(const char* what, std::size_t count) {
    const auto now = std::chrono::steady_clock::now();
    const double microseconds = std::chrono::duration<double, std::micro>(now - start_).count();
    std::printf("%-28s %7zu in %6.2f s, %.1f us each\n", what, count, microseconds / 1e6,
                microseconds / static_cast<double>(count));
    std::fflush(stdout);
    start_ = std::chrono::steady_clock::now();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class Crowd {
 public:
  Crowd(const Device& device, const Options& options, const Counts& counts)
      : device_(device), options_(options), memory_(counts.regions * kSlice) {
    Stopwatch watch;
    for (std::size_t i = 0; i < counts.completion_queues; ++i)
      queues_.push_back(
          exists(ibv_create_cq(device.context(), 8, nullptr, nullptr, 0), "ibv_create_cq"));
    watch.lap("CQs made", queues_.size());
    for (std::size_t i = 0; i < counts.queue_pairs; ++i) add_queue_pair();
    watch.lap("QPs made", pairs_.size());
    for (std::size_t i = 0; i + 1 < pairs_.size(); i += 2) {
      connect(pairs_[i], pairs_[i + 1]->qp_num);
      connect(pairs_[i + 1], pairs_[i]->qp_num);
    }
    watch.lap("QPs connected", pairs_.size());
    for (std::size_t i = 0; i < counts.regions; ++i)
      regions_.push_back(exists(ibv_reg_mr(device.pd(), slice(i), kSlice, kAccess), "ibv_reg_mr"));
    watch.lap("MRs made", regions_.size());
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  ~Crowd() {
    Stopwatch watch;
    for (ibv_mr* region : regions_) succeeds(ibv_dereg_mr(region), "ibv_dereg_mr");
    watch.lap("MRs gone", regions_.size());
    for (ibv_qp* pair : pairs_) succeeds(ibv_destroy_qp(pair), "ibv_destroy_qp");
    watch.lap("QPs gone", pairs_.size());
    for (ibv_cq* queue : queues_) succeeds(ibv_destroy_cq(queue), "ibv_destroy_cq");
    watch.lap("CQs gone", queues_.size());
  }

  // Every region is read and its neighbour written, every queue pair sends or receives.
  void use() {
    Stopwatch watch;
    for (std::size_t i = 0; i + 1 < regions_.size(); i += 2) {
      *slice(i) = static_cast<std::uint8_t>(i % 251 + 1);
      write(pairs_[i % pairs_.size() / 2 * 2], i);
      if (*slice(i + 1) != *slice(i)) fail("region %zu was not written", i + 1);
    }
    watch.lap("regions written", regions_.size() / 2);
  }

 private:
  static constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

  std::uint8_t* slice(std::size_t number) { return memory_.data() + number * kSlice; }

  void add_queue_pair() {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = queues_[pairs_.size() % queues_.size()];
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {.max_send_wr = 4,
                      .max_recv_wr = 4,
                      .max_send_sge = 1,
                      .max_recv_sge = 1,
                      .max_inline_data = 0};
    pairs_.push_back(exists(ibv_create_qp(device_.pd(), &attributes), "ibv_create_qp"));
  }

  void connect(ibv_qp* qp, std::uint32_t peer) {
    for (Step step : {to_init(IBV_ACCESS_REMOTE_WRITE),
                      to_rtr(device_, options_, peer, IBV_MTU_1024), to_rts({})})
      succeeds(ibv_modify_qp(qp, &step.attributes, step.mask), "ibv_modify_qp");
  }

  void write(ibv_qp* qp, std::size_t number) {
    ibv_sge piece{.addr = reinterpret_cast<std::uintptr_t>(slice(number)),
                  .length = kSlice,
                  .lkey = regions_[number]->lkey};
    ibv_send_wr wr{};
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {.remote_addr = reinterpret_cast<std::uintptr_t>(slice(number + 1)),
                  .rkey = regions_[number + 1]->rkey};
    ibv_send_wr* bad = nullptr;
    succeeds(ibv_post_send(qp, &wr, &bad), "ibv_post_send");
    ibv_wc completion{};
    const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (ibv_poll_cq(qp->send_cq, 1, &completion) == 0)
      if (std::chrono::steady_clock::now() > late) fail("no completion of region %zu", number);
    if (completion.status != IBV_WC_SUCCESS)
      fail("region %zu: %s", number, ibv_wc_status_str(completion.status));
  }

  const Device& device_;
  const Options& options_;
  std::vector<std::uint8_t> memory_;
  std::vector<ibv_cq*> queues_;
  std::vector<ibv_qp*> pairs_;
  std::vector<ibv_mr*> regions_;
};

Usage round(const Device& device, const Options& options, const Counts& counts) {
  {
    Crowd crowd(device, options, counts);
    crowd.use();
    print("all there:", usage(device.context()->cmd_fd));
  }
  const Usage after = usage(device.context()->cmd_fd);
  print("all gone:", after);
  return after;
}

void work(const Options& options, const Counts& counts) {
  const Device device(options);
  const Usage before = usage(device.context()->cmd_fd);
  print("open:", before);
  const Usage first = round(device, options, counts);
  const Usage second = round(device, options, counts);
  if (first.descriptors > before.descriptors + kSourcePorts) fail("descriptors are left over");
  if (second.descriptors > first.descriptors) fail("descriptors pile up");
  if (first.shared != 0 || second.shared != 0) fail("the rings' memory is not given back");
  if (second.resident > first.resident + kMayGrow) fail("memory piles up");
}

int run(const Options& options, const Counts& counts) {
  // What is found in sysfs may stay.
  ibv_free_device_list(exists(ibv_get_device_list(nullptr), "ibv_get_device_list"));
  const Usage before = usage(-1);
  print("before:", before);
  work(options, counts);
  const Usage after = usage(-1);
  print("closed:", after);
  if (after.descriptors > before.descriptors) fail("the device leaves descriptors behind");
  if (after.resident > before.resident + kMayStay) fail("the device leaves memory behind");
  return 0;
}

}  // namespace
}  // namespace checker

int main(int argc, char** argv) {
  checker::Counts counts;
  if (argc > 3) {
    counts = {.queue_pairs = std::strtoul(argv[argc - 3], nullptr, 0),
              .completion_queues = std::strtoul(argv[argc - 2], nullptr, 0),
              .regions = std::strtoul(argv[argc - 1], nullptr, 0)};
    argc -= 3;
  }
  return checker::run(checker::read_options(argc, argv), counts);
}
