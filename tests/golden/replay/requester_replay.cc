#include "tests/golden/replay/requester_replay.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include <fmt/core.h>

#include "tests/golden/replay/setup.h"
#include "tests/support/bring_up.h"
#include "tests/support/device_pair.h"

namespace urxe::replay {
namespace {

using namespace emulator;
using namespace std::chrono_literals;

// A message as its requester posted it.
struct Message {
  std::vector<const Step*> packets;
  std::vector<std::uint8_t> data;
  std::size_t first_step = 0;
};

WorkOpcode opcode_of(const wire::OpcodeInfo& last) {
  const bool immediate = last.has(wire::Header::immediate);
  switch (last.operation) {
    case wire::Operation::rdma_write:
      return immediate ? WorkOpcode::rdma_write_with_immediate : WorkOpcode::rdma_write;
    case wire::Operation::rdma_read_request:
      return WorkOpcode::rdma_read;
    case wire::Operation::compare_swap:
      return WorkOpcode::compare_swap;
    case wire::Operation::fetch_add:
      return WorkOpcode::fetch_add;
    default:
      if (last.has(wire::Header::ieth)) return WorkOpcode::send_with_invalidate;
      return immediate ? WorkOpcode::send_with_immediate : WorkOpcode::send;
  }
}

// All that a request says but for AckReq, MigReq and the destination.
std::string text_of(const wire::Packet& packet) {
  std::string text = fmt::format("{} PSN {:#x} SE {}", packet.info->name, packet.bth.psn.value(),
                                 packet.bth.solicited);
  const wire::OpcodeInfo& info = *packet.info;
  if (info.has(wire::Header::reth)) {
    text += fmt::format(" va {:#x} rkey {:#x} length {}", packet.reth.address,
                        packet.reth.rkey.value(), packet.reth.length);
  }
  if (info.has(wire::Header::atomic_eth)) {
    text += fmt::format(" va {:#x} rkey {:#x} swap {:#x}", packet.atomic.address,
                        packet.atomic.rkey.value(), packet.atomic.swap_or_add);
    // FETCH_ADD: not used.
    if (info.operation == wire::Operation::compare_swap) {
      text += fmt::format(" compare {:#x}", packet.atomic.compare);
    }
  }
  if (info.has(wire::Header::immediate)) text += fmt::format(" imm {:#x}", packet.immediate);
  if (info.has(wire::Header::ieth)) text += fmt::format(" inv {:#x}", packet.invalidate.value());
  for (const std::uint8_t byte : packet.payload) text += fmt::format(" {:02x}", byte);
  return text;
}

// What was posted, and how many steps of the conversation belong to it.
struct Script {
  std::vector<Message> messages;
  std::size_t steps = 0;
};

Script script_of(const Conversation& conversation) {
  Script script{.steps = conversation.steps.size()};
  std::vector<Message>& messages = script.messages;
  std::optional<wire::Psn> last;
  for (std::size_t i = 0; i < conversation.steps.size(); ++i) {
    const Step& step = *conversation.steps[i];
    if (step.is_answer || (last && step.psn().ahead_of(*last) <= 0)) continue;  // sent again
    last = step.psn() + (psns_of(step.packet, conversation.mtu) - 1);
    if (step.packet.info->starts_message()) messages.push_back({.first_step = i});
    if (messages.empty()) continue;
    Message& message = messages.back();
    message.packets.push_back(&step);
    message.data.insert(message.data.end(), step.packet.payload.begin(), step.packet.payload.end());
  }
  if (!messages.empty() && !messages.back().packets.back()->packet.info->ends_message()) {
    script.steps = messages.back().first_step;  // the capture ends within it
    messages.pop_back();
  }
  return script;
}

class RequesterReplay {
 public:
  explicit RequesterReplay(const Conversation& conversation)
      : conversation_(conversation),
        script_(script_of(conversation)),
        node_(device_options(), conversation.requester, conversation.requester_qpn.value()) {
    if (!script_.messages.empty()) create_queue_pair();
  }

  Differences run() {
    if (script_.messages.empty()) return {};
    auto next = script_.messages.begin();
    for (std::size_t i = 0; i < script_.steps; ++i) {
      const Step& step = *conversation_.steps[i];
      if (step.is_answer) {
        answer(step);
        continue;
      }
      if (next != script_.messages.end() && next->first_step == i) {
        post(*next++);
      } else if (ours_.size() <= theirs_.size()) {
        wait_for_timer();
      }
      theirs_.push_back(text_of(step.packet));
    }
    compare_requests();
    check_completions();
    return std::move(differences_);
  }

