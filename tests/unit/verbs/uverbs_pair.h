// Two queue pairs of one device, and librxe's side of their rings.
#pragma once

#include <array>
#include <atomic>
#include <optional>

#include <poll.h>

#include "tests/unit/verbs/uverbs_setup.h"

namespace urxe::test {

// --- librxe's side of the rings

template <typename Element>
Element* slot(rxe_queue_buf* queue, std::uint32_t index) {
  auto* const data = reinterpret_cast<std::byte*>(queue) + offsetof(rxe_queue_buf, data);
  const std::size_t offset = std::size_t{index & queue->index_mask} << queue->log2_elem_size;
  return reinterpret_cast<Element*>(data + offset);
}

inline void advance(std::uint32_t& index) {
  std::atomic_ref(index).store(index + 1, std::memory_order_release);
}

struct Piece {
  void* start;
  std::uint32_t size;
  std::uint32_t key;
};

template <typename Wqe>
void fill_list(Wqe& wqe, const Piece& piece) {
  wqe.dma.length = wqe.dma.resid = piece.size;
  wqe.dma.num_sge = 1;
  wqe.dma.sge[0].addr = reinterpret_cast<std::uintptr_t>(piece.start);
  wqe.dma.sge[0].length = piece.size;
  wqe.dma.sge[0].lkey = piece.key;
}

inline void post_send(rxe_queue_buf* queue, std::uint64_t wr_id, const Piece& piece,
                      std::uint32_t flags = 0) {
  auto& wqe = *slot<rxe_send_wqe>(queue, queue->producer_index);
  std::memset(&wqe, 0, sizeof(wqe));
  wqe.wr.wr_id = wr_id;
  wqe.wr.opcode = IB_UVERBS_WR_SEND;
  wqe.wr.send_flags = flags;
  fill_list(wqe, piece);
  advance(queue->producer_index);
}

inline void post_receive(rxe_queue_buf* queue, std::uint64_t wr_id, const Piece& piece) {
  auto& wqe = *slot<rxe_recv_wqe>(queue, queue->producer_index);
  std::memset(&wqe, 0, sizeof(wqe));
  wqe.wr_id = wr_id;
  fill_list(wqe, piece);
  advance(queue->producer_index);
}

inline std::optional<ib_uverbs_wc> poll_cq(rxe_queue_buf* queue) {
  const auto producer = std::atomic_ref(queue->producer_index).load(std::memory_order_acquire);
  if (queue->consumer_index == producer) return std::nullopt;
  const ib_uverbs_wc completion = *slot<ib_uverbs_wc>(queue, queue->consumer_index);
  advance(queue->consumer_index);
  return completion;
}

inline bool is_readable(int fd) {
  pollfd wanted{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&wanted, 1, 0) == 1;
}

inline constexpr std::uint64_t kSendCq = 0xC1;
inline constexpr std::uint64_t kReceiveCq = 0xC2;
inline constexpr std::uint32_t kAllAccess =
    IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE;
inline constexpr std::uint32_t kSolicited = 1U << 2;

// Two queue pairs that are connected to each other.
struct Pair {
  explicit Pair(Front front = Front::write) : client(setup.node, front) {
    async = client.open_context();
    channel = client.channel();
    pd = client.pd();
    client.mr(pd, memory.data(), memory.size(), kAllAccess, &key);
    send_cq = client.cq(kSendCq, channel);
    receive_cq = client.cq(kReceiveCq, channel);
    sender = client.qp(pd, send_cq.handle, 0xA1);
    receiver = client.qp(pd, receive_cq.handle, 0xA2);
    client.connect(sender, receiver.qpn, gid());
    client.connect(receiver, sender.qpn, gid());
    sends = client.map(sender.mappings.sq_mi);
    receives = client.map(receiver.mappings.rq_mi);
    sent = client.map(send_cq.mapping);
    received = client.map(receive_cq.mapping);
  }
  // Index 0 of the table: the queue pairs leave it as their source.
  static const std::uint8_t* gid() { return kFirstGid.bytes().data(); }

  [[nodiscard]] Piece piece(std::size_t offset, std::uint32_t size) {
    return {memory.data() + offset, size, key};
  }
  // One message from `from` to `to`.
  void transfer(std::uint32_t flags = 0) {
    post_receive(receives, 2, piece(2048, 64));
    post_send(sends, 1, piece(0, 64), flags);
    REQUIRE(client.ring(sender.handle) == 0);
    client.file().drive();
  }

  UverbsSetup setup;
  UverbsClient client;
  std::array<std::uint8_t, 4096> memory{};
  int async = -1;
  int channel = -1;
  std::uint32_t pd = 0;
  std::uint32_t key = 0;
  UverbsClient::Queue send_cq;
  UverbsClient::Queue receive_cq;
  UverbsClient::QueuePair sender;
  UverbsClient::QueuePair receiver;
  rxe_queue_buf* sends = nullptr;
  rxe_queue_buf* receives = nullptr;
  rxe_queue_buf* sent = nullptr;
  rxe_queue_buf* received = nullptr;
};

}  // namespace urxe::test
