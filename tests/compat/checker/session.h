// One thread's conversation with its counterpart: every case in both directions.
#pragma once

#include <memory>
#include <vector>

#include "tests/compat/checker/cases.h"
#include "tests/compat/checker/channel.h"
#include "tests/compat/checker/memory.h"
#include "tests/compat/checker/verbs.h"

namespace checker {

class Session {
 public:
  Session(const Device& device, const Options& options, Channel channel);

  void run();
  [[nodiscard]] std::size_t cases() const { return done_; }

 private:
  // Where the peer's memory is, and its key.
  struct Remote {
    std::uint64_t address;
    std::uint32_t rkey;
    std::uint32_t spare;
  };
  // What both ends know of a case.
  struct Plan {
    Pieces local;   // of the active end
    Pieces target;  // of the passive end: receive list, or one piece for READ, WRITE, atomics
    std::vector<std::uint8_t> data;
    std::uint32_t immediate;
    std::uint64_t original, operand, swap;  // of atomics
  };

  void connect();
  void run_direction(bool active);
  void pause();
  void print_counters() const;
  void run_case(const Case& c, bool active);
  [[nodiscard]] Plan plan(const Case& c, std::size_t room) const;
  void act(const Case& c, const Plan& plan);
  void expect_answer(const Case& c, const Plan& plan);
  void prepare(const Case& c, const Plan& plan);
  void verify(const Case& c, const Plan& plan);
  void check_receive(const Case& c, const Plan& plan);
  void wait_for_write(const Case& c);
  void check_header_place(const Case& c);

  // Many requests at once (burst.cc).
  void run_burst(std::uint64_t seed, bool active);
  void post_burst(std::uint64_t seed, std::size_t index);
  void await_burst(std::uint64_t seed);
  void prepare_burst(std::uint64_t seed);
  void verify_burst(std::uint64_t seed);

  // Requests that depend on each other (chain.cc).
  void run_chain(bool active);
  void act_chain();

  // A memory window, and SEND_WITH_INV (invalidation.cc).
  void run_invalidation(bool active);
  void use_window(QueuePair& qp);
  void own_window(QueuePair& qp);

  // Windows of both types that their owner ends (windows.cc).
  struct Way;
  // UD has none, nor has librxe's extended API for UC.
  [[nodiscard]] bool has_windows() const {
    if (options_.transport == IBV_QPT_UC) return !options_.extended && !options_.on_demand;
    return options_.transport == IBV_QPT_RC && !options_.on_demand;
  }
  void run_windows(bool active);
  void use_lent_window(QueuePair& qp, const Way& way);
  void lend_window(QueuePair& qp, ibv_mw* window, const Way& way);
  [[nodiscard]] std::uint32_t bind(QueuePair& qp, ibv_mw* window, std::size_t length);
  void end_window(QueuePair& qp, ibv_mw* window, std::uint32_t key);

  // Pages that go away, with on-demand paging (paging.cc).
  struct Visit;
  void run_paging(bool active);
  void visit_pages(const Visit& visit);
  void lend_pages(const Visit& visit, Memory& pages, std::uint32_t key);

  [[nodiscard]] Memory& memory(const Case& c) { return c.size > 65536 ? *large_ : *small_; }
  [[nodiscard]] const Remote& remote(const Case& c) const {
    return c.size > 65536 ? remote_large_ : remote_small_;
  }
  [[nodiscard]] QueuePair& queue_pair(const Case& c) { return *qps_[c.number % qps_.size()]; }
  [[nodiscard]] const Address& peer(const Case& c) const { return peers_[c.number % qps_.size()]; }
  void meet() { channel_.meet(++step_); }

  const Device& device_;
  const Options& options_;
  Channel channel_;
  std::unique_ptr<CompletionQueue> cq_;
  std::unique_ptr<SharedReceiveQueue> srq_;
  std::vector<std::unique_ptr<QueuePair>> qps_;
  std::vector<Address> peers_;
  std::unique_ptr<Memory> small_;
  std::unique_ptr<Memory> large_;
  Remote remote_small_{};
  Remote remote_large_{};
  std::uint32_t step_ = 0;
  std::size_t done_ = 0;
};

}  // namespace checker
