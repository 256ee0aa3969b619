// The one table of BTH opcodes: everything else about an opcode is derived from it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace urxe::wire {

// The transport service: the upper three bits of the opcode (IBTA 9.2.1).
enum class Service : std::uint8_t { rc = 0, uc = 1, rd = 2, ud = 3, cnp = 4, xrc = 5 };

// What a packet asks for or answers, whatever its service and its place in the message.
enum class Operation : std::uint8_t {
  send,
  rdma_write,
  rdma_read_request,
  rdma_read_response,
  acknowledge,
  atomic_acknowledge,
  compare_swap,
  fetch_add,
  flush,         // IBTA 1.5 memory placement extensions
  atomic_write,  // likewise
  congestion_notification,
};

// Where in its message a packet stands. `first` and `middle` are followed by more.
enum class Position : std::uint8_t { first, middle, last, only };

// The BTH opcode (IBTA table 38; annex A17 for the CNP). Named SERVICE_OPERATION_POSITION.
enum class Opcode : std::uint8_t {
  rc_send_first = 0x00,
  rc_send_middle = 0x01,
  rc_send_last = 0x02,
  rc_send_last_immediate = 0x03,
  rc_send_only = 0x04,
  rc_send_only_immediate = 0x05,
  rc_write_first = 0x06,
  rc_write_middle = 0x07,
  rc_write_last = 0x08,
  rc_write_last_immediate = 0x09,
  rc_write_only = 0x0A,
  rc_write_only_immediate = 0x0B,
  rc_read_request = 0x0C,
  rc_read_response_first = 0x0D,
  rc_read_response_middle = 0x0E,
  rc_read_response_last = 0x0F,
  rc_read_response_only = 0x10,
  rc_acknowledge = 0x11,
  rc_atomic_acknowledge = 0x12,
  rc_compare_swap = 0x13,
  rc_fetch_add = 0x14,
  rc_send_last_invalidate = 0x16,
  rc_send_only_invalidate = 0x17,
  rc_flush = 0x1C,
  rc_atomic_write = 0x1D,
  uc_send_first = 0x20,
  uc_send_middle = 0x21,
  uc_send_last = 0x22,
  uc_send_last_immediate = 0x23,
  uc_send_only = 0x24,
  uc_send_only_immediate = 0x25,
  uc_write_first = 0x26,
  uc_write_middle = 0x27,
  uc_write_last = 0x28,
  uc_write_last_immediate = 0x29,
  uc_write_only = 0x2A,
  uc_write_only_immediate = 0x2B,
  ud_send_only = 0x64,
  ud_send_only_immediate = 0x65,
  cnp = 0x81,
};

// The headers that may follow the BTH, in the order in which they appear on the wire.
enum class Header : std::uint8_t {
  deth = 1 << 0,
  feth = 1 << 1,
  reth = 1 << 2,
  atomic_eth = 1 << 3,
  aeth = 1 << 4,
  atomic_ack_eth = 1 << 5,
  immediate = 1 << 6,
  ieth = 1 << 7,
};

class HeaderSet {
 public:
  constexpr HeaderSet() = default;
  constexpr HeaderSet(Header header)  // NOLINT: a header is a set of one
      : bits_(static_cast<std::uint8_t>(header)) {}
  [[nodiscard]] constexpr bool has(Header header) const {
    return (bits_ & static_cast<std::uint8_t>(header)) != 0;
  }
  friend constexpr HeaderSet operator|(HeaderSet a, HeaderSet b) {
    a.bits_ = static_cast<std::uint8_t>(a.bits_ | b.bits_);
    return a;
  }

 private:
  std::uint8_t bits_ = 0;
};
constexpr HeaderSet operator|(Header a, Header b) { return HeaderSet(a) | HeaderSet(b); }

inline constexpr std::size_t kBthSize = 12;
inline constexpr std::size_t kIcrcSize = 4;
inline constexpr std::size_t kDethSize = 8;
inline constexpr std::size_t kRethSize = 16;
inline constexpr std::size_t kAtomicEthSize = 28;
inline constexpr std::size_t kAethSize = 4;
inline constexpr std::size_t kAtomicAckEthSize = 8;
inline constexpr std::size_t kImmediateSize = 4;
inline constexpr std::size_t kIethSize = 4;
inline constexpr std::size_t kFethSize = 4;
// A CNP carries 16 reserved zero bytes and nothing else.
inline constexpr std::size_t kCnpReservedSize = 16;
// BTH, AtomicETH: no packet has a longer header.
inline constexpr std::size_t kMaxHeaderSize = kBthSize + kAtomicEthSize;

// How much payload a packet of this opcode may carry.
enum class PayloadRule : std::uint8_t {
  none,       // requests for READ and atomics, acknowledgements
  exact_mtu,  // first, middle
  up_to_mtu,  // last (1...MTU), only (0...MTU)
  eight,      // ATOMIC WRITE
  reserved,   // CNP
};

struct OpcodeInfo {
  Opcode opcode{};
  Service service{};
  Operation operation{};
  Position position{};
  HeaderSet headers;
  PayloadRule payload{};
  std::string_view name;  // as in "RC SEND_ONLY"

  [[nodiscard]] constexpr bool has(Header header) const { return headers.has(header); }
  [[nodiscard]] constexpr bool starts_message() const {
    return position == Position::first || position == Position::only;
  }
  [[nodiscard]] constexpr bool ends_message() const {
    return position == Position::last || position == Position::only;
  }
  // A response travels from the responder to the requester.
  [[nodiscard]] constexpr bool is_response() const {
    return operation == Operation::rdma_read_response || operation == Operation::acknowledge ||
           operation == Operation::atomic_acknowledge;
  }
  [[nodiscard]] constexpr bool is_atomic() const {
    return operation == Operation::compare_swap || operation == Operation::fetch_add;
  }
  // IBTA 1.5, annex A19: answered with a READ response without data.
  [[nodiscard]] constexpr bool is_placement() const {
    return operation == Operation::flush || operation == Operation::atomic_write;
  }
  // A request that is answered with a response of its own.
  [[nodiscard]] constexpr bool needs_response() const {
    return operation == Operation::rdma_read_request || is_atomic() || is_placement();
  }
  // The bytes from the start of the BTH to the payload.
  [[nodiscard]] std::size_t header_size() const;
};

// What is known of an opcode; nullptr for one that is reserved or of a service that urxe lacks.
[[nodiscard]] const OpcodeInfo* find_opcode(std::uint8_t opcode);
// The same for an opcode that is known to exist.
[[nodiscard]] const OpcodeInfo& info(Opcode opcode);

// The variant of an operation: what its last packet carries besides data.
enum class Trailer : std::uint8_t { none, immediate, invalidate };

// The opcode of a packet of a SEND or an RDMA WRITE.
[[nodiscard]] std::optional<Opcode> data_opcode(Service service, Operation operation,
                                                Position position, Trailer trailer);
[[nodiscard]] Opcode read_response_opcode(Position position);

// The place of packet `index` of `count`.
[[nodiscard]] constexpr Position position_of(std::uint32_t index, std::uint32_t count) {
  if (count == 1) return Position::only;
  if (index == 0) return Position::first;
  return index + 1 == count ? Position::last : Position::middle;
}

// All opcodes of the table, for tests and for tools that print it.
[[nodiscard]] const std::array<OpcodeInfo, 40>& all_opcodes();

}  // namespace urxe::wire
