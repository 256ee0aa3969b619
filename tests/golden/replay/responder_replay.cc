#include "tests/golden/replay/responder_replay.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <stdexcept>

#include <fmt/core.h>

#include "tests/golden/replay/memory_image.h"
#include "tests/golden/replay/setup.h"
#include "tests/support/bring_up.h"
#include "tests/support/device_pair.h"

namespace urxe::replay {
namespace {

using namespace emulator;
using namespace std::chrono_literals;

constexpr std::uint32_t kWindowSize = 4096;  // of a window that no request uses
constexpr std::uint32_t kUnknownKey = 0xFFFFFFFF;
constexpr Access kAll = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kWindowBind;

class ResponderReplay {
 public:
  ResponderReplay(const Conversation& conversation, const ResponderSetup& setup)
      : conversation_(conversation),
        setup_(setup),
        node_(device_options(), conversation.responder, conversation.responder_qpn.value()) {
    create_queue_pair();
    register_memory();
  }

  Differences run() {
    for (std::size_t i = 0; i < conversation_.steps.size(); ++i) {
      const Step& step = *conversation_.steps[i];
      if (step.is_answer) {
        compare(answer_of(step.packet));
      } else {
        prepare_receive(i);
        if (setup_.program_writes) write_as_program(step);
        feed(step);
      }
    }
    if (!setup_.ends_early) {
      for (const Answer& answer : ours_) {
        if (!answer.may_be_coalesced()) ++differences_["we alone: " + to_string(answer)];
      }
      check_receives();
    }
    return std::move(differences_);
  }

 private:
  // --- setting up

  void create_queue_pair() {
    node_.qp = *node_.device.create_qp(*node_.pd, {.type = type_of(conversation_.service),
                                                   .send_cq = node_.send_cq,
                                                   .receive_cq = node_.receive_cq,
                                                   .send_source = &node_.sends,
                                                   .receive_source = &node_.receives,
                                                   .capabilities = {.max_send_wr = 64},
                                                   .signal_all = true});
    QpAttributes attributes;
    attributes.path_mtu = mtu_of(conversation_.mtu);
    attributes.receive_psn = first_psn();
    attributes.destination = conversation_.requester_qpn;
    attributes.access = setup_.access;
    attributes.vector.destination = conversation_.requester;
    attributes.vector.global = true;
    attributes.max_dest_read_atomic = 16;
    attributes.min_rnr_timer = rnr_timer();
    attributes.qkey = first_request().packet.deth.qkey;
    test::bring_up(*node_.qp, attributes);
  }

  [[nodiscard]] const Step& first_request() const {
    return **std::find_if(conversation_.steps.begin(), conversation_.steps.end(),
                          [](const auto& step) { return !step->is_answer; });
  }

  // Of the request that was sent first, should it have come later.
  [[nodiscard]] wire::Psn first_psn() const {
    wire::Psn first = first_request().psn();
    for (const auto& step : conversation_.steps) {
      if (!step->is_answer && step->psn().is_before(first)) first = step->psn();
    }
    return first;
  }

  [[nodiscard]] std::uint8_t rnr_timer() const {
    for (const auto& step : conversation_.steps) {
      if (!step->is_answer || !step->packet.info->has(wire::Header::aeth)) continue;
      const wire::Syndrome syndrome = step->packet.aeth.syndrome;
      if (syndrome.kind() == wire::Syndrome::Kind::rnr_nak) return syndrome.value();
    }
    return 0;
  }

  void register_memory() {
    MemoryImage image = image_of(conversation_);
    for (const auto& step : conversation_.steps) {
      if (step->packet.info->has(wire::Header::ieth)) {
        image.ranges.try_emplace(step->packet.invalidate, Range{0, kWindowSize});
        windows_.emplace(step->packet.invalidate, nullptr);
      } else if (setup_.bytes_in_bounds > 0 && step->packet.info->has(wire::Header::reth)) {
        const std::uint64_t address = step->packet.reth.address;
        image.ranges[step->packet.reth.rkey] = {address, address + setup_.bytes_in_bounds};
      }
    }
    for (const auto& [key, range] : image.ranges) register_range(key, range, image);
  }

