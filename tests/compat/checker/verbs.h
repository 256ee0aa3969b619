// libibverbs' objects, with both of its APIs behind one face. Every destruction must succeed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "tests/compat/checker/options.h"

namespace checker {

// A device that is open, with a protection domain.
class Device {
 public:
  explicit Device(const Options& options);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  [[nodiscard]] ibv_context* context() const { return context_; }
  [[nodiscard]] ibv_pd* pd() const { return pd_; }
  [[nodiscard]] const ibv_gid& gid() const { return gid_; }
  [[nodiscard]] const ibv_device_attr& limits() const { return limits_; }
  [[nodiscard]] const ibv_port_attr& port() const { return port_; }

 private:
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_gid gid_{};
  ibv_device_attr limits_{};
  ibv_port_attr port_{};
};

// What a completion says, whichever API told it.
struct Done {
  std::uint64_t wr_id = 0;
  ibv_wc_status status = IBV_WC_SUCCESS;
  ibv_wc_opcode opcode = IBV_WC_SEND;
  std::uint32_t byte_len = 0;
  std::uint32_t imm_data = 0;
  std::uint32_t invalidated_rkey = 0;
  std::uint32_t qp_num = 0;
  std::uint32_t src_qp = 0;
  unsigned flags = 0;
};

class CompletionQueue {
 public:
  CompletionQueue(const Device& device, int entries, bool extended, bool events);
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;
  ~CompletionQueue();

  [[nodiscard]] ibv_cq* get() const { return cq_; }
  [[nodiscard]] std::optional<Done> poll();
  // The next completion; fails if there is none for kPatience.
  [[nodiscard]] Done wait(const std::string& what);

 private:
  [[nodiscard]] std::optional<Done> poll_extended();
  void sleep_until_event(const std::string& what);

  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_cq_ex* extended_ = nullptr;
  unsigned events_ = 0;
};

class SharedReceiveQueue {
 public:
  SharedReceiveQueue(ibv_pd* pd, std::uint32_t entries, std::uint32_t sges);
  SharedReceiveQueue(const SharedReceiveQueue&) = delete;
  SharedReceiveQueue& operator=(const SharedReceiveQueue&) = delete;
  ~SharedReceiveQueue();
  [[nodiscard]] ibv_srq* get() const { return srq_; }

 private:
  ibv_srq* srq_;
};

// Where a queue pair is reached.
struct Address {
  ibv_gid gid;
  std::uint32_t qpn;
  std::uint32_t psn;
};

// A send request, whichever API posts it.
struct Request {
  std::uint64_t wr_id = 0;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  unsigned flags = IBV_SEND_SIGNALED;
  std::vector<ibv_sge> list;
  std::uint32_t imm_data = 0;  // or the rkey to invalidate
  std::uint64_t remote_address = 0;
  std::uint32_t rkey = 0;
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  ibv_mw* window = nullptr;  // of BIND_MW
  ibv_mw_bind_info bind{};
};

class QueuePair {
 public:
  QueuePair(const Device& device, const Options& options, CompletionQueue& cq, ibv_srq* srq);
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;
  ~QueuePair();

  [[nodiscard]] ibv_qp* get() const { return qp_; }
  [[nodiscard]] std::uint32_t max_inline() const { return max_inline_; }
  [[nodiscard]] Address address() const;

  // RESET to RTS. `mtu` is the path's.
  void connect(const Address& peer);

  void post(const std::vector<Request>& requests);
  void post_receive(std::uint64_t wr_id, std::vector<ibv_sge> list);

 private:
  void initialise();
  void post_basic(const std::vector<Request>& requests);
  void post_extended(const std::vector<Request>& requests);
  void start(const Request& request);

  const Device& device_;
  const Options& options_;
  ibv_qp* qp_ = nullptr;
  ibv_qp_ex* extended_ = nullptr;
  ibv_srq* srq_;
  ibv_ah* ah_ = nullptr;
  std::uint32_t remote_qpn_ = 0;
  std::uint32_t max_inline_ = 0;
  std::uint32_t psn_;
};

constexpr std::uint32_t kMaxSge = 32;
constexpr std::uint32_t kMaxWr = 128;
constexpr std::uint32_t kInline = 256;
constexpr std::uint32_t kQkey = 0x11111111;
constexpr int kGrh = 40;  // bytes in front of a datagram

}  // namespace checker
