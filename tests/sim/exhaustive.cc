#include "tests/sim/exhaustive.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

namespace urxe::test {

using namespace emulator;

namespace {

constexpr std::uint32_t kMtu = 256;
constexpr std::size_t kBufferSize = 4 * kMtu;
constexpr std::uint64_t kAdd = 5;

bool is_atomic(WorkOpcode opcode) {
  return opcode == WorkOpcode::compare_swap || opcode == WorkOpcode::fetch_add;
}

// It has one packet, whatever is asked for.
bool is_single(WorkOpcode opcode) {
  return is_atomic(opcode) || opcode == WorkOpcode::atomic_write || opcode == WorkOpcode::flush;
}

bool takes_receive(WorkOpcode opcode) {
  return opcode == WorkOpcode::send || opcode == WorkOpcode::send_with_immediate ||
         opcode == WorkOpcode::send_with_invalidate ||
         opcode == WorkOpcode::rdma_write_with_immediate;
}

// Not a whole number of packets, and not a multiple of four: the last packet is padded.
std::size_t size_of(const Conversation::Step& step) {
  if (step.opcode == WorkOpcode::flush) return 0;
  if (is_single(step.opcode)) return sizeof(std::uint64_t);
  return step.packets == 0 ? 0 : step.packets * kMtu - 37;
}

void fill(End& end, const Buffer& buffer, std::uint8_t seed) {
  static const auto kPattern = [] {
    std::array<std::uint8_t, kBufferSize + 256> pattern{};
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      pattern.at(i) = static_cast<std::uint8_t>(i * 41 + i / 251);
    }
    return pattern;
  }();
  std::memcpy(end.bytes(buffer), kPattern.data() + seed, buffer.size);
}

std::string to_string(const Completion& c) {
  return fmt::format("wr {} {} opcode {} bytes {} imm {:#x} inv {:#x} flags {:#x}", c.wr_id,
                     emulator::to_string(c.status), static_cast<int>(c.opcode), c.byte_count,
                     c.immediate, c.invalidated.value() != 0, c.flags.bits());
}

WorldOptions options_of(const Conversation& conversation, const std::vector<net::Rule>& faults) {
  // So many probes and retries that sixteen losses in a row are no reason to give up.
  WorldOptions options{.timeout = 20, .rules = faults};
  if (!conversation.tight) return options;
  options.device.initial_window = options.device.min_window = options.device.max_window = 1000;
  options.device.read_window = 2 * kMtu * options.read_atomic;
  return options;
}

// A world in which a conversation takes place.
class Stage {
 public:
  Stage(const Conversation& conversation, const std::vector<net::Rule>& faults)
      : conversation_(conversation), world_(options_of(conversation, faults)) {
    for (std::uint8_t i = 0; i < conversation.steps.size(); ++i) {
      locals_.push_back(world_.client().buffer(kBufferSize));
      remotes_.push_back(world_.server().buffer(kBufferSize));
      fill(world_.client(), locals_.back(), i);
      fill(world_.server(), remotes_.back(), static_cast<std::uint8_t>(100 + i));
      if (conversation.steps[i].opcode == WorkOpcode::send_with_invalidate) bind_window(i);
      if (takes_receive(conversation.steps[i].opcode)) {
        world_.server().post_receive(remotes_.back(), 1000 + i);
      }
    }
  }

  Outcome play() {
    for (std::uint8_t i = 0; i < conversation_.steps.size(); ++i) post(i);
    Outcome outcome;
    outcome.at_rest = world_.run();
    for (const auto& c : world_.client().sent.completions) outcome.sent.push_back(to_string(c));
    for (const auto& c : world_.server().received.completions) {
      outcome.received.push_back(to_string(c));
    }
    for (const Buffer& buffer : locals_) add_memory(outcome, world_.client(), buffer);
    for (const Buffer& buffer : remotes_) add_memory(outcome, world_.server(), buffer);
    add_memory(outcome, world_.server(), counter_);
    outcome.client_state = world_.client().qp->state();
    outcome.server_state = world_.server().qp->state();
    outcome.requests_held = world_.client().sends.held();
    outcome.receives_left = world_.server().receives.posted();
    for (const MemoryWindow* window : windows_) {
      outcome.windows_valid = outcome.windows_valid || window->binding().has_value();
    }
    return outcome;
  }

  [[nodiscard]] const net::Injector& injector() const { return world_.injector(); }

 private:
  void bind_window(std::uint8_t i) {
    End& server = world_.server();
    MemoryWindow* window = *server.host.device().create_window(*server.pd, WindowType::type2);
    const Buffer& buffer = remotes_.back();
    OwnedSend bind;
    bind.request.opcode = WorkOpcode::bind_window;
    bind.request.bind = {
        .address = buffer.address,
        .length = buffer.size,
        .region = wire::LKey{buffer.key},
        .window = wire::RKey{window->key()},
        .new_key = wire::RKey{(window->key() & ~0xFFU) | ((window->key() + 1) & 0xFF)},
        .access = kRemoteWrite};
    static_cast<void>(server.post(std::move(bind)));
    windows_.push_back(window);
    windows_of_step_.resize(i + std::size_t{1});
    windows_of_step_[i] = window;
  }