  void register_range(wire::RKey key, const Range& range, const MemoryImage& image) {
    const std::uint64_t length = range.end - range.start;
    const std::uint64_t start = node_.memory.map(length);
    MemoryRegion* region = *node_.device.register_region(
        *node_.pd, {.start = start, .length = length, .iova = range.start, .access = kAll});
    std::uint8_t* bytes = node_.memory.at(start, length);
    for (auto it = image.before.lower_bound(range.start);
         it != image.before.end() && it->first < range.end; ++it) {
      bytes[it->first - range.start] = it->second;
    }
    keys_[key] = region->key();
    starts_[key] = start - range.start;
    if (windows_.contains(key)) bind_window(key, range, *region);
  }

  void bind_window(wire::RKey key, const Range& range, const MemoryRegion& region) {
    MemoryWindow* window = *node_.device.create_window(*node_.pd, WindowType::type2);
    const wire::RKey bound{(window->key() & ~0xFFU) | ((window->key() + 1) & 0xFFU)};
    test::OwnedSend bind;
    bind.request.opcode = WorkOpcode::bind_window;
    bind.request.bind = {.address = range.start,
                         .length = range.end - range.start,
                         .region = wire::LKey{region.key()},
                         .window = wire::RKey{window->key()},
                         .new_key = bound,
                         .access = kRemoteWrite | kRemoteRead | kRemoteAtomic};
    node_.sends.post(std::move(bind));
    if (!node_.qp->ring_doorbell()) throw std::runtime_error("bind was refused");
    transmit();
    if (node_.send_completions.completions.empty()) throw std::runtime_error("bind not done");
    windows_[key] = window;
    keys_[key] = bound.value();
  }

  // --- running

  // Whether the captured responder had no receive request for the request at `index`.
  [[nodiscard]] bool was_not_ready(std::size_t index) const {
    const wire::Psn psn = conversation_.steps[index]->psn();
    for (std::size_t i = index + 1; i < conversation_.steps.size(); ++i) {
      const Step& step = *conversation_.steps[i];
      if (step.psn() != psn) continue;
      if (!step.is_answer) return false;
      if (!step.packet.info->has(wire::Header::aeth)) continue;
      return step.packet.aeth.syndrome.kind() == wire::Syndrome::Kind::rnr_nak;
    }
    return false;
  }

  void prepare_receive(std::size_t index) {
    node_.receives.clear();
    if (was_not_ready(index)) return;
    const auto buffer = receive_buffer();
    node_.receives.post(0, {{buffer.address, setup_.receive_length, buffer.key}});
  }

  const test::Node::Buffer& receive_buffer() {
    if (!receive_buffer_) receive_buffer_ = node_.buffer(setup_.receive_length);
    return *receive_buffer_;
  }

  // What the READ brought, the responder's program has just written.
  void write_as_program(const Step& request) {
    if (request.packet.info->operation != wire::Operation::rdma_read_request) return;
    const wire::Reth& reth = request.packet.reth;
    for (const auto& step : conversation_.steps) {
      if (!step->is_answer ||
          !step->psn().in_window(request.psn(), psns_of(request.packet, conversation_.mtu)))
        continue;
      const auto packet = static_cast<std::uint64_t>(step->psn().ahead_of(request.psn()));
      const wire::Bytes payload = step->packet.payload;
      std::uint8_t* bytes = node_.memory.at(
          starts_[reth.rkey] + reth.address + packet * conversation_.mtu, payload.size());
      std::copy(payload.begin(), payload.end(), bytes);
    }
  }

  void feed(const Step& step) {
    std::vector<std::uint8_t> bytes = step.bytes;
    wire::Packet packet = step.packet;
    packet.reth.rkey = translated(packet.reth.rkey);
    packet.atomic.rkey = translated(packet.atomic.rkey);
    packet.invalidate = translated(packet.invalidate);
    std::vector<std::uint8_t> headers(wire::kMaxHeaderSize);
    headers.resize(wire::write_headers(packet, headers));
    std::copy(headers.begin(), headers.end(), bytes.begin());
    node_.device.handle_packet(now_, {.path = step.path, .bytes = bytes, .icrc_is_right = true});
    note_message(packet);
    transmit();
    now_ += 1us;
  }

  [[nodiscard]] wire::RKey translated(wire::RKey key) const {
    const auto it = keys_.find(key);
    return it == keys_.end() ? wire::RKey{kUnknownKey} : wire::RKey{it->second};
  }

