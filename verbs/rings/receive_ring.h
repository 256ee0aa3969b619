// A receive queue, as librxe fills it: a queue pair's own, or a shared one (SRQ).
#pragma once

#include <cstdint>
#include <memory>

#include <tl/expected.hpp>

#include "emulator/work.h"
#include "verbs/rings/ring.h"

namespace urxe::verbs {

// Owner: the uverbs object of the queue pair or of the SRQ. Under the device's lock, while the
// program posts: a post makes no call.
//
// A list that is longer than the ring's limit makes a request `malformed`, with an empty list. If
// the producer index jumps, at most max_wr() elements are taken for posted.
class ReceiveRing final : public emulator::ReceiveSource {
 public:
  // `shared`: an SRQ. EINVAL: max_sge is above emulator::kMaxSge; ENOMEM: the ring would be too
  // large; or as RingMemory::allocate.
  static tl::expected<std::unique_ptr<ReceiveRing>, int> create(RingMemory& memory,
                                                                std::uint32_t max_wr,
                                                                std::uint32_t max_sge, bool shared);

  [[nodiscard]] const RingArea& area() const { return ring_.area(); }
  // At least what was asked for.
  [[nodiscard]] std::uint32_t max_wr() const { return ring_.capacity(); }
  [[nodiscard]] std::uint32_t max_sge() const { return max_sge_; }

  bool take(emulator::ReceiveRequest& request) override;
  [[nodiscard]] std::uint32_t posted() const override;
  // Of a shared ring it throws nothing away: what is in it is not one queue pair's.
  void clear() override;

  // modify_srq(SRQ_MAX_WR): a new ring that holds what was posted here, in order; this one is empty
  // then. EINVAL: that does not fit; or as create().
  [[nodiscard]] tl::expected<std::unique_ptr<ReceiveRing>, int> resized(RingMemory& memory,
                                                                        std::uint32_t max_wr);

 private:
  ReceiveRing(Ring ring, std::uint32_t max_sge, bool shared)
      : ring_(std::move(ring)), max_sge_(max_sge), shared_(shared) {}
  void consume(std::uint32_t count);

  Ring ring_;
  std::uint32_t max_sge_;
  bool shared_;
  std::uint32_t next_ = 0;  // index of the oldest that was not taken
};

}  // namespace urxe::verbs
