// Peers that are not there, not ready, or not the ones that they were.
#include <catch2/catch.hpp>

#include "tests/support/outcomes.h"

namespace urxe::test {
namespace {

using namespace emulator;

using Statuses = std::vector<CompletionStatus>;
constexpr auto kOk = CompletionStatus::success;
constexpr auto kFlushed = CompletionStatus::flushed;
constexpr auto kRetry = CompletionStatus::retry_exceeded;
constexpr auto kRnr = CompletionStatus::rnr_retry_exceeded;

PairOptions quick() {
  PairOptions options;
  options.timeout = 12;  // 16.8 ms
  options.retry_count = 3;
  return options;
}

constexpr Duration kTimeout12{4096 << 12};

// A client whose requests go nowhere.
struct Alone {
  explicit Alone(const PairOptions& options = quick())
      : pair(options), local(pair.client().buffer(8192)), remote(pair.server().buffer(8192)) {
    pair.fate = [this](const WirePacket& packet) { return deaf && packet.from == 0 ? 0 : 1; };
  }
  void post(WorkOpcode opcode, std::size_t length = 8) {
    REQUIRE(pair.post(0, opcode, local, length, remote));
  }
  void check_given_up() {
    CHECK(statuses(pair.client().send_completions) == Statuses{kRetry, kFlushed});
    CHECK(pair.client().send_completions.completions.at(0).vendor_error ==
          static_cast<std::uint32_t>(VendorError::no_answer));
    CHECK(pair.client().qp->state() == QpState::error);
    CHECK(take_events(pair.client().device).empty());
  }
  DevicePair pair;
  Node::Buffer local;
  Node::Buffer remote;
  bool deaf = true;
};

// How long a request lives that gets no answer: each retry waits twice as long as the one before,
// within four times what was asked for and half a second.
Duration lifetime(Duration first, int retries) {
  const Duration most = std::max(first, std::min(4 * first, Duration{500ms}));
  Duration sum{};
  for (int i = 0; i <= retries; ++i) sum += std::min(first * (1 << i), most);
  return sum;
}

TEST_CASE("a peer that cannot be reached ends requests of every kind after the last retry") {
  const auto opcode = GENERATE(WorkOpcode::send, WorkOpcode::rdma_write, WorkOpcode::rdma_read,
                               WorkOpcode::fetch_add);
  const std::uint8_t timeout = GENERATE(8, 14, 18, 21);
  PairOptions options = quick();
  options.timeout = timeout;
  Alone alone(options);
  alone.post(opcode);
  alone.post(WorkOpcode::send);
  const Time start = alone.pair.now();
  alone.pair.run(1000s);
  alone.check_given_up();
  const Duration interval = std::max(Duration{4096LL << timeout}, DeviceOptions{}.min_ack_timeout);
  const Duration elapsed = alone.pair.now() - start;
  CHECK(elapsed >= lifetime(interval, 3));
  CHECK(elapsed < lifetime(interval, 3) + interval);
  CHECK(alone.pair.client().device.counters().timeouts == 4);
  CHECK(alone.pair.client().device.counters().retries_exceeded == 1);
}

TEST_CASE("retry_cnt says how many timeouts a request survives") {
  const std::uint8_t retries = GENERATE(0, 1, 2, 3, 4, 5, 6, 7);
  PairOptions options = quick();
  options.retry_count = retries;
  Alone alone(options);
  alone.post(WorkOpcode::send);
  alone.post(WorkOpcode::send);
  const Time start = alone.pair.now();
  alone.pair.run(1000s);
  alone.check_given_up();
  CHECK(alone.pair.client().device.counters().timeouts == retries + 1U);
  CHECK(alone.pair.now() - start >= lifetime(kTimeout12, retries));
  CHECK(alone.pair.now() - start < lifetime(kTimeout12, retries) + kTimeout12);
}

TEST_CASE("progress gives all retries back") {
  PairOptions options = quick();
  options.retry_count = 1;
  Alone alone(options);
  // Of each message all is lost until just before the timeout.
  for (int message = 0; message < 5; ++message) {
    alone.deaf = true;
    alone.post(WorkOpcode::send);
    alone.pair.post_receive(1, alone.remote);
    alone.pair.run(kTimeout12 - 1ms);
    alone.deaf = false;
    alone.pair.run(1s);
  }
  CHECK(statuses(alone.pair.client().send_completions) == Statuses(5, kOk));
  CHECK(alone.pair.client().device.counters().timeouts == 5);
}

TEST_CASE("timeout 0 waits for ever, and goes on when the peer comes back") {
  PairOptions options = quick();
  options.timeout = 0;
  const auto opcode = GENERATE(WorkOpcode::rdma_write, WorkOpcode::rdma_read);
  Alone alone(options);
  alone.post(opcode);
  alone.pair.run(3600s);
  CHECK(alone.pair.client().send_completions.completions.empty());
  CHECK(alone.pair.client().qp->state() == QpState::ready_to_send);
  // It asks now and then, but does not storm.
  CHECK(alone.pair.log.size() < 2000);
  alone.deaf = false;
  alone.pair.run(10s);
  CHECK(statuses(alone.pair.client().send_completions) == Statuses{kOk});
}

TEST_CASE("each timeout code waits as long as it says, but at least as long as the floor") {
  const std::uint8_t code = GENERATE(range(1, 32));
  PairOptions options = quick();
  options.timeout = code;
  options.retry_count = 0;
  Alone alone(options);
  alone.post(WorkOpcode::send);
  const Time start = alone.pair.now();
  alone.pair.run(10000s);
  CHECK(statuses(alone.pair.client().send_completions) == Statuses{kRetry});
  const Duration asked{4096LL << code};
  CHECK(alone.pair.now() - start == std::max(asked, DeviceOptions{}.min_ack_timeout));
}

// --- the peer's queue pair is not in a state to answer

TEST_CASE("a peer whose queue pair is gone, in RESET or in ERROR does not answer") {
  DevicePair pair(quick());
  QueuePair& server = *pair.server().qp;
  SECTION("gone") { REQUIRE(pair.server().device.destroy(server)); }
  SECTION("RESET") { step_to(server, {}, QpState::reset); }
  SECTION("ERROR") { step_to(server, {}, QpState::error); }
  SECTION("INIT") {
    step_to(server, {}, QpState::reset);
    step_to(server, pair.attributes(1), QpState::init);
  }
  const auto local = pair.client().buffer(8);
  REQUIRE(pair.post(0, WorkOpcode::send, local, 8));
  pair.run(100s);
  CHECK(statuses(pair.client().send_completions) == Statuses{kRetry});
  for (const WirePacket& packet : pair.log) CHECK(packet.from == 0);
  const Counters& counters = pair.server().device.counters();
  CHECK(counters.unknown_qp + counters.wrong_state == pair.log.size());
}

TEST_CASE("a peer in RTR answers, and hears that the connection is established") {
  DevicePair pair;
  QueuePair& server = *pair.server().qp;
  step_to(server, {}, QpState::reset);
  step_to(server, pair.attributes(1), QpState::init);
  step_to(server, pair.attributes(1), QpState::ready_to_receive);
  const auto local = pair.client().buffer(8);
  const auto remote = pair.server().buffer(8);
  REQUIRE(pair.post(0, WorkOpcode::rdma_write, local, 8, remote));
  REQUIRE(pair.post(0, WorkOpcode::rdma_write, local, 8, remote));
  pair.run();
  CHECK(statuses(pair.client().send_completions) == Statuses{kOk, kOk});
  CHECK(take_events(pair.server().device) ==
        std::vector{AsyncEventType::communication_established});
}

TEST_CASE("a packet from another address, or to another one, is not of the connection") {
  DevicePair pair;
  const auto remote = pair.server().buffer(8);
  wire::Packet packet;
  packet.info = &wire::info(wire::Opcode::rc_write_only);
  packet.bth = {.opcode = 0x0A,
                .destination = pair.server().qp->qpn(),
                .psn = wire::Psn{PairOptions{}.first_psn}};
  packet.reth = {.address = remote.address, .rkey = wire::RKey{remote.key}, .length = 4};
  std::vector<std::uint8_t> bytes(36, 0xFF);
  wire::write_headers(packet, bytes);
  wire::Path path = pair.client().qp->path();
  SECTION("source") { path.source = wire::IpAddress::from_v4(0x0A000009); }
  SECTION("destination") { path.destination = wire::IpAddress::from_v4(0x0A000009); }
  pair.server().device.handle_packet(pair.now(),
                                     {.path = path, .bytes = bytes, .icrc_is_right = true});
  CHECK(pair.server().device.counters().wrong_address == 1);
  CHECK(pair.server().bytes(remote)[0] == 0);
}

// --- another life of the peer

TEST_CASE("a peer that restarted with the same number is not mistaken for the old one") {
  DevicePair pair(quick());
  const auto local = pair.client().buffer(8);
  const auto remote = pair.server().buffer(8);
  REQUIRE(pair.post(0, WorkOpcode::rdma_write, local, 8, remote));
  pair.run();
  REQUIRE(statuses(pair.client().send_completions) == Statuses{kOk});
  // It comes up again, expecting other PSNs.
  const std::int32_t shift = GENERATE(-1000, 1000);
  QpAttributes attributes = pair.attributes(1);
  attributes.receive_psn = wire::Psn{attributes.receive_psn.value() + static_cast<unsigned>(shift)};
  attributes.send_psn = wire::Psn{0x700000};
  step_to(*pair.server().qp, {}, QpState::reset);
  bring_up(*pair.server().qp, attributes);
  std::memset(pair.server().bytes(remote), 0xEE, 8);
  REQUIRE(pair.post(0, WorkOpcode::rdma_write, local, 8, remote));
  pair.run(100s);
  CHECK(statuses(pair.client().send_completions) == Statuses{kOk, kRetry});
  CHECK(pair.server().bytes(remote)[0] == 0xEE);
  CHECK(pair.server().qp->state() == QpState::ready_to_send);
}

TEST_CASE("old packets of a previous connection change nothing") {
  DevicePair pair(quick());
  const auto local = pair.client().buffer(3000);
  const auto remote = pair.server().buffer(3000);
  const auto counter = pair.server().buffer(8);
  std::memset(pair.client().bytes(local), 0x11, local.size);
  pair.post_receive(1, remote);
  REQUIRE(pair.post(0, WorkOpcode::rdma_write, local, 3000, remote));
  REQUIRE(pair.post(0, WorkOpcode::fetch_add, local, 8, counter,
                    [](OwnedSend& send) { send.request.compare_or_add = 1; }));
  REQUIRE(pair.post(0, WorkOpcode::send, local, 100));
  REQUIRE(pair.post(0, WorkOpcode::rdma_read, local, 3000, remote));
  pair.run();
  REQUIRE(statuses(pair.client().send_completions) == Statuses(4, kOk));
  const std::vector<WirePacket> old = pair.log;

  // Both ends start anew, far away from the old PSNs in either direction.
  const unsigned first = GENERATE(0x200000U, 0xE00000U);
  for (int i = 0; i < 2; ++i) {
    QpAttributes attributes = pair.attributes(i);
    attributes.send_psn = wire::Psn{first};
    attributes.receive_psn = wire::Psn{first};
    step_to(*pair.node(i).qp, {}, QpState::reset);
    bring_up(*pair.node(i).qp, attributes);
  }
  std::memset(pair.server().bytes(remote), 0xEE, remote.size);
  std::memset(pair.client().bytes(local), 0x22, local.size);
  pair.post_receive(1, remote, 99);
  // New requests are under way while the old packets come.
  REQUIRE(pair.post(0, WorkOpcode::rdma_write, local, 8, remote));
  pair.transmit();
  for (const WirePacket& packet : old) {
    pair.node(1 - packet.from)
        .device.handle_packet(pair.now(),
                              {.path = packet.path, .bytes = packet.bytes, .icrc_is_right = true});
  }
  CHECK(pair.server().bytes(remote)[0] == 0xEE);
  pair.run(100s);
  CHECK(statuses(pair.client().send_completions) == Statuses(5, kOk));
  CHECK(pair.server().receive_completions.completions.size() == 1);
  CHECK(pair.server().bytes(remote)[7] == 0x22);
  CHECK(pair.server().bytes(remote)[8] == 0xEE);
  std::uint64_t value = 0;
  std::memcpy(&value, pair.server().bytes(counter), 8);
  CHECK(value == 1);
  CHECK(pair.server().qp->state() == QpState::ready_to_send);
}

// --- receiver not ready

TEST_CASE("rnr_retry says how often a request is sent to a receiver that is not ready") {
  const std::uint8_t retries = GENERATE(0, 1, 2, 3, 4, 5, 6);
  PairOptions options = quick();
  options.rnr_retry = retries;
  DevicePair pair(options);
  const auto local = pair.client().buffer(8);
  REQUIRE(pair.post(0, WorkOpcode::send, local, 8));
  REQUIRE(pair.post(0, WorkOpcode::rdma_write, local, 8, pair.server().buffer(8)));
  pair.run(100s);
  CHECK(statuses(pair.client().send_completions) == Statuses{kRnr, kFlushed});
  CHECK(acknowledgements(pair, 1).size() == retries + 1U);
  CHECK(pair.client().device.counters().rnr_retries_exceeded == 1);
  CHECK(pair.client().qp->state() == QpState::error);
  CHECK(pair.server().qp->state() == QpState::ready_to_send);
  CHECK(take_events(pair.server().device).empty());
}

TEST_CASE("rnr_retry 7 is for ever") {
  PairOptions options = quick();
  options.rnr_retry = 7;
  DevicePair pair(options);
  const auto local = pair.client().buffer(8);
  REQUIRE(pair.post(0, WorkOpcode::send, local, 8));
  pair.run(10s);
  CHECK(acknowledgements(pair, 1).size() > 1000);
  CHECK(pair.client().send_completions.completions.empty());
  pair.post_receive(1, pair.server().buffer(8));
  pair.run(1s);
  CHECK(statuses(pair.client().send_completions) == Statuses{kOk});
}

TEST_CASE("a requester waits as long as the code of an RNR NAK says") {
  const std::uint8_t code = GENERATE(range(0, 32));
  PairOptions options = quick();
  options.min_rnr_timer = code;
  options.rnr_retry = 1;
  DevicePair pair(options);
  const auto local = pair.client().buffer(8);
  REQUIRE(pair.post(0, WorkOpcode::send, local, 8));
  pair.run(100s);
  REQUIRE(statuses(pair.client().send_completions) == Statuses{kRnr});
  CHECK(acknowledgements(pair, 1).at(0).syndrome == wire::Syndrome::rnr_nak(code));
  const auto sent = requests(pair, 0);
  REQUIRE(sent.size() == 2);
  const Duration round_trip = 20us;
  CHECK(sent[1].sent - sent[0].sent == round_trip + wire::rnr_delay(code));
}

TEST_CASE("a WRITE with immediate waits for a receive only with its last packet") {
  DevicePair pair;
  const auto local = pair.client().buffer(3000);
  const auto remote = pair.server().buffer(3000);
  std::memset(pair.client().bytes(local), 0x33, local.size);
  REQUIRE(pair.post(0, WorkOpcode::rdma_write_with_immediate, local, 3000, remote));
  pair.run(1ms);
  CHECK(pair.server().bytes(remote)[2047] == 0x33);
  CHECK(pair.server().bytes(remote)[2048] == 0);
  CHECK(pair.server().device.counters().sent_rnr_naks > 0);
  pair.post_receive(1, remote);
  pair.run();
  CHECK(statuses(pair.client().send_completions) == Statuses{kOk});
  CHECK(statuses(pair.server().receive_completions) == Statuses{kOk});
  CHECK(pair.server().bytes(remote)[2999] == 0x33);
}

// --- bad responses

struct Asking {
  Asking() : local(pair.client().buffer(4096)), remote(pair.server().buffer(4096)) {
    pair.fate = [](const WirePacket&) { return 0; };
  }
  void check_bad_response(VendorError why) {
    CHECK(statuses(pair.client().send_completions) ==
          Statuses{CompletionStatus::bad_response, kFlushed});
    CHECK(pair.client().send_completions.completions[0].vendor_error ==
          static_cast<std::uint32_t>(why));
    CHECK(pair.client().qp->state() == QpState::error);
    CHECK(pair.server().qp->state() == QpState::ready_to_send);
  }
  void ask(WorkOpcode opcode, std::size_t length) {
    REQUIRE(pair.post(0, opcode, local, length, remote));
    REQUIRE(pair.post(0, WorkOpcode::send, local, 8));
    pair.transmit();
  }
  void answer(wire::Opcode opcode, std::size_t payload, std::uint32_t offset = 0) {
    wire::Packet packet;
    packet.info = &wire::info(opcode);
    packet.bth.psn = wire::Psn{PairOptions{}.first_psn} + offset;
    packet.aeth.syndrome = wire::Syndrome::ack();
    pair.inject(0, packet, std::vector<std::uint8_t>(payload));
  }
  DevicePair pair;
  Node::Buffer local;
  Node::Buffer remote;
};

TEST_CASE("a READ response of the wrong length is a bad response") {
  struct Wrong {
    wire::Opcode opcode;
    std::size_t payload;
  };
  const Wrong wrong = GENERATE(Wrong{wire::Opcode::rc_read_response_first, 1020},
                               Wrong{wire::Opcode::rc_read_response_first, 1028},
                               Wrong{wire::Opcode::rc_read_response_only, 0});
  Asking asking;
  asking.ask(WorkOpcode::rdma_read, 3000);
  asking.answer(wrong.opcode, wrong.payload);
  asking.check_bad_response(VendorError::bad_response_length);
}

TEST_CASE("a READ response to a request that is no READ is a bad response") {
  const auto opcode = GENERATE(WorkOpcode::rdma_write, WorkOpcode::fetch_add);
  Asking asking;
  asking.ask(opcode, 8);
  asking.answer(wire::Opcode::rc_read_response_only, 8);
  asking.check_bad_response(VendorError::response_without_request);
}

TEST_CASE("an atomic response to a request that is no atomic is a bad response") {
  Asking asking;
  asking.ask(GENERATE(WorkOpcode::rdma_write, WorkOpcode::rdma_read), 8);
  asking.answer(wire::Opcode::rc_atomic_acknowledge, 0);
  asking.check_bad_response(VendorError::response_without_request);
}

TEST_CASE("an answer to a request that was never sent is counted and ignored") {
  Asking asking;
  asking.ask(WorkOpcode::rdma_read, 8);
  const auto opcode = GENERATE(wire::Opcode::rc_acknowledge, wire::Opcode::rc_read_response_only,
                               wire::Opcode::rc_atomic_acknowledge);
  const std::uint32_t offset = GENERATE(2U, 100U, 0xFFFFFFU, 0x800000U);
  asking.answer(opcode, 0, offset);
  CHECK(asking.pair.client().send_completions.completions.empty());
  CHECK(asking.pair.client().device.counters().stray_responses == 1);
  CHECK(asking.pair.client().qp->state() == QpState::ready_to_send);
}

TEST_CASE("an acknowledgement with a reserved syndrome or NAK code is counted and ignored") {
  Asking asking;
  asking.ask(WorkOpcode::rdma_write, 8);
  wire::Packet packet;
  packet.info = &wire::info(wire::Opcode::rc_acknowledge);
  packet.bth.psn = wire::Psn{PairOptions{}.first_psn};
  packet.aeth.syndrome = wire::Syndrome{
      GENERATE(std::uint8_t{0x40}, std::uint8_t{0x64}, std::uint8_t{0x65}, std::uint8_t{0x7F})};
  asking.pair.inject(0, packet);
  CHECK(asking.pair.client().send_completions.completions.empty());
  CHECK(asking.pair.client().device.counters().malformed_packets == 1);
  CHECK(asking.pair.client().qp->state() == QpState::ready_to_send);
}

// --- flush

TEST_CASE("a queue pair in error flushes everything in order, and what is posted later at once") {
  DevicePair pair;
  const auto local = pair.client().buffer(64);
  pair.fate = [](const WirePacket&) { return 0; };
  for (std::uint64_t i = 0; i < 5; ++i) {
    REQUIRE(pair.post(0, WorkOpcode::send, local, 8, {},
                      [i](OwnedSend& send) { send.request.wr_id = i; }));
    pair.post_receive(0, local, 100 + i);
  }
  pair.transmit();
  step_to(*pair.client().qp, {}, QpState::error);
  REQUIRE(pair.post(0, WorkOpcode::send, local, 8, {},
                    [](OwnedSend& send) { send.request.wr_id = 5; }));
  pair.post_receive(0, local, 105);
  pair.client().device.flush_posted_receives();
  const auto check = [](const CompletionDouble& sink, std::uint64_t first) {
    REQUIRE(sink.completions.size() == 6);
    for (std::uint64_t i = 0; i < 6; ++i) {
      CHECK(sink.completions[i].wr_id == first + i);
      CHECK(sink.completions[i].status == kFlushed);
    }
  };
  check(pair.client().send_completions, 0);
  check(pair.client().receive_completions, 100);
  CHECK(pair.client().device.next_deadline() == kNever);
  CHECK(take_events(pair.client().device).empty());
}

TEST_CASE("a program that posts a receive at each flushed one does not keep the device busy") {
  DevicePair pair;
  const auto local = pair.client().buffer(64);
  for (std::uint64_t i = 0; i < 5; ++i) pair.post_receive(0, local, i);
  std::uint64_t posted = 5;
  CompletionDouble& sink = pair.client().receive_completions;
  sink.after_push = [&] {
    if (posted < 1000) pair.post_receive(0, local, posted++);
  };
  step_to(*pair.client().qp, {}, QpState::error);
  CHECK(sink.completions.size() == 5);
  pair.client().qp->flush_posted_receives();
  CHECK(sink.completions.size() == 10);
}

TEST_CASE("a reset throws everything away without a word") {
  DevicePair pair;
  const auto local = pair.client().buffer(64);
  pair.fate = [](const WirePacket&) { return 0; };
  REQUIRE(pair.post(0, WorkOpcode::send, local, 8));
  pair.post_receive(0, local);
  pair.transmit();
  step_to(*pair.client().qp, {}, QpState::reset);
  CHECK(pair.client().send_completions.completions.empty());
  CHECK(pair.client().receive_completions.completions.empty());
  CHECK(pair.client().sends.held() == 0);
  CHECK(pair.client().receives.posted() == 0);
  CHECK(pair.client().device.next_deadline() == kNever);
}

TEST_CASE("send requests in RESET, INIT and RTR are refused and thrown away") {
  DevicePair pair;
  QueuePair& qp = *pair.client().qp;
  step_to(qp, {}, QpState::reset);
  const int steps = GENERATE(0, 1, 2);
  if (steps > 0) step_to(qp, pair.attributes(0), QpState::init);
  if (steps > 1) step_to(qp, pair.attributes(0), QpState::ready_to_receive);
  const auto refused = pair.post(0, WorkOpcode::send, pair.client().buffer(8), 8);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().failure == Failure::invalid);
  CHECK(pair.client().sends.held() == 0);
}

}  // namespace
}  // namespace urxe::test