 private:
  void create_queue_pair() {
    node_.qp = *node_.device.create_qp(*node_.pd, {.type = type_of(conversation_.service),
                                                   .send_cq = node_.send_cq,
                                                   .receive_cq = node_.receive_cq,
                                                   .send_source = &node_.sends,
                                                   .receive_source = &node_.receives,
                                                   .capabilities = {.max_send_wr = 256},
                                                   .signal_all = true});
    QpAttributes attributes;
    attributes.path_mtu = mtu_of(conversation_.mtu);
    attributes.send_psn = script_.messages.front().packets.front()->psn();
    attributes.destination = conversation_.responder_qpn;
    attributes.vector.destination = conversation_.responder;
    attributes.vector.global = true;
    attributes.max_read_atomic = 128;
    attributes.retry_count = attributes.rnr_retry = 7;
    attributes.qkey = script_.messages.front().packets.front()->packet.deth.qkey;
    test::bring_up(*node_.qp, attributes);
  }

  void post(const Message& message) {
    const wire::Packet& first = message.packets.front()->packet;
    const wire::Packet& last = message.packets.back()->packet;
    test::OwnedSend send;
    SendRequest& request = send.request;
    request.wr_id = posted_.size();
    request.opcode = opcode_of(*last.info);
    request.length = request.opcode == WorkOpcode::rdma_read ? first.reth.length
                     : first.info->is_atomic()               ? sizeof(std::uint64_t)
                                                             : message.data.size();
    if (last.bth.solicited) request.flags = kSolicited;
    request.immediate = last.immediate;
    request.invalidate = last.invalidate;
    request.remote_address = first.info->is_atomic() ? first.atomic.address : first.reth.address;
    request.rkey = first.info->is_atomic() ? first.atomic.rkey : first.reth.rkey;
    const bool swap = request.opcode == WorkOpcode::compare_swap;
    request.compare_or_add = swap ? first.atomic.compare : first.atomic.swap_or_add;
    request.swap = swap ? first.atomic.swap_or_add : 0;
    if (conversation_.service == wire::Service::ud) {
      request.datagram = {.vector = node_.qp->attributes().vector,
                          .qpn = conversation_.responder_qpn,
                          .qkey = first.deth.qkey};
      request.datagram.vector.destination = conversation_.responder;
      request.datagram.vector.global = true;
    }
    const auto buffer = node_.buffer(std::max<std::size_t>(request.length, 1));
    std::copy(message.data.begin(), message.data.end(), node_.bytes(buffer));
    send.sges = {{buffer.address, static_cast<std::uint32_t>(request.length), buffer.key}};
    posted_.push_back({&message, buffer});
    node_.sends.post(std::move(send));
    if (!node_.qp->ring_doorbell()) ++differences_["the doorbell was refused"];
    transmit();
  }

  void answer(const Step& step) {
    node_.device.handle_packet(now_,
                               {.path = step.path, .bytes = step.bytes, .icrc_is_right = true});
    transmit();
    now_ += 1us;
  }

  // The captured requester sent something again: so should ours, when its timer says so.
  void wait_for_timer() {
    const Time deadline = node_.device.next_deadline();
    if (deadline == kNever) return;
    now_ = std::max(now_, deadline);
    node_.device.handle_timer(now_);
    transmit();
  }

  void transmit() {
    while (const auto bytes = next_packet(node_.device, now_)) {
      ours_.push_back(text_of(*wire::parse_packet(*bytes)));
    }
  }

  void compare_requests() {
    const std::size_t count = std::min(ours_.size(), theirs_.size());
    for (std::size_t i = 0; i < count; ++i) {
      if (ours_[i] == theirs_[i]) continue;
      ++differences_[fmt::format("request {}: ours {:.100}, theirs {:.100}", i, ours_[i],
                                 theirs_[i])];
    }
    if (ours_.size() != theirs_.size()) {
      ++differences_[fmt::format("we send {} requests, they {}", ours_.size(), theirs_.size())];
    }
  }

  // --- what the program sees