  void transmit() {
    while (const auto bytes = next_packet(node_.device, now_)) {
      const auto packet = wire::parse_packet(*bytes);
      if (packet->bth.destination != conversation_.requester_qpn) {
        ++differences_["we answer another queue pair"];
      }
      ours_.push_back(answer_of(*packet));
    }
  }

  // --- comparing

  void compare(Answer theirs) {
    if (!msn_offset_) {
      const auto same_psn = std::find_if(ours_.begin(), ours_.end(), [&](const Answer& ours) {
        return ours.psn == theirs.psn && ours.opcode == theirs.opcode;
      });
      if (same_psn != ours_.end()) {
        msn_offset_ = setup_.starts_late ? theirs.msn.value() - same_psn->msn.value() : 0;
      }
    }
    if (theirs.opcode != wire::Opcode::rc_read_response_middle) {
      theirs.msn = wire::Msn{theirs.msn.value() - msn_offset_.value_or(0)};
    }
    const auto skippable_end = std::find_if_not(
        ours_.begin(), ours_.end(), [](const Answer& ours) { return ours.may_be_coalesced(); });
    auto match = std::find(ours_.begin(), skippable_end, theirs);
    if (match == skippable_end && match != ours_.end() && !(*match == theirs)) {
      match = ours_.end();
    }
    if (match == ours_.end()) {
      ++differences_["they alone: " + to_string(theirs)];
      return;
    }
    ours_.erase(ours_.begin(), match + 1);
  }

  // --- the messages that end in receive requests

  void note_message(const wire::Packet& packet) {
    if (node_.receive_completions.completions.size() == completions_) return;
    ++completions_;
    const Completion& completion = node_.receive_completions.completions.back();
    if (completion.status != CompletionStatus::success) return;
    const bool has_immediate = packet.info->has(wire::Header::immediate);
    if (completion.flags.has(kWithImmediate) != has_immediate ||
        (has_immediate && completion.immediate != packet.immediate)) {
      ++differences_["an immediate got lost"];
    }
  }

  // Every message up to one that was refused.
  void check_receives() {
    const auto refused =
        std::find_if(conversation_.steps.begin(), conversation_.steps.end(), [](const auto& step) {
          if (!step->is_answer || !step->packet.info->has(wire::Header::aeth)) return false;
          const wire::Syndrome syndrome = step->packet.aeth.syndrome;
          return syndrome.kind() == wire::Syndrome::Kind::nak && syndrome.value() != 0;
        });
    std::vector<wire::Psn> messages;
    for (const auto& step : conversation_.steps) {
      const wire::OpcodeInfo& info = *step->packet.info;
      const bool is_send = info.operation == wire::Operation::send;
      if (!info.ends_message() || (!is_send && !info.has(wire::Header::immediate))) continue;
      if (refused != conversation_.steps.end() && !step->psn().is_before((*refused)->psn()))
        continue;
      const bool repeats =
          std::find(messages.begin(), messages.end(), step->psn()) != messages.end();
      if (!repeats) messages.push_back(step->psn());
    }
    const auto received = static_cast<std::size_t>(std::count_if(
        node_.receive_completions.completions.begin(), node_.receive_completions.completions.end(),
        [](const Completion& c) { return c.status == CompletionStatus::success; }));
    if (messages.size() != received) {
      ++differences_[fmt::format("{} messages came, {} were received", messages.size(), received)];
    }
  }

  const Conversation& conversation_;
  const ResponderSetup& setup_;
  test::Node node_;
  Time now_{1s};
  std::map<wire::RKey, std::uint32_t> keys_;    // captured to ours
  std::map<wire::RKey, std::uint64_t> starts_;  // captured address to ours: what to add
  std::map<wire::RKey, MemoryWindow*> windows_;
  std::optional<test::Node::Buffer> receive_buffer_;
  std::deque<Answer> ours_;  // not yet compared
  std::optional<std::uint32_t> msn_offset_;
  std::size_t completions_ = 0;
  Differences differences_;
};

}  // namespace

Differences replay_to_responder(const Conversation& conversation, const ResponderSetup& setup) {
  return ResponderReplay(conversation, setup).run();
}

}  // namespace urxe::replay
