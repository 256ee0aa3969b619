#include "verbs/rings/receive_ring.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace urxe::verbs {
namespace {

using emulator::Sge;

// Into its place, because most of a request is room for a list that is short.
void decode_receive(const std::byte* element, std::uint32_t max_sge,
                    emulator::ReceiveRequest& request) {
  const auto wqe = snapshot<rxe_recv_wqe>(element);
  request.wr_id = wqe.wr_id;
  request.length = 0;
  request.malformed = wqe.dma.num_sge > max_sge;
  request.sge_count = request.malformed ? 0 : wqe.dma.num_sge;
  for (std::uint32_t i = 0; i < request.sge_count; ++i) {
    request.sges[i] = snapshot<Sge>(element + sizeof(rxe_recv_wqe) + i * sizeof(Sge));
    request.length += request.sges[i].length;
  }
}

}  // namespace

tl::expected<std::unique_ptr<ReceiveRing>, int> ReceiveRing::create(RingMemory& memory,
                                                                    std::uint32_t max_wr,
                                                                    std::uint32_t max_sge,
                                                                    bool shared) {
  if (max_sge > emulator::kMaxSge) return tl::unexpected(EINVAL);
  auto ring = Ring::create(memory, max_wr, sizeof(rxe_recv_wqe) + max_sge * sizeof(rxe_sge));
  if (!ring) return tl::unexpected(ring.error());
  return std::unique_ptr<ReceiveRing>(new ReceiveRing(std::move(*ring), max_sge, shared));
}

std::uint32_t ReceiveRing::posted() const { return ring_.distance(next_, ring_.producer()); }

bool ReceiveRing::take(emulator::ReceiveRequest& request) {
  if (posted() == 0) return false;
  decode_receive(ring_.element(next_), max_sge_, request);
  consume(1);
  return true;
}

void ReceiveRing::clear() {
  if (!shared_) consume(posted());
}

void ReceiveRing::consume(std::uint32_t count) {
  next_ = ring_.advanced(next_, count);
  ring_.publish_consumer(next_);
}

tl::expected<std::unique_ptr<ReceiveRing>, int> ReceiveRing::resized(RingMemory& memory,
                                                                     std::uint32_t max_wr) {
  auto made = create(memory, max_wr, max_sge_, shared_);
  if (!made) return made;
  const std::uint32_t count = posted();
  Ring& other = (*made)->ring_;
  if (count > other.capacity()) return tl::unexpected(EINVAL);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::memcpy(other.element(i), ring_.element(next_ + i), ring_.element_size());
  }
  other.publish_producer(count);
  consume(count);
  return made;
}

}  // namespace urxe::verbs
