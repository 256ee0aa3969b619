// Work requests and completions as the device sees them, and the three narrow doors through which
// they and the program's memory come: tests open them on vectors, verbs/rings on librxe's rings.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "emulator/address_vector.h"
#include "emulator/types.h"
#include "net/wire/numbers.h"

namespace urxe::emulator {

inline constexpr std::uint32_t kMaxSge = 32;
// A message is at most 2 GiB (IBTA 9.7.7, C9-78).
inline constexpr std::uint32_t kMaxMessageSize = 1U << 31;

// A piece of registered memory. Laid out as librxe's rings hold it.
struct Sge {
  std::uint64_t address;
  std::uint32_t length;
  std::uint32_t lkey;
};
static_assert(sizeof(Sge) == 16);

// Where a UD request goes: an address handle's number, or, from an older librxe, the address vector
// itself.
struct DatagramAddress {
  std::uint32_t handle_number = 0;  // 0: use `vector`
  AddressVector vector;
  wire::Qpn qpn;
  wire::QKey qkey;
};

// What a bind request asks for (IBTA 10.6.7.2.3).
struct WindowBind {
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  wire::LKey region;
  wire::RKey window;   // the window's key before
  wire::RKey new_key;  // and after
  Access access;
};

// What a FLUSH asks for (IBTA A19.4.1).
struct FlushRange {
  std::uint64_t length = 0;      // bytes; of no meaning if the whole region is meant
  std::uint8_t placement = 0;    // as in the FETH
  std::uint8_t selectivity = 0;  // likewise
};

// A send request, decoded from a ring. `sges` and `inline_data` are borrowed from the ring until
// the request is retired; the program may write there meanwhile, so their contents are checked at
// each use.
struct SendRequest {
  std::uint64_t wr_id = 0;
  WorkOpcode opcode{};
  SendFlags flags;
  std::uint32_t immediate = 0;  // host order of what goes on the wire
  wire::RKey invalidate;
  std::uint64_t remote_address = 0;
  wire::RKey rkey;
  std::uint64_t compare_or_add = 0;
  std::uint64_t swap = 0;
  std::uint64_t length = 0;  // of all SGEs, or of the inline data
  FlushRange flush;
  std::span<const Sge> sges;
  std::span<const std::uint8_t> inline_data;
  bool malformed = false;  // the ring held nonsense (too many SGEs): completes in error
  WindowBind bind;
  DatagramAddress datagram;
};

// A receive request. Copied out of the ring, because a ring slot is free once it was taken.
struct ReceiveRequest {
  std::uint64_t wr_id = 0;
  std::uint64_t length = 0;
  std::uint32_t sge_count = 0;
  bool malformed = false;
  std::array<Sge, kMaxSge> sges;

  [[nodiscard]] std::span<const Sge> list() const { return {sges.data(), sge_count}; }
};

struct Completion {
  std::uint64_t wr_id = 0;
  CompletionStatus status = CompletionStatus::success;
  CompletionOpcode opcode{};
  std::uint32_t vendor_error = 0;
  std::uint32_t byte_count = 0;
  std::uint32_t immediate = 0;  // host order of what came
  wire::RKey invalidated;
  wire::Qpn qpn;
  wire::Qpn source_qpn;
  CompletionFlags flags;
  std::uint16_t pkey_index = 0;
  std::uint16_t source_lid = 0;
  // Of datagrams: the type of the network header (responder_datagram.cc), as NICs show it.
  std::uint8_t service_level = 0;
};

// Where a queue pair's send requests come from.
class SendSource {
 public:
  virtual ~SendSource() = default;
  // Takes the oldest request that was not yet taken. False if there is none.
  virtual bool take(SendRequest& request) = 0;
  // The oldest `count` taken requests are done: their slots are free.
  virtual void retire(std::uint32_t count) = 0;
  // Throws away all that was posted, taken or not.
  virtual void clear() = 0;
};

// Where a receive queue's requests come from.
class ReceiveSource {
 public:
  virtual ~ReceiveSource() = default;
  virtual bool take(ReceiveRequest& request) = 0;
  [[nodiscard]] virtual std::uint32_t posted() const = 0;
  virtual void clear() = 0;
};

// Where completions go.
class CompletionSink {
 public:
  virtual ~CompletionSink() = default;
  // False if there is no room.
  virtual bool push(const Completion& completion) = 0;
};

// The memory of the program that owns the device. Addresses are the program's.
class ProgramMemory {
 public:
  virtual ~ProgramMemory() = default;
  // False if the memory is not there (any more): nothing the caller may trust was copied.
  virtual bool read(std::uint64_t from, std::span<std::uint8_t> to) = 0;
  // The last bytes become visible last, with release order: programs poll on them.
  virtual bool write(std::uint64_t to, std::span<const std::uint8_t> from) = 0;
  // Atomic for every thread and process that maps the page. `address` is a multiple of 8. They
  // return what stood there before; nothing if the memory is not there.
  virtual std::optional<std::uint64_t> compare_swap(std::uint64_t address, std::uint64_t compare,
                                                    std::uint64_t swap) = 0;
  virtual std::optional<std::uint64_t> fetch_add(std::uint64_t address, std::uint64_t add) = 0;
  virtual bool store(std::uint64_t address, std::uint64_t value) = 0;
};

}  // namespace urxe::emulator
