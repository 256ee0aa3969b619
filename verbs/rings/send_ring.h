// A queue pair's send queue, as librxe fills it.
#pragma once

#include <cstdint>
#include <memory>

#include <tl/expected.hpp>

#include "emulator/work.h"
#include "verbs/rings/ring.h"

namespace urxe::verbs {

struct SendRingSize {
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t max_inline = 0;  // bytes
};

// Owner: the queue pair's uverbs object. Under the device's lock, while the program posts.
//
// Whatever stands in the ring, the borrowed spans of a request lie within its element. What makes
// no sense (an opcode that nobody knows, a list or inline data that does not fit) comes out as
// `malformed`, without spans. If the producer index jumps, at most capacity elements are taken for
// posted; if it falls back behind what was already taken, none are until that is retired.
class SendRing final : public emulator::SendSource {
 public:
  // The ring may hold more than was asked for. EINVAL: max_sge is above emulator::kMaxSge; ENOMEM:
  // the ring would be too large; or as RingMemory::allocate.
  static tl::expected<std::unique_ptr<SendRing>, int> create(RingMemory& memory,
                                                             SendRingSize wanted);

  [[nodiscard]] const RingArea& area() const { return ring_.area(); }
  // What the response of create_qp says.
  [[nodiscard]] SendRingSize actual() const { return size_; }
  // Posted, but not yet taken.
  [[nodiscard]] std::uint32_t waiting() const;

  bool take(emulator::SendRequest& request) override;
  void retire(std::uint32_t count) override;
  void clear() override;

 private:
  SendRing(Ring ring, SendRingSize size) : ring_(std::move(ring)), size_(size) {}

  Ring ring_;
  SendRingSize size_;
  std::uint32_t oldest_ = 0;  // index of the oldest that is not retired
  std::uint32_t taken_ = 0;   // how many, from there on, were taken
};

}  // namespace urxe::verbs
