// A completion queue, as librxe polls it.
#pragma once

#include <cstdint>
#include <memory>

#include <tl/expected.hpp>

#include "emulator/work.h"
#include "verbs/rings/ring.h"

namespace urxe::verbs {

// Owner: the completion queue's uverbs object. Under the device's lock, while the program polls: a
// poll makes no call.
//
// The device's index is its own: what the program writes over it is lost with the next push. The
// program's says which entries it has not polled; those are never overwritten, and if it is
// nonsense, they are at most cqe().
class CompletionRing final : public emulator::CompletionSink {
 public:
  // ENOMEM: the ring would be too large; or as RingMemory::allocate.
  static tl::expected<std::unique_ptr<CompletionRing>, int> create(RingMemory& memory,
                                                                   std::uint32_t cqe);

  [[nodiscard]] const RingArea& area() const { return ring_.area(); }
  // Usable entries, at least what was asked for.
  [[nodiscard]] std::uint32_t cqe() const { return ring_.capacity(); }
  // Entries that the program has not polled.
  [[nodiscard]] std::uint32_t waiting() const;

  bool push(const emulator::Completion& completion) override;

  // resize_cq: a new ring that holds what waits here, in order. This one stays as it is, because
  // the program may look at it until the command returns. EINVAL: more wait than `cqe`; or as
  // create().
  [[nodiscard]] tl::expected<std::unique_ptr<CompletionRing>, int> resized(RingMemory& memory,
                                                                           std::uint32_t cqe);

 private:
  explicit CompletionRing(Ring ring) : ring_(std::move(ring)) {}

  Ring ring_;
  std::uint32_t producer_ = 0;
};

}  // namespace urxe::verbs
