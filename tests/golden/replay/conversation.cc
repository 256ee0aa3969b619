#include "tests/golden/replay/conversation.h"

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include <fmt/core.h>

#include "net/wire/frame.h"
#include "tests/support/frames.h"

namespace urxe::replay {
namespace {

using wire::Bytes;

// How far behind the last request of a capture an answer may belong to it, if the sniffer lost
// packets.
constexpr std::uint32_t kPsnSlack = 64;
constexpr std::uint32_t kUsualMtu = 1024;

// Packets to one queue pair, either requests or answers.
struct Flow {
  wire::Path path;
  wire::Qpn destination;
  bool answers = false;
  std::vector<std::size_t> steps;
};

using Steps = std::vector<std::unique_ptr<Step>>;

Steps steps_of(const std::vector<test::FrameBytes>& frames) {
  Steps steps;
  for (const auto& ethernet : frames) {
    const auto frame = wire::parse_frame(test::ethernet_payload(ethernet));
    if (!frame) continue;
    auto step = std::make_unique<Step>();
    step->path = frame->path;
    step->bytes.assign(frame->roce.begin(), frame->roce.end());
    const auto packet = wire::parse_packet(step->bytes);
    if (!packet || packet->bth.destination <= wire::kGsiQpn) continue;
    step->packet = *packet;
    step->is_answer = packet->info->is_response();
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<Flow> flows_of(const Steps& steps) {
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = *steps[i];
    const auto same = [&](const Flow& flow) {
      return flow.path.source == step.path.source &&
             flow.path.destination == step.path.destination &&
             flow.destination == step.packet.bth.destination && flow.answers == step.is_answer;
    };
    auto flow = std::find_if(flows.begin(), flows.end(), same);
    if (flow == flows.end()) {
      flows.push_back({step.path, step.packet.bth.destination, step.is_answer, {}});
      flow = flows.end() - 1;
    }
    flow->steps.push_back(i);
  }
  return flows;
}

// How many of the answers fit the requests by PSN.
std::size_t fitting(const Steps& steps, const Flow& requests, const Flow& answers) {
  if (requests.path.source != answers.path.destination ||
      requests.path.destination != answers.path.source) {
    return 0;
  }
  const wire::Psn first = steps[requests.steps.front()]->psn();
  std::uint32_t count = kPsnSlack;
  for (const std::size_t i : requests.steps) {
    count =
        std::max(count, static_cast<std::uint32_t>(std::max(0, steps[i]->psn().ahead_of(first))) +
                            kPsnSlack);
  }
  return static_cast<std::size_t>(
      std::count_if(answers.steps.begin(), answers.steps.end(),
                    [&](std::size_t i) { return steps[i]->psn().in_window(first, count); }));
}

const Flow* answers_to(const Steps& steps, const std::vector<Flow>& flows, const Flow& requests) {
  const Flow* best = nullptr;
  std::size_t most = 0;
  for (const Flow& flow : flows) {
    if (!flow.answers) continue;
    const std::size_t count = fitting(steps, requests, flow);
    if (count > most) std::tie(best, most) = std::tuple(&flow, count);
  }
  return best;
}

std::uint32_t mtu_of(const Steps& steps) {
  std::uint32_t largest = 0;
  for (const auto& step : steps) {
    const auto size = static_cast<std::uint32_t>(step->packet.payload.size());
    if (step->packet.info->payload == wire::PayloadRule::exact_mtu) return size;
    largest = std::max(largest, size);
  }
  std::uint32_t mtu = kUsualMtu;
  while (mtu < largest) mtu *= 2;
  return mtu;
}

std::unique_ptr<Step> copy_of(const Step& step) {
  auto copy = std::make_unique<Step>(step);
  copy->packet = *wire::parse_packet(copy->bytes);
  return copy;
}

wire::Position position_of(std::uint32_t index, std::uint32_t count) {
  if (index == 0) return wire::Position::first;
  return index + 1 == count ? wire::Position::last : wire::Position::middle;
}

// Whether the captured requests can be what they are if the connection began with this PSN.
bool is_plausible(const Conversation& conversation, std::uint32_t message_packets,
                  wire::Psn first) {
  return std::all_of(conversation.steps.begin(), conversation.steps.end(), [&](const auto& step) {
    const auto index = static_cast<std::uint32_t>(step->psn().ahead_of(first)) % message_packets;
    return step->is_answer || step->packet.info->position == position_of(index, message_packets);
  });
}

// Where the connection began: an answer tells how many messages came before it, or else the first
// request what it is.
wire::Psn first_psn(const Conversation& conversation, std::uint32_t message_packets) {
  wire::Psn first = conversation.steps.front()->psn();
  for (const auto& step : conversation.steps) {
    if (!step->is_answer) continue;
    first = step->psn() + 1 - step->packet.aeth.msn.value() * message_packets;
    break;
  }
  for (std::uint32_t tries = 0; tries < message_packets; ++tries, first = first - 1) {
    if (is_plausible(conversation, message_packets, first)) return first;
  }
  throw std::runtime_error("not all messages have " + std::to_string(message_packets) + " packets");
}

std::unique_ptr<Step> made_up_send(const Conversation& conversation, const Step& model,
                                   std::uint32_t index, std::uint32_t count, wire::Psn psn) {
  const wire::Position position = position_of(index, count);
  wire::Packet packet = test::packet_of(
      *wire::data_opcode(wire::Service::rc, wire::Operation::send, position, wire::Trailer::none));
  packet.bth.destination = model.packet.bth.destination;
  packet.bth.psn = psn;
  packet.bth.ack_request = position == wire::Position::last;
  auto step = std::make_unique<Step>();
  step->made_up = true;
  step->path = model.path;
  step->bytes.resize(wire::kMaxHeaderSize);
  step->bytes.resize(wire::write_headers(packet, step->bytes) + conversation.mtu + wire::kIcrcSize);
  step->packet = *wire::parse_packet(step->bytes);
  return step;
}

}  // namespace

Answer answer_of(const wire::Packet& packet) {
  Answer answer{.opcode = packet.info->opcode, .psn = packet.bth.psn};
  if (packet.info->has(wire::Header::aeth)) {
    const bool ack = packet.aeth.syndrome.kind() == wire::Syndrome::Kind::ack;
    answer.syndrome = ack ? wire::Syndrome::ack() : packet.aeth.syndrome;
    answer.msn = packet.aeth.msn;
  }
  if (packet.info->has(wire::Header::atomic_ack_eth)) answer.atomic_result = packet.atomic_result;
  answer.payload.assign(packet.payload.begin(), packet.payload.end());
  return answer;
}

std::string to_string(const Answer& answer) {
  std::string text = fmt::format("{}", wire::info(answer.opcode).name);
  switch (answer.syndrome.kind()) {
    case wire::Syndrome::Kind::ack:
      break;
    case wire::Syndrome::Kind::rnr_nak:
      text += fmt::format(", RNR NAK {}", answer.syndrome.value());
      break;
    default:
      text += fmt::format(", NAK {}", answer.syndrome.value());
  }
  return text;
}

std::string Conversation::name() const {
  return fmt::format("{} to {} QP {:#x}", requester.to_string(), responder.to_string(),
                     responder_qpn.value());
}

std::size_t Conversation::answers() const {
  return static_cast<std::size_t>(
      std::count_if(steps.begin(), steps.end(), [](const auto& step) { return step->is_answer; }));
}

std::vector<Conversation> conversations_of(const std::vector<test::FrameBytes>& frames) {
  const Steps steps = steps_of(frames);
  const std::vector<Flow> flows = flows_of(steps);
  std::vector<Conversation> conversations;
  for (const Flow& requests : flows) {
    if (requests.answers) continue;
    Conversation conversation{.service = steps[requests.steps.front()]->packet.info->service,
                              .requester = requests.path.source,
                              .responder = requests.path.destination,
                              .responder_qpn = requests.destination};
    std::vector<std::size_t> indexes = requests.steps;
    if (const Flow* answers = answers_to(steps, flows, requests)) {
      conversation.requester_qpn = answers->destination;
      indexes.insert(indexes.end(), answers->steps.begin(), answers->steps.end());
      std::sort(indexes.begin(), indexes.end());
    }
    for (const std::size_t i : indexes) conversation.steps.push_back(copy_of(*steps[i]));
    conversation.mtu = mtu_of(conversation.steps);
    conversations.push_back(std::move(conversation));
  }
  return conversations;
}

void fill_gaps(Conversation& conversation, std::uint32_t message_packets) {
  const auto request = std::find_if(conversation.steps.begin(), conversation.steps.end(),
                                    [](const auto& step) { return !step->is_answer; });
  const std::unique_ptr<Step> model = copy_of(**request);
  const wire::Psn first = first_psn(conversation, message_packets);
  Steps filled;
  wire::Psn expected = first;
  for (auto& step : conversation.steps) {
    // An answer stands behind its request.
    const wire::Psn until = step->is_answer ? step->psn() + 1 : step->psn();
    for (; expected.is_before(until); ++expected) {
      const auto index = static_cast<std::uint32_t>(expected.ahead_of(first)) % message_packets;
      filled.push_back(made_up_send(conversation, *model, index, message_packets, expected));
    }
    if (!step->is_answer && step->psn() == expected) ++expected;
    filled.push_back(std::move(step));
  }
  conversation.steps = std::move(filled);
}

void sort_by_psn(Conversation& conversation) {
  const wire::Psn origin = conversation.steps.front()->psn();
  std::stable_sort(conversation.steps.begin(), conversation.steps.end(),
                   [&](const auto& a, const auto& b) {
                     return std::tuple(a->is_answer, a->psn().ahead_of(origin)) <
                            std::tuple(b->is_answer, b->psn().ahead_of(origin));
                   });
  // What is answered after the last request was not captured.
  const auto answer = std::find_if(conversation.steps.begin(), conversation.steps.end(),
                                   [](const auto& step) { return step->is_answer; });
  const wire::Psn end = (*(answer - 1))->psn() + 1;
  conversation.steps.erase(
      std::find_if(answer, conversation.steps.end(),
                   [&](const auto& step) { return !step->psn().is_before(end); }),
      conversation.steps.end());
}

std::uint32_t psns_of(const wire::Packet& request, std::uint32_t mtu) {
  if (request.info->operation != wire::Operation::rdma_read_request) return 1;
  return std::max(1U, (request.reth.length + mtu - 1) / mtu);
}

}  // namespace urxe::replay
