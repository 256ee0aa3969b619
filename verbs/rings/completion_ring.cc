#include "verbs/rings/completion_ring.h"

#include <cerrno>
#include <cstring>

#include <endian.h>

namespace urxe::verbs {
namespace {

ib_uverbs_wc encode(const emulator::Completion& completion) {
  ib_uverbs_wc wc{};
  wc.wr_id = completion.wr_id;
  wc.status = static_cast<std::uint32_t>(completion.status);
  wc.opcode = static_cast<std::uint32_t>(completion.opcode);
  wc.vendor_err = completion.vendor_error;
  wc.byte_len = completion.byte_count;
  if (completion.flags.has(emulator::kWithInvalidate)) {
    wc.ex.invalidate_rkey = completion.invalidated.value();
  } else {
    wc.ex.imm_data = htobe32(completion.immediate);
  }
  wc.qp_num = completion.qpn.value();
  wc.src_qp = completion.source_qpn.value();
  wc.wc_flags = completion.flags.bits();
  wc.pkey_index = completion.pkey_index;
  wc.slid = completion.source_lid;
  wc.sl = completion.service_level;
  wc.port_num = 1;
  return wc;
}

}  // namespace

tl::expected<std::unique_ptr<CompletionRing>, int> CompletionRing::create(RingMemory& memory,
                                                                          std::uint32_t cqe) {
  auto ring = Ring::create(memory, cqe, sizeof(ib_uverbs_wc));
  if (!ring) return tl::unexpected(ring.error());
  return std::unique_ptr<CompletionRing>(new CompletionRing(std::move(*ring)));
}

std::uint32_t CompletionRing::waiting() const {
  return ring_.distance(ring_.consumer(), producer_);
}

bool CompletionRing::push(const emulator::Completion& completion) {
  if (waiting() == ring_.capacity()) return false;
  const ib_uverbs_wc wc = encode(completion);
  std::memcpy(ring_.element(producer_), &wc, sizeof(wc));
  producer_ = ring_.advanced(producer_, 1);
  ring_.publish_producer(producer_);
  return true;
}

tl::expected<std::unique_ptr<CompletionRing>, int> CompletionRing::resized(RingMemory& memory,
                                                                           std::uint32_t cqe) {
  const std::uint32_t count = waiting();
  if (count > cqe) return tl::unexpected(EINVAL);
  auto made = create(memory, cqe);
  if (!made) return made;
  CompletionRing& other = **made;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::memcpy(other.ring_.element(i), ring_.element(producer_ - count + i), sizeof(ib_uverbs_wc));
  }
  other.producer_ = count;
  other.ring_.publish_producer(count);
  return made;
}

}  // namespace urxe::verbs
