#include "verbs/rings/send_ring.h"

#include <algorithm>
#include <cerrno>

#include "emulator/assert.h"
#include "verbs/rings/send_wqe.h"

namespace urxe::verbs {

// As rxe_qp_init_req does it: list and inline data share their room, so the larger sets both
// limits.
tl::expected<std::unique_ptr<SendRing>, int> SendRing::create(RingMemory& memory,
                                                              SendRingSize wanted) {
  if (wanted.max_sge > emulator::kMaxSge) return tl::unexpected(EINVAL);
  constexpr std::uint32_t kSgeSize = sizeof(rxe_sge);
  const std::uint32_t room = std::max(wanted.max_sge * kSgeSize, wanted.max_inline);
  auto ring = Ring::create(memory, wanted.max_wr, sizeof(rxe_send_wqe) + std::uint64_t{room});
  if (!ring) return tl::unexpected(ring.error());
  const SendRingSize size{.max_wr = ring->capacity(),
                          .max_sge = std::min(room / kSgeSize, emulator::kMaxSge),
                          .max_inline = room};
  return std::unique_ptr<SendRing>(new SendRing(std::move(*ring), size));
}

std::uint32_t SendRing::waiting() const {
  const std::uint32_t posted = ring_.distance(oldest_, ring_.producer());
  return posted > taken_ ? posted - taken_ : 0;
}

bool SendRing::take(emulator::SendRequest& request) {
  if (waiting() == 0) return false;
  request = decode_send(ring_.element(oldest_ + taken_),
                        {.max_sge = size_.max_sge, .max_inline = size_.max_inline});
  ++taken_;
  return true;
}

void SendRing::retire(std::uint32_t count) {
  URXE_ASSERT(count <= taken_);
  oldest_ = ring_.advanced(oldest_, count);
  taken_ -= count;
  ring_.publish_consumer(oldest_);
}

void SendRing::clear() {
  oldest_ = ring_.producer();
  taken_ = 0;
  ring_.publish_consumer(oldest_);
}

}  // namespace urxe::verbs
