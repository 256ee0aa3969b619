// Work requests that end with a status other than success.
#include <unistd.h>

#include "tests/compat/checker/bench.h"
#include "tests/compat/checker/check.h"

namespace checker {
namespace {

constexpr std::size_t kSize = 8192;
constexpr int kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

struct Bench {
  const Device& device;
  const Options& options;
  Verdicts& verdicts;
  Memory all{device.pd(), kSize, kAllAccess};
  Memory readable{device.pd(), kSize, IBV_ACCESS_REMOTE_READ};  // and nothing else
  Memory writable{device.pd(), kSize, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};

  // One request to a good peer that has posted a receive; how it ends.
  void request(const char* name, const Request& request,
               std::initializer_list<ibv_wc_status> expected, const PairSettings& settings = {});
  void check_memory(const char* name) const;
};

void Bench::check_memory(const char* name) const {
  for (const Memory* memory : {&all, &readable, &writable}) memory->check(name);
}

void Bench::request(const char* name, const Request& request,
                    std::initializer_list<ibv_wc_status> expected, const PairSettings& settings) {
  LocalPair pair(device, options, settings);
  pair.post(request);
  verdicts.ended(name, pair.active_end(name), expected);
  check_memory(name);
  // A queue pair in error flushes what is posted to it.
  pair.post({.opcode = IBV_WR_RDMA_WRITE, .list = {}});
  verdicts.expect_no_sentence();
  verdicts.ended("  the next request", pair.active_end(name), {IBV_WC_WR_FLUSH_ERR});
}

Request rdma(ibv_wr_opcode opcode, std::vector<ibv_sge> list, const Memory& target,
             std::size_t offset = 0) {
  return {.opcode = opcode,
          .list = std::move(list),
          .remote_address = target.address(offset),
          .rkey = target.rkey()};
}

void try_local_keys(Bench& b) {
  std::vector<ibv_sge> list = b.all.list({{0, 100}});
  list[0].lkey ^= 0x5A5A00;
  b.request("a bad lkey", rdma(IBV_WR_RDMA_WRITE, list, b.all), {IBV_WC_LOC_PROT_ERR});
  list = b.all.list({{kSize - 100, 100}});
  list[0].length = 101;
  b.request("a local byte out of bounds", rdma(IBV_WR_RDMA_WRITE, list, b.all),
            {IBV_WC_LOC_PROT_ERR});
  b.request("READ into memory without LOCAL_WRITE",
            rdma(IBV_WR_RDMA_READ, b.readable.list({{0, 100}}), b.all), {IBV_WC_LOC_PROT_ERR});
}

void try_remote_keys(Bench& b) {
  const std::vector<ibv_sge> list = b.all.list({{0, 100}});
  Request request = rdma(IBV_WR_RDMA_WRITE, list, b.all);
  request.rkey ^= 0x5A5A00;
  b.request("WRITE with a bad rkey", request, {IBV_WC_REM_ACCESS_ERR});
  request.opcode = IBV_WR_RDMA_READ;
  b.request("READ with a bad rkey", request, {IBV_WC_REM_ACCESS_ERR});
  b.request("WRITE one byte out of bounds", rdma(IBV_WR_RDMA_WRITE, list, b.all, kSize - 99),
            {IBV_WC_REM_ACCESS_ERR});
  b.request("READ one byte out of bounds", rdma(IBV_WR_RDMA_READ, list, b.all, kSize - 99),
            {IBV_WC_REM_ACCESS_ERR});
  request = rdma(IBV_WR_RDMA_WRITE, list, b.all);
  --request.remote_address;
  b.request("WRITE one byte before", request, {IBV_WC_REM_ACCESS_ERR});
  b.request("WRITE to memory without REMOTE_WRITE", rdma(IBV_WR_RDMA_WRITE, list, b.readable),
            {IBV_WC_REM_ACCESS_ERR});
  b.request("READ of memory without REMOTE_READ", rdma(IBV_WR_RDMA_READ, list, b.writable),
            {IBV_WC_REM_ACCESS_ERR});
  const std::vector<ibv_sge> word = b.all.list({{0, 8}});
  b.request("FETCH_ADD on memory without REMOTE_ATOMIC",
            rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, word, b.writable), {IBV_WC_REM_ACCESS_ERR});
}

void try_foreign_keys(Bench& b) {
  ibv_pd* pd = exists(ibv_alloc_pd(b.device.context()), "ibv_alloc_pd");
  {
    const Memory foreign(pd, kSize, kAllAccess);
    b.request("an lkey of another PD", rdma(IBV_WR_RDMA_WRITE, foreign.list({{0, 100}}), b.all),
              {IBV_WC_LOC_PROT_ERR});
    b.request("an rkey of another PD", rdma(IBV_WR_RDMA_WRITE, b.all.list({{0, 100}}), foreign),
              {IBV_WC_REM_ACCESS_ERR});
    foreign.check("keys of another PD");
  }
  succeeds(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
}

void try_queue_pair_access(Bench& b) {
  const std::vector<ibv_sge> list = b.all.list({{0, 8}});
  const PairSettings closed{.passive_access = 0};
  b.request("WRITE to a QP without REMOTE_WRITE", rdma(IBV_WR_RDMA_WRITE, list, b.all),
            {IBV_WC_REM_INV_REQ_ERR}, closed);
  b.request("READ from a QP without REMOTE_READ", rdma(IBV_WR_RDMA_READ, list, b.all),
            {IBV_WC_REM_INV_REQ_ERR}, closed);
  b.request("FETCH_ADD to a QP without REMOTE_ATOMIC",
            rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, list, b.all), {IBV_WC_REM_INV_REQ_ERR}, closed);
  b.request("a peer with a smaller path MTU",
            rdma(IBV_WR_RDMA_WRITE, b.all.list({{0, 3000}}), b.all, 4096), {IBV_WC_REM_INV_REQ_ERR},
            {.active_mtu = IBV_MTU_1024, .passive_mtu = IBV_MTU_512});
  b.request("a peer with a larger path MTU",
            rdma(IBV_WR_RDMA_WRITE, b.all.list({{0, 3000}}), b.all, 4096), {IBV_WC_REM_INV_REQ_ERR},
            {.active_mtu = IBV_MTU_512, .passive_mtu = IBV_MTU_1024});
}

void try_receives(Bench& b) {
  b.request("SEND without a receive, and no patience", {.list = b.all.list({{0, 100}})},
            {IBV_WC_RNR_RETRY_EXC_ERR}, {.rnr_retry = 0});
  {
    LocalPair pair(b.device, b.options, {});
    pair.post_receive(b.all.list({{4096, 99}}));
    pair.post({.list = b.all.list({{0, 100}})});
    const char* name = "SEND of one byte more than the receive takes";
    b.verdicts.ended(name, pair.active_end(name), {IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR});
    b.verdicts.expect_no_sentence();
    b.verdicts.ended("  its receive", pair.passive_end(name), {IBV_WC_LOC_LEN_ERR});
  }
  LocalPair pair(b.device, b.options, {});
  pair.post_receive(b.readable.list({{0, 100}}));
  pair.post({.list = b.all.list({{0, 100}})});
  const char* name = "SEND into memory without LOCAL_WRITE";
  b.verdicts.ended(name, pair.active_end(name), {IBV_WC_REM_OP_ERR});
  b.verdicts.expect_no_sentence();
  b.verdicts.ended("  its receive", pair.passive_end(name), {IBV_WC_LOC_PROT_ERR});
  b.check_memory(name);
}

void try_dead_peers(Bench& b) {
  LocalPair pair(b.device, b.options, {});
  for (int i = 0; i < 8; ++i) pair.post_receive(b.all.list({{4096, 100}}));
  pair.destroy_passive();
  const char* name = "a peer whose QP was destroyed with receives in its queue";
  pair.post({.list = b.all.list({{0, 100}})});
  b.verdicts.ended(name, pair.active_end(name), {IBV_WC_RETRY_EXC_ERR});
  // Work is under way when these die.
  for (int i = 0; i < 20; ++i) {
    LocalPair busy(b.device, b.options, {});
    for (int j = 0; j < 8; ++j)
      busy.post(
          rdma(j % 2 == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, b.all.list({{0, 4000}}), b.all));
  }
  b.verdicts.holds("QPs may be destroyed with work under way", true);
}

}  // namespace

void try_bad_work(const Device& device, const Options& options, Verdicts& verdicts) {
  Bench bench{device, options, verdicts};
  try_local_keys(bench);
  try_remote_keys(bench);
  try_foreign_keys(bench);
  try_queue_pair_access(bench);
  try_receives(bench);
  try_dead_peers(bench);
}

}  // namespace checker
