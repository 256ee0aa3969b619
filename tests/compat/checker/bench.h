// What the cases of bad input share: two connected queue pairs in one process, and the verdicts.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>

#include "tests/compat/checker/memory.h"
#include "tests/compat/checker/verbs.h"

namespace checker {

// Counts what is not as expected, and looks for the sentence that explains it in urxe's log.
class Verdicts {
 public:
  // `log`: the file of URXE_LOG; empty: sentences are not looked for.
  explicit Verdicts(std::string log) : log_(std::move(log)) {}

  // A verb returned an errno (0: success), one of those.
  void refused(const char* name, int error, std::initializer_list<int> expected);
  // A completion has one of these statuses.
  void ended(const char* name, const Done& done, std::initializer_list<ibv_wc_status> expected);
  // Something else that must be; nothing has to be explained.
  void holds(const char* name, bool is_so);
  // The same, and there is a sentence about it.
  void holds_and_is_told(const char* name, bool is_so);
  // libibverbs or librxe refuses the next thing by itself, so that nobody can explain it.
  void expect_no_sentence() { wants_sentence_ = false; }

  [[nodiscard]] int failures() const { return failures_; }

 private:
  void judge(const char* name, const std::string& outcome, bool good);
  [[nodiscard]] std::string new_sentence();

  const std::string log_;
  std::size_t read_ = 0;  // bytes of the log
  bool wants_sentence_ = true;
  int failures_ = 0;
};

// How a pair of queue pairs differs from a good one.
struct PairSettings {
  unsigned passive_access =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  ibv_mtu active_mtu = IBV_MTU_1024;
  ibv_mtu passive_mtu = IBV_MTU_1024;
  std::uint8_t rnr_retry = 7;
  std::uint8_t retry_count = 1;
  std::uint8_t timeout = 12;  // 17 ms
};

// The first of `mask` that ibv_modify_qp takes on the way up.
struct Step {
  ibv_qp_attr attributes;
  int mask;
};

// Two connected RC queue pairs on one device; the first is active.
class LocalPair {
 public:
  LocalPair(const Device& device, const Options& options, const PairSettings& settings);
  LocalPair(const LocalPair&) = delete;
  LocalPair& operator=(const LocalPair&) = delete;
  ~LocalPair();

  // Posts to the active queue pair; fails if libibverbs refuses it.
  void post(const Request& request);
  void post_receive(std::vector<ibv_sge> list);
  [[nodiscard]] Done active_end(const char* what) { return active_cq_.wait(what); }
  [[nodiscard]] Done passive_end(const char* what) { return passive_cq_.wait(what); }
  [[nodiscard]] ibv_qp* active() const { return active_; }
  [[nodiscard]] ibv_qp* passive() const { return passive_; }
  void destroy_passive();

 private:
  CompletionQueue active_cq_;
  CompletionQueue passive_cq_;
  ibv_qp* active_;
  ibv_qp* passive_;
};

// Null, and errno, if it is refused.
ibv_qp* try_queue_pair(const Device& device, CompletionQueue& cq);
ibv_qp* new_queue_pair(const Device& device, CompletionQueue& cq);
Step to_init(unsigned access);
Step to_rtr(const Device& device, const Options& options, std::uint32_t peer, ibv_mtu mtu);
Step to_rts(const PairSettings& settings);

// The lists of cases.
void try_bad_commands(const Device& device, const Options& options, Verdicts& verdicts);
void try_bad_work(const Device& device, const Options& options, Verdicts& verdicts);
void try_bad_ends(const Options& options, Verdicts& verdicts);

}  // namespace checker