  void check_completions() {
    if (conversation_.service != wire::Service::rc) return;
    const auto& completions = node_.send_completions.completions;
    const auto expected = expected_statuses();
    for (std::size_t i = 0; i < std::max(expected.size(), completions.size()); ++i) {
      const auto ours = i < completions.size() ? to_string(completions[i].status) : "nothing";
      const auto theirs = i < expected.size() ? to_string(expected[i]) : "nothing";
      if (ours != theirs) {
        ++differences_[fmt::format("request {} completes with {}, {} was answered", i, ours,
                                   theirs)];
      }
    }
    for (std::size_t i = 0; i < std::min(completions.size(), posted_.size()); ++i) {
      if (completions[i].status == CompletionStatus::success) check_data(posted_[i]);
    }
  }

  // What the captured answers make of the messages: those that were acknowledged succeed, one that
  // was refused fails, those behind it are flushed.
  [[nodiscard]] std::vector<CompletionStatus> expected_statuses() const {
    std::vector<CompletionStatus> statuses;
    const auto refusal = final_nak();
    const wire::Psn end = refusal ? refusal->psn() : acknowledged_end();
    for (const Posted& posted : posted_) {
      const Step& last = *posted.message->packets.back();
      const wire::Psn last_psn = last.psn() + (psns_of(last.packet, conversation_.mtu) - 1);
      if (last_psn.is_before(end)) {
        statuses.push_back(CompletionStatus::success);
      } else if (refusal) {
        const bool first = statuses.empty() || statuses.back() == CompletionStatus::success;
        statuses.push_back(first ? status_of(*refusal) : CompletionStatus::flushed);
      }
    }
    return statuses;
  }

  [[nodiscard]] const Step* final_nak() const {
    for (const auto& step : conversation_.steps) {
      if (!step->is_answer || !step->packet.info->has(wire::Header::aeth)) continue;
      const wire::Syndrome syndrome = step->packet.aeth.syndrome;
      if (syndrome.kind() == wire::Syndrome::Kind::nak && syndrome.value() != 0) return step.get();
    }
    return nullptr;
  }

  [[nodiscard]] static CompletionStatus status_of(const Step& refusal) {
    constexpr auto kFirst = static_cast<int>(CompletionStatus::remote_invalid_request);
    return static_cast<CompletionStatus>(kFirst + refusal.packet.aeth.syndrome.value() - 1);
  }

  [[nodiscard]] wire::Psn acknowledged_end() const {
    wire::Psn end = script_.messages.front().packets.front()->psn();
    for (std::size_t i = 0; i < script_.steps; ++i) {
      const auto& step = conversation_.steps[i];
      if (!step->is_answer) continue;
      const bool ack = !step->packet.info->has(wire::Header::aeth) ||
                       step->packet.aeth.syndrome.kind() == wire::Syndrome::Kind::ack;
      const wire::Psn reached = ack ? step->psn() + 1 : step->psn();
      if (end.is_before(reached)) end = reached;
    }
    return end;
  }

  struct Posted {
    const Message* message;
    test::Node::Buffer buffer;
  };

  // READs and atomics bring what the captured responder sent.
  void check_data(const Posted& posted) {
    const Step& request = *posted.message->packets.front();
    for (const auto& step : conversation_.steps) {
      const std::int32_t ahead = step->psn().ahead_of(request.psn());
      const auto psns = psns_of(request.packet, conversation_.mtu);
      if (!step->is_answer || ahead < 0 || static_cast<std::uint32_t>(ahead) >= psns) continue;
      const std::uint8_t* bytes =
          node_.bytes(posted.buffer) + static_cast<std::size_t>(ahead) * conversation_.mtu;
      const wire::Bytes payload = step->packet.payload;
      if (!std::equal(payload.begin(), payload.end(), bytes)) ++differences_["a READ's data"];
      if (!step->packet.info->has(wire::Header::atomic_ack_eth)) continue;
      std::uint64_t value = 0;
      std::memcpy(&value, bytes, sizeof(value));
      if (value != step->packet.atomic_result) ++differences_["an atomic's result"];
    }
  }

  const Conversation& conversation_;
  Script script_;
  test::Node node_;
  Time now_{1s};
  std::vector<Posted> posted_;
  std::vector<std::string> ours_;
  std::vector<std::string> theirs_;
  Differences differences_;
};

}  // namespace

Differences replay_to_requester(const Conversation& conversation) {
  return RequesterReplay(conversation).run();
}

}  // namespace urxe::replay
