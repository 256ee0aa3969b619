// The vocabulary of the device: states, kinds, flags. Where the kernel's ABI has a number for a
// value, it is the same number (verbs/abi asserts it), so that no table translates between them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace urxe::emulator {

// ib_qp_type of include/rdma/ib_verbs.h, what urxe has of it.
enum class QpType : std::uint8_t { gsi = 1, rc = 2, uc = 3, ud = 4 };

// IBTA 10.3.1; ib_qp_state.
enum class QpState : std::uint8_t {
  reset = 0,
  init = 1,
  ready_to_receive = 2,
  ready_to_send = 3,
  send_queue_drain = 4,
  send_queue_error = 5,
  error = 6,
};
inline constexpr int kQpStates = 7;

[[nodiscard]] std::string_view to_string(QpType type);
[[nodiscard]] std::string_view to_string(QpState state);

// ib_mtu.
enum class Mtu : std::uint8_t { bytes256 = 1, bytes512, bytes1024, bytes2048, bytes4096 };
[[nodiscard]] constexpr std::uint32_t bytes_of(Mtu mtu) {
  return 128U << static_cast<unsigned>(mtu);
}
// The largest of no more than so many bytes; the smallest if there is none.
[[nodiscard]] constexpr Mtu mtu_within(std::uint32_t bytes) {
  auto mtu = Mtu::bytes4096;
  while (mtu > Mtu::bytes256 && bytes_of(mtu) > bytes) {
    mtu = static_cast<Mtu>(static_cast<int>(mtu) - 1);
  }
  return mtu;
}

// ib_wc_status.
enum class CompletionStatus : std::uint8_t {
  success = 0,
  local_length_error = 1,
  local_qp_operation_error = 2,
  local_protection_error = 4,
  flushed = 5,
  window_bind_error = 6,
  bad_response = 7,
  local_access_error = 8,
  remote_invalid_request = 9,
  remote_access_error = 10,
  remote_operational_error = 11,
  retry_exceeded = 12,
  rnr_retry_exceeded = 13,
};
[[nodiscard]] std::string_view to_string(CompletionStatus status);

// ib_uverbs_wc_opcode.
enum class CompletionOpcode : std::uint8_t {
  send = 0,
  rdma_write = 1,
  rdma_read = 2,
  compare_swap = 3,
  fetch_add = 4,
  bind_window = 5,
  local_invalidate = 6,
  flush = 8,
  atomic_write = 9,
  receive = 128,
  receive_rdma_with_immediate = 129,
};

// ib_uverbs_wr_opcode.
enum class WorkOpcode : std::uint8_t {
  rdma_write = 0,
  rdma_write_with_immediate = 1,
  send = 2,
  send_with_immediate = 3,
  rdma_read = 4,
  compare_swap = 5,
  fetch_add = 6,
  local_invalidate = 7,
  bind_window = 8,
  send_with_invalidate = 9,
  flush = 14,
  atomic_write = 15,
};
[[nodiscard]] std::string_view to_string(WorkOpcode opcode);

// ib_event_type.
enum class AsyncEventType : std::uint8_t {
  cq_error = 0,
  qp_fatal = 1,
  qp_request_error = 2,
  qp_access_error = 3,
  communication_established = 4,
  send_queue_drained = 5,
  path_migrated = 6,
  path_migration_error = 7,
  device_fatal = 8,
  port_active = 9,
  port_error = 10,
  lid_change = 11,
  pkey_change = 12,
  sm_change = 13,
  srq_error = 14,
  srq_limit_reached = 15,
  last_wqe_reached = 16,
  client_reregister = 17,
  gid_change = 18,
};

// A set of bits with a type. `Tag` names it; the bits are those of the kernel's ABI.
template <typename Tag>
class Flags {
 public:
  constexpr Flags() = default;
  constexpr explicit Flags(std::uint32_t bits) : bits_(bits) {}
  [[nodiscard]] constexpr std::uint32_t bits() const { return bits_; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  // Whether all of `others` are in this set.
  [[nodiscard]] constexpr bool has(Flags others) const {
    return (bits_ & others.bits_) == others.bits_;
  }
  [[nodiscard]] constexpr bool has_any(Flags others) const { return (bits_ & others.bits_) != 0; }
  [[nodiscard]] constexpr Flags without(Flags others) const { return Flags{bits_ & ~others.bits_}; }
  friend constexpr Flags operator|(Flags a, Flags b) { return Flags{a.bits_ | b.bits_}; }
  friend constexpr Flags operator&(Flags a, Flags b) { return Flags{a.bits_ & b.bits_}; }
  constexpr Flags& operator|=(Flags other) { return *this = *this | other; }
  friend constexpr bool operator==(Flags, Flags) = default;

 private:
  std::uint32_t bits_ = 0;
};

// ib_uverbs_access_flags.
using Access = Flags<struct AccessTag>;
inline constexpr Access kLocalRead{0};  // always granted
inline constexpr Access kLocalWrite{1U << 0};
inline constexpr Access kRemoteWrite{1U << 1};
inline constexpr Access kRemoteRead{1U << 2};
inline constexpr Access kRemoteAtomic{1U << 3};
inline constexpr Access kWindowBind{1U << 4};
inline constexpr Access kZeroBased{1U << 5};
inline constexpr Access kOnDemand{1U << 6};
inline constexpr Access kHugeTlb{1U << 7};
inline constexpr Access kFlushGlobal{1U << 8};
inline constexpr Access kFlushPersistent{1U << 9};
inline constexpr Access kRelaxedOrdering{1U << 20};

// ib_send_flags.
using SendFlags = Flags<struct SendFlagsTag>;
inline constexpr SendFlags kFence{1U << 0};
inline constexpr SendFlags kSignaled{1U << 1};
inline constexpr SendFlags kSolicited{1U << 2};
inline constexpr SendFlags kInline{1U << 3};

// ibv_wc_flags.
using CompletionFlags = Flags<struct CompletionFlagsTag>;
inline constexpr CompletionFlags kWithGrh{1U << 0};
inline constexpr CompletionFlags kWithImmediate{1U << 1};
inline constexpr CompletionFlags kWithInvalidate{1U << 3};

}  // namespace urxe::emulator
