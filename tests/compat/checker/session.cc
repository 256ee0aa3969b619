#include "tests/compat/checker/session.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>

#include <arpa/inet.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/compat/checker/check.h"
#include "tests/compat/checker/patience.h"

namespace checker {
namespace {

constexpr std::size_t kLargeMemory = kLargeMessage + 65536;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                        IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
// Where the header of a datagram goes: the memory's end, far from the messages.
constexpr std::size_t kHeaderPlace = kSmallMemory - 2 * kGrh;

ibv_wc_opcode completion_of(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    default:
      return IBV_WC_SEND;
  }
}

}  // namespace

Session::Session(const Device& device, const Options& options, Channel channel)
    : device_(device), options_(options), channel_(std::move(channel)) {
  cq_ = std::make_unique<CompletionQueue>(
      device, 2 * kMaxWr * static_cast<int>(options.queue_pairs), options.extended, options.events);
  if (options.shared_receive) {
    srq_ = std::make_unique<SharedReceiveQueue>(
        device.pd(), kMaxWr, static_cast<std::uint32_t>(device.limits().max_srq_sge));
  }
  int access = options.transport == IBV_QPT_RC
                   ? kAccess
                   : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND;
  if (options.on_demand) access = (access & ~IBV_ACCESS_MW_BIND) | IBV_ACCESS_ON_DEMAND;
  small_ = std::make_unique<Memory>(device.pd(), kSmallMemory, access);
  large_ = std::make_unique<Memory>(device.pd(), options.brief ? 65544 : kLargeMemory, access);
  connect();
}

void Session::connect() {
  remote_small_ = channel_.exchange(Remote{small_->address(0), small_->rkey(), 0});
  remote_large_ = channel_.exchange(Remote{large_->address(0), large_->rkey(), 0});
  for (unsigned i = 0; i < options_.queue_pairs; ++i) {
    qps_.push_back(
        std::make_unique<QueuePair>(device_, options_, *cq_, srq_ ? srq_->get() : nullptr));
    peers_.push_back(channel_.exchange(qps_.back()->address()));
    qps_.back()->connect(peers_.back());
  }
  meet();
}

void Session::run() {
  for (const bool active : {!options_.is_server(), options_.is_server()}) run_direction(active);
  if (!options_.pause.empty()) {
    pause();
    for (const bool active : {!options_.is_server(), options_.is_server()}) run_direction(active);
  }
  // What is still under way when this end ends would make the other end's requests fail.
  meet();
}

// Connected, and at rest, until somebody opens the FIFO for writing.
void Session::pause() {
  meet();
  for (const auto& qp : qps_) std::printf("QP 0x%06x\n", qp->get()->qp_num);
  print_counters();
  std::printf("pause\n");
  std::fflush(stdout);
  close(open(options_.pause.c_str(), O_RDONLY));
  print_counters();
}

void Session::print_counters() const {
  const std::string port = "/sys/class/infiniband/" + options_.device + "/ports/1/";
  for (const char* name : {"counters/port_rcv_errors", "counters/port_rcv_switch_relay_errors",
                           "counters/excessive_buffer_overrun_errors", "hw_counters/sent_pkts"}) {
    std::string value;
    std::getline(std::ifstream(port + name), value);
    std::printf("%s %s\n", name, value.c_str());
  }
}

void Session::run_direction(bool active) {
  const std::size_t datagram = 128U << device_.port().active_mtu;
  for (const Case& c : all_cases(options_, datagram)) run_case(c, active);
  if (has_windows()) run_windows(active);
  if (options_.transport != IBV_QPT_RC) return;
  if (options_.on_demand) run_paging(active);
  for (std::uint64_t i = 0; i < (options_.brief ? 1 : 5); ++i)
    run_burst(7919 * options_.seed + i, active);
  run_chain(active);
  if (!options_.on_demand) run_invalidation(active);
}

Session::Plan Session::plan(const Case& c, std::size_t room) const {
  Dice dice(c.seed);
  Plan plan{};
  plan.local = lay_out(dice, c.size, c.sges, 0, room);
  // The passive end's memory is its own, so the same places may be used again there.
  plan.target = lay_out(dice, c.size, c.is_send() ? c.sges : 1, 0, room);
  plan.data = pattern(c.seed, c.size);
  plan.immediate = htonl(static_cast<std::uint32_t>(c.seed));
  if (!c.is_atomic()) return plan;
  plan.target = {{8 * dice.below(1000), 8}};
  plan.original = dice.below(1U << 30) * 0x100000001ULL;
  plan.operand = plan.original + dice.below(2);  // CMP_SWAP hits or misses; FETCH_ADD adds it
  plan.swap = dice.below(1U << 30) * 0x300000005ULL;
  return plan;
}

void Session::run_case(const Case& c, bool active) {
  const Plan p = plan(c, memory(c).size());
  if (!active) prepare(c, p);
  if (active && !c.is_atomic() && c.opcode != IBV_WR_RDMA_READ) memory(c).write(p.local, p.data);
  meet();
  if (active)
    act(c, p);
  else if (c.takes_receive())
    check_receive(c, p);
  meet();
  if (!active) verify(c, p);
  ++done_;
}

