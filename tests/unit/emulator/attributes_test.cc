// What a queue pair's attributes may be, and what changes when.
#include <catch2/catch.hpp>

#include "tests/support/outcomes.h"

namespace urxe::test {
namespace {

using namespace emulator;

using Statuses = std::vector<CompletionStatus>;
constexpr auto kOk = CompletionStatus::success;

Result<void> modify(QueuePair& qp, AttributeMask mask,
                    const std::function<void(QpAttributes&)>& set) {
  QpAttributes attributes;
  set(attributes);
  return qp.modify(attributes, mask);
}

struct Limit {
  const char* name;
  QpState from;
  AttributeMask attribute;
  std::uint32_t smallest;
  std::uint32_t largest;
  void (*set)(QpAttributes& attributes, std::uint32_t value);
  std::uint32_t (*read)(const QpAttributes& attributes);
};

// Every attribute that has a range, and the state change that sets it.
const std::vector<Limit>& limits() {
  static const std::vector<Limit> kLimits{
      {"timeout", QpState::ready_to_receive, kAttrTimeout, 0, 31,
       [](QpAttributes& a, std::uint32_t v) { a.timeout = static_cast<std::uint8_t>(v); },
       [](const QpAttributes& a) -> std::uint32_t { return a.timeout; }},
      {"retry_cnt", QpState::ready_to_receive, kAttrRetryCount, 0, 7,
       [](QpAttributes& a, std::uint32_t v) { a.retry_count = static_cast<std::uint8_t>(v); },
       [](const QpAttributes& a) -> std::uint32_t { return a.retry_count; }},
      {"rnr_retry", QpState::ready_to_receive, kAttrRnrRetry, 0, 7,
       [](QpAttributes& a, std::uint32_t v) { a.rnr_retry = static_cast<std::uint8_t>(v); },
       [](const QpAttributes& a) -> std::uint32_t { return a.rnr_retry; }},
      {"max_rd_atomic", QpState::ready_to_receive, kAttrMaxReadAtomic, 0, 128,
       [](QpAttributes& a, std::uint32_t v) { a.max_read_atomic = static_cast<std::uint8_t>(v); },
       [](const QpAttributes& a) -> std::uint32_t { return a.max_read_atomic; }},
      {"min_rnr_timer", QpState::init, kAttrMinRnrTimer, 0, 31,
       [](QpAttributes& a, std::uint32_t v) { a.min_rnr_timer = static_cast<std::uint8_t>(v); },
       [](const QpAttributes& a) -> std::uint32_t { return a.min_rnr_timer; }},
      {"max_dest_rd_atomic", QpState::init, kAttrMaxDestReadAtomic, 0, 128,
       [](QpAttributes& a, std::uint32_t v) {
         a.max_dest_read_atomic = static_cast<std::uint8_t>(v);
       },
       [](const QpAttributes& a) -> std::uint32_t { return a.max_dest_read_atomic; }},
      {"path_mtu", QpState::init, kAttrPathMtu, 1, 5,
       [](QpAttributes& a, std::uint32_t v) { a.path_mtu = static_cast<Mtu>(v); },
       [](const QpAttributes& a) { return static_cast<std::uint32_t>(a.path_mtu); }},
      {"pkey_index", QpState::reset, kAttrPKeyIndex, 0, 0,
       [](QpAttributes& a, std::uint32_t v) { a.pkey_index = static_cast<std::uint16_t>(v); },
       [](const QpAttributes& a) -> std::uint32_t { return a.pkey_index; }},
      {"port", QpState::reset, kAttrPort, 1, 1,
       [](QpAttributes& a, std::uint32_t v) { a.port = static_cast<std::uint8_t>(v); },
       [](const QpAttributes& a) -> std::uint32_t { return a.port; }},
  };
  return kLimits;
}

// Brings the client's queue pair to `from`, then one state on with this value.
Result<void> try_value(DevicePair& pair, const Limit& limit, std::uint32_t value) {
  QueuePair& qp = *pair.client().qp;
  step_to(qp, {}, QpState::reset);
  for (const QpState state : {QpState::init, QpState::ready_to_receive}) {
    if (limit.from < state) break;
    step_to(qp, pair.attributes(0), state);
  }
  QpAttributes attributes = pair.attributes(0);
  limit.set(attributes, value);
  attributes.state = static_cast<QpState>(static_cast<int>(limit.from) + 1);
  AttributeMask mask = kAttrState;
  mask |= check_transition(limit.from, attributes.state, QpType::rc, {}).missing;
  return qp.modify(attributes, mask);
}

TEST_CASE("every attribute takes its smallest and its largest value, and nothing beyond") {
  for (const Limit& limit : limits()) {
    INFO(limit.name);
    DevicePair pair;
    for (const std::uint32_t value : {limit.smallest, limit.largest}) {
      REQUIRE(try_value(pair, limit, value));
      CHECK(limit.read(pair.client().qp->attributes()) == value);
    }
    std::vector<std::uint32_t> beyond{limit.largest + 1, 255};
    if (limit.smallest > 0) beyond.push_back(limit.smallest - 1);
    for (const std::uint32_t value : beyond) {
      const auto refused = try_value(pair, limit, value);
      REQUIRE_FALSE(refused);
      CHECK(refused.error().failure == Failure::invalid);
      CHECK(pair.client().qp->state() == limit.from);
    }
  }
}

TEST_CASE("a connection works with every attribute at either end of its range") {
  const bool most = GENERATE(false, true);
  PairOptions options;
  options.timeout = most ? 31 : 1;
  options.retry_count = most ? 7 : 0;
  options.rnr_retry = most ? 7 : 0;
  options.min_rnr_timer = most ? 31 : 0;
  options.read_atomic = most ? 128 : 1;
  options.mtu = most ? Mtu::bytes4096 : Mtu::bytes256;
  options.first_psn = most ? 0xFFFFFF : 0;
  DevicePair pair(options);
  const auto local = pair.client().buffer(20000);
  const auto remote = pair.server().buffer(20000);
  pair.post_receive(1, remote);
  REQUIRE(pair.post(0, WorkOpcode::send, local, 20000));
  REQUIRE(pair.post(0, WorkOpcode::rdma_read, local, 20000, remote));
  REQUIRE(pair.post(0, WorkOpcode::fetch_add, local, 8, remote));
  pair.run();
  CHECK(statuses(pair.client().send_completions) == Statuses{kOk, kOk, kOk});
}

TEST_CASE("a path MTU beyond the port's is refused") {
  PairOptions options;
  DevicePair pair(options);
  DeviceOptions small;
  small.port_mtu = Mtu::bytes1024;
  Node node(small, wire::IpAddress::from_v4(0x0A000009), 0x40000);
  node.qp = *node.device.create_qp(*node.pd, {.send_cq = node.send_cq,
                                              .receive_cq = node.receive_cq,
                                              .send_source = &node.sends,
                                              .receive_source = &node.receives});
  QpAttributes attributes = pair.attributes(0);
  step_to(*node.qp, attributes, QpState::init);
  attributes.path_mtu = Mtu::bytes2048;
  CHECK_THROWS(step_to(*node.qp, attributes, QpState::ready_to_receive));
  node.device.set_port_mtu(Mtu::bytes512);
  attributes.path_mtu = Mtu::bytes1024;
  CHECK_THROWS(step_to(*node.qp, attributes, QpState::ready_to_receive));
  node.device.set_port_mtu(Mtu::bytes1024);
  CHECK_NOTHROW(step_to(*node.qp, attributes, QpState::ready_to_receive));
}

TEST_CASE("address vectors that RoCE cannot use are refused with a reason") {
  DevicePair pair;
  QueuePair& qp = *pair.client().qp;
  step_to(qp, {}, QpState::reset);
  step_to(qp, pair.attributes(0), QpState::init);
  QpAttributes attributes = pair.attributes(0);
  SECTION("no GRH") { attributes.vector.global = false; }
  SECTION("no such GID") { attributes.vector.source_gid_index = 1; }
  SECTION("IPv6 from IPv4") { attributes.vector.destination = *wire::IpAddress::parse("fd00::1"); }
  CHECK_THROWS(step_to(qp, attributes, QpState::ready_to_receive));
  CHECK(qp.state() == QpState::init);
}

TEST_CASE("a wrong current state is refused") {
  DevicePair pair;
  QueuePair& qp = *pair.client().qp;
  const auto claim = [&qp](QpState state) {
    return modify(qp, kAttrState | kAttrCurrentState, [state](QpAttributes& attributes) {
      attributes.state = QpState::ready_to_send;
      attributes.current_state = state;
    });
  };
  CHECK(claim(QpState::ready_to_send));
  CHECK_FALSE(claim(QpState::send_queue_drain));
}

TEST_CASE("a change that is refused changes nothing") {
  DevicePair pair;
  QueuePair& qp = *pair.client().qp;
  const auto refused =
      modify(qp, kAttrState | kAttrAccess | kAttrMinRnrTimer, [](QpAttributes& attributes) {
        attributes.state = QpState::ready_to_send;
        attributes.access = Access{};
        attributes.min_rnr_timer = 32;
      });
  REQUIRE_FALSE(refused);
  CHECK(qp.attributes().access == PairOptions{}.access);
}

// --- draining

struct Draining {
  Draining() : local(pair.client().buffer(8)), remote(pair.server().buffer(8)) {}
  void post() { REQUIRE(pair.post(0, WorkOpcode::rdma_write, local, 8, remote)); }
  void drain() {
    REQUIRE(modify(*pair.client().qp, kAttrState | kAttrDrainNotify, [](QpAttributes& attributes) {
      attributes.state = QpState::send_queue_drain;
      attributes.drain_notify = true;
    }));
  }
  Result<void> resume() {
    return modify(*pair.client().qp, kAttrState,
                  [](QpAttributes& attributes) { attributes.state = QpState::ready_to_send; });
  }
  DevicePair pair;
  Node::Buffer local;
  Node::Buffer remote;
};

TEST_CASE("a draining queue pair finishes what it began, says so, and holds back the rest") {
  Draining t;
  t.post();
  t.pair.transmit();
  t.drain();
  t.post();
  CHECK(t.pair.client().qp->attributes().draining);
  CHECK_FALSE(t.resume());
  CHECK(take_events(t.pair.client().device).empty());
  t.pair.run();
  CHECK(statuses(t.pair.client().send_completions) == Statuses{kOk});
  CHECK(take_events(t.pair.client().device) == std::vector{AsyncEventType::send_queue_drained});
  CHECK_FALSE(t.pair.client().qp->attributes().draining);
  CHECK(t.pair.client().sends.held() == 1);
  REQUIRE(t.resume());
  t.pair.run();
  CHECK(statuses(t.pair.client().send_completions) == Statuses{kOk, kOk});
}

TEST_CASE("a queue pair with nothing to finish has drained at once") {
  Draining t;
  t.drain();
  CHECK(take_events(t.pair.client().device) == std::vector{AsyncEventType::send_queue_drained});
  CHECK(t.resume());
}

TEST_CASE("draining survives loss, and still serves the peer") {
  Draining t;
  int sent = 0;
  t.pair.fate = [&sent](const WirePacket& packet) {
    return packet.from == 0 && sent++ == 0 ? 0 : 1;
  };
  t.post();
  t.pair.transmit();
  t.drain();
  const auto target = t.pair.client().buffer(8);
  REQUIRE(t.pair.post(1, WorkOpcode::rdma_write, t.pair.server().buffer(8), 8, target));
  t.pair.run();
  CHECK(statuses(t.pair.client().send_completions) == Statuses{kOk});
  CHECK(statuses(t.pair.server().send_completions) == Statuses{kOk});
  CHECK(take_events(t.pair.client().device) == std::vector{AsyncEventType::send_queue_drained});
}

TEST_CASE("an error while draining ends it without the event") {
  Draining t;
  t.pair.fate = [](const WirePacket&) { return 0; };
  t.post();
  t.pair.transmit();
  t.drain();
  step_to(*t.pair.client().qp, {}, QpState::error);
  CHECK(take_events(t.pair.client().device).empty());
  CHECK(statuses(t.pair.client().send_completions) == Statuses{CompletionStatus::flushed});
}

}  // namespace
}  // namespace urxe::test