  void post(std::uint8_t i) {
    const Conversation::Step& step = conversation_.steps[i];
    OwnedSend send = PairWorld::request(step.opcode, locals_[i], size_of(step),
                                        is_atomic(step.opcode) ? counter_ : remotes_[i]);
    send.request.wr_id = i + 1;
    if (conversation_.signalled) send.request.flags = kSignaled;
    send.request.immediate = 0xABCD0000U + i;
    send.request.compare_or_add = kAdd;
    send.request.flush = {.length = kBufferSize, .placement = wire::Feth::kGlobalVisibility};
    if (step.opcode == WorkOpcode::compare_swap) {
      // What stands there, so that the first one swaps.
      std::memcpy(&send.request.compare_or_add, world_.server().bytes(counter_), 8);
      send.request.swap = 0x1122334455667788;
    }
    if (i < windows_of_step_.size() && windows_of_step_[i] != nullptr) {
      send.request.invalidate = wire::RKey{windows_of_step_[i]->key()};
    }
    static_cast<void>(world_.client().post(std::move(send)));
  }

  static void add_memory(Outcome& outcome, End& end, const Buffer& buffer) {
    const std::uint8_t* bytes = end.bytes(buffer);
    outcome.memory.insert(outcome.memory.end(), bytes, bytes + buffer.size);
  }

  const Conversation& conversation_;
  PairWorld world_;
  std::vector<Buffer> locals_;
  std::vector<Buffer> remotes_;
  // All atomics use one place, and nothing else does: a READ that is answered again may see what
  // came after it, which is no fault.
  Buffer counter_ = world_.server().buffer(sizeof(std::uint64_t));
  std::vector<MemoryWindow*> windows_;
  std::vector<MemoryWindow*> windows_of_step_;
};

}  // namespace

std::string to_string(const Conversation& conversation) {
  std::string text;
  for (const Conversation::Step& step : conversation.steps) {
    text += fmt::format("{} of {} packets, ", to_string(step.opcode), step.packets);
  }
  if (conversation.tight) text += "tight windows, ";
  return text + (conversation.signalled ? "signalled" : "not signalled");
}

std::string to_string(const Outcome& outcome) {
  std::string text =
      fmt::format("{}at rest, client {}, server {}, {} requests held, {} receives left, window {}",
                  outcome.at_rest ? "" : "not ", to_string(outcome.client_state),
                  to_string(outcome.server_state), outcome.requests_held, outcome.receives_left,
                  outcome.windows_valid);
  for (const std::string& completion : outcome.sent) text += "\n  client: " + completion;
  for (const std::string& completion : outcome.received) text += "\n  server: " + completion;
  return text;
}

const std::vector<WorkOpcode>& rc_verbs() {
  static const std::vector<WorkOpcode> kVerbs{
      WorkOpcode::send,
      WorkOpcode::send_with_immediate,
      WorkOpcode::send_with_invalidate,
      WorkOpcode::rdma_write,
      WorkOpcode::rdma_write_with_immediate,
      WorkOpcode::rdma_read,
      WorkOpcode::compare_swap,
      WorkOpcode::fetch_add,
      WorkOpcode::atomic_write,
      WorkOpcode::flush,
  };
  return kVerbs;
}

namespace {

void add_single_verb(std::vector<Conversation>& conversations, WorkOpcode verb) {
  for (std::uint32_t packets = 0; packets <= 4; ++packets) {
    if (is_single(verb) && packets != 1) continue;
    for (const std::size_t count : {1, 2}) {
      for (const bool signalled : {true, false}) {
        conversations.push_back({.steps = std::vector(count, Conversation::Step{verb, packets}),
                                 .signalled = signalled});
      }
    }
  }
}

void add_pairs(std::vector<Conversation>& conversations, WorkOpcode first) {
  const auto packets = [](WorkOpcode verb) { return is_single(verb) ? 1U : 2U; };
  for (const WorkOpcode second : rc_verbs()) {
    if (first == second) continue;
    conversations.push_back({.steps = {{first, packets(first)}, {second, packets(second)}}});
  }
}

void add_tight(std::vector<Conversation>& conversations, WorkOpcode verb) {
  if (is_single(verb)) return;
  for (const std::uint32_t packets : {3U, 4U}) {
    conversations.push_back(
        {.steps = {{verb, packets}, {WorkOpcode::rdma_write, 2}}, .tight = true});
  }
}

}  // namespace

std::vector<Conversation> conversations_of(WorkOpcode verb) {
  std::vector<Conversation> conversations;
  add_single_verb(conversations, verb);
  add_pairs(conversations, verb);
  add_tight(conversations, verb);
  return conversations;
}

Played converse(const Conversation& conversation, const std::vector<net::Rule>& faults) {
  Stage stage(conversation, faults);
  Played played{.outcome = stage.play(), .matches = {}};
  for (std::size_t i = 0; i < faults.size(); ++i) {
    played.matches.push_back(stage.injector().counters(i).matches);
  }
  return played;
}

}  // namespace urxe::test