void Session::act(const Case& c, const Plan& plan) {
  Request request{.wr_id = c.seed,
                  .opcode = c.opcode,
                  .list = memory(c).list(plan.local),
                  .imm_data = plan.immediate,
                  .rkey = remote(c).rkey,
                  .compare_add = plan.operand,
                  .swap = plan.swap};
  if (!plan.target.empty()) request.remote_address = remote(c).address + plan.target[0].offset;
  if (c.is_inline) request.flags |= IBV_SEND_INLINE;
  queue_pair(c).post({request});
  // What is posted inline may be overwritten at once.
  if (c.is_inline) memory(c).write(plan.local, pattern(~c.seed, c.size));
  const Done done = cq_->wait(c.name());
  if (done.status != IBV_WC_SUCCESS)
    fail("%s: %s", c.name().c_str(), ibv_wc_status_str(done.status));
  if (done.wr_id != c.seed || done.opcode != completion_of(c.opcode) ||
      done.qp_num != queue_pair(c).get()->qp_num)
    fail("%s: the completion is of another request", c.name().c_str());
  expect_answer(c, plan);
  memory(c).check(c.name() + ", active end");
}

void Session::expect_answer(const Case& c, const Plan& plan) {
  if (c.opcode == IBV_WR_RDMA_READ) memory(c).expect(plan.local, plan.data);
  if (c.is_atomic()) memory(c).expect(plan.local, bytes_of(plan.original));
}

void Session::prepare(const Case& c, const Plan& plan) {
  if (c.opcode == IBV_WR_RDMA_READ) memory(c).write(plan.target, plan.data);
  if (c.is_atomic()) memory(c).write(plan.target, bytes_of(plan.original));
  if (!c.takes_receive()) return;
  std::vector<ibv_sge> list;
  if (c.is_send()) list = memory(c).list(plan.target);
  if (options_.transport == IBV_QPT_UD)
    list.insert(list.begin(), small_->list({{kHeaderPlace, kGrh}})[0]);
  queue_pair(c).post_receive(c.seed, list);
}

void Session::check_receive(const Case& c, const Plan& plan) {
  const Done done = cq_->wait(c.name());
  if (done.status != IBV_WC_SUCCESS)
    fail("%s: the receive: %s", c.name().c_str(), ibv_wc_status_str(done.status));
  const std::size_t header = options_.transport == IBV_QPT_UD ? kGrh : 0;
  const ibv_wc_opcode opcode = c.is_send() ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
  if (done.opcode != opcode || done.wr_id != c.seed || done.byte_len != c.size + header ||
      done.qp_num != queue_pair(c).get()->qp_num)
    fail("%s: receive completion: opcode %d, wr_id %llu, %u bytes", c.name().c_str(), done.opcode,
         static_cast<unsigned long long>(done.wr_id), done.byte_len);
  const bool immediate = (done.flags & IBV_WC_WITH_IMM) != 0;
  if (immediate != c.has_immediate() || (immediate && done.imm_data != plan.immediate))
    fail("%s: immediate data %d %08x", c.name().c_str(), immediate, done.imm_data);
  if (header == 0) return;
  if (done.src_qp != peer(c).qpn || (done.flags & IBV_WC_GRH) == 0)
    fail("%s: from QP 0x%06x, flags 0x%x", c.name().c_str(), done.src_qp, done.flags);
  check_header_place(c);
}

// A datagram is preceded by an IPv6 header, or by 20 bytes of anything and an IPv4 header.
void Session::check_header_place(const Case& c) {
  const ibv_gid from = peer(c).gid;
  const ibv_gid to = device_.gid();
  std::vector<std::uint8_t> header(kGrh);
  std::memcpy(header.data(), reinterpret_cast<const void*>(small_->address(kHeaderPlace)), kGrh);
  const bool v4 = header[0] >> 4 != 6;
  const std::size_t at = v4 ? 32 : 8;
  const std::size_t length = v4 ? 4 : 16;
  if (std::memcmp(&header[at], from.raw + 16 - length, length) != 0 ||
      std::memcmp(&header[at + length], to.raw + 16 - length, length) != 0)
    fail("%s: the header in front of the datagram has other addresses", c.name().c_str());
  small_->expect({{kHeaderPlace, kGrh}}, header);
}

void Session::verify(const Case& c, const Plan& plan) {
  if (c.is_atomic()) {
    const bool add = c.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    const std::uint64_t miss = plan.original;
    const std::uint64_t swapped = plan.operand == plan.original ? plan.swap : miss;
    memory(c).expect(plan.target, bytes_of(add ? plan.original + plan.operand : swapped));
  } else if (c.opcode != IBV_WR_RDMA_READ) {
    memory(c).expect(plan.target, plan.data);
  }
  if (options_.transport == IBV_QPT_UC && !c.takes_receive()) wait_for_write(c);
  memory(c).check(c.name() + ", passive end");
}

// A WRITE on an unreliable connection is complete for its sender before it has arrived.
void Session::wait_for_write(const Case& c) {
  const Deadline deadline;
  while (!memory(c).is_as_expected() && !deadline.passed())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace checker
