#include "tests/golden/replay/memory_image.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace urxe::replay {

namespace {

using wire::Bytes;

class ImageReader {
 public:
  explicit ImageReader(const Conversation& conversation) : conversation_(conversation) {}

  MemoryImage read() {
    for (const Step* request : requests_in_order()) take(*request);
    return std::move(image_);
  }

 private:
  // Each request once, in the order in which the responder executed them.
  [[nodiscard]] std::vector<const Step*> requests_in_order() const {
    std::vector<const Step*> requests;
    for (const auto& step : conversation_.steps) {
      if (!step->is_answer) requests.push_back(step.get());
    }
    const wire::Psn origin = requests.front()->psn();
    const auto place = [&](const Step* step) { return step->psn().ahead_of(origin); };
    std::stable_sort(requests.begin(), requests.end(),
                     [&](const Step* a, const Step* b) { return place(a) < place(b); });
    const auto end =
        std::unique(requests.begin(), requests.end(),
                    [&](const Step* a, const Step* b) { return place(a) == place(b); });
    requests.erase(end, requests.end());
    return requests;
  }

  void take(const Step& step) {
    const wire::Packet& packet = step.packet;
    if (is_refused(packet)) return;
    if (packet.info->has(wire::Header::reth)) {
      address_ = packet.reth.address;
      if (packet.reth.length > 0) note_range(packet.reth.rkey, address_, packet.reth.length);
    }
    switch (packet.info->operation) {
      case wire::Operation::rdma_write:
        for (std::size_t i = 0; i < packet.payload.size(); ++i) known_[address_++] = true;
        break;
      case wire::Operation::rdma_read_request:
        take_read(packet);
        break;
      case wire::Operation::compare_swap:
      case wire::Operation::fetch_add:
        note_range(packet.atomic.rkey, packet.atomic.address, sizeof(std::uint64_t));
        take_atomic(packet);
        break;
      default:
        break;
    }
  }

  [[nodiscard]] bool is_refused(const wire::Packet& request) const {
    return std::any_of(conversation_.steps.begin(), conversation_.steps.end(), [&](const auto& s) {
      return s->is_answer && s->psn() == request.bth.psn &&
             s->packet.info->has(wire::Header::aeth) &&
             s->packet.aeth.syndrome.kind() == wire::Syndrome::Kind::nak &&
             s->packet.aeth.syndrome.value() != 0;
    });
  }

  void note_range(wire::RKey key, std::uint64_t address, std::uint64_t length) {
    Range& range = image_.ranges[key];
    range.start = std::min(range.start, address & ~std::uint64_t{7});
    range.end = std::max(range.end, address + length);
  }

  void learn(std::uint64_t address, Bytes bytes) {
    for (const std::uint8_t byte : bytes) {
      if (!known_[address]) image_.before[address] = byte;
      known_[address++] = true;
    }
  }

  void take_read(const wire::Packet& request) {
    for (const auto& step : conversation_.steps) {
      if (!step->is_answer || step->packet.payload.empty()) continue;
      const std::int32_t ahead = step->psn().ahead_of(request.bth.psn);
      if (ahead < 0 || static_cast<std::uint32_t>(ahead) >= psns_of(request, conversation_.mtu)) {
        continue;
      }
      learn(request.reth.address + static_cast<std::uint64_t>(ahead) * conversation_.mtu,
            step->packet.payload);
    }
  }

  void take_atomic(const wire::Packet& request) {
    for (const auto& step : conversation_.steps) {
      if (step->packet.info->opcode != wire::Opcode::rc_atomic_acknowledge) continue;
      if (step->psn() != request.bth.psn) continue;
      std::array<std::uint8_t, sizeof(std::uint64_t)> value;
      std::memcpy(value.data(), &step->packet.atomic_result, value.size());
      learn(request.atomic.address, value);
    }
  }

  const Conversation& conversation_;
  MemoryImage image_;
  std::map<std::uint64_t, bool> known_;
  std::uint64_t address_ = 0;
};

}  // namespace

MemoryImage image_of(const Conversation& conversation) { return ImageReader(conversation).read(); }

}  // namespace urxe::replay
