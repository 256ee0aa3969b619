// Errors that a requester finds by itself: nothing goes to the peer, which notices nothing.
#include <catch2/catch.hpp>

#include "tests/support/outcomes.h"

namespace urxe::test {
namespace {

using namespace emulator;

using Statuses = std::vector<CompletionStatus>;
constexpr auto kOk = CompletionStatus::success;
constexpr auto kFlushed = CompletionStatus::flushed;

// Posts one bad request between two good ones and checks what becomes of all three.
struct Bad {
  Bad() : Bad(PairOptions{}) {}
  explicit Bad(const PairOptions& options)
      : pair(options), local(pair.client().buffer(64)), remote(pair.server().buffer(64)) {}

  void post_good(std::uint64_t wr_id) {
    REQUIRE(pair.post(0, WorkOpcode::rdma_write, local, 64, remote,
                      [wr_id](OwnedSend& send) { send.request.wr_id = wr_id; }));
  }
  void post_bad(WorkOpcode opcode, std::size_t length,
                const std::function<void(OwnedSend&)>& spoil) {
    REQUIRE(pair.post(0, opcode, local, length, remote, [&](OwnedSend& send) {
      send.request.wr_id = 2;
      spoil(send);
    }));
  }
  // The request before succeeds, the bad one fails like this, the one after is flushed.
  void check(CompletionStatus status, VendorError why) {
    pair.run();
    const auto& completions = pair.client().send_completions.completions;
    REQUIRE(completions.size() == 3);
    CHECK(statuses(pair.client().send_completions) == Statuses{kOk, status, kFlushed});
    CHECK(completions[1].wr_id == 2);
    CHECK(completions[1].vendor_error == static_cast<std::uint32_t>(why));
    CHECK(completions[1].qpn == pair.client().qp->qpn());
    CHECK(completions[2].wr_id == 3);
    CHECK(completions[2].vendor_error == static_cast<std::uint32_t>(VendorError::flushed_by_error));
    CHECK(pair.client().qp->state() == QpState::error);
    CHECK(pair.client().sends.held() == 0);
    // IBTA 11.6.3: a completion error is reported by the completion alone.
    CHECK(take_events(pair.client().device).empty());
    CHECK(pair.server().qp->state() == QpState::ready_to_send);
    CHECK(take_events(pair.server().device).empty());
    CHECK(pair.server().receive_completions.completions.empty());
  }
  void run(WorkOpcode opcode, std::size_t length, const std::function<void(OwnedSend&)>& spoil,
           CompletionStatus status, VendorError why) {
    post_good(1);
    post_bad(opcode, length, spoil);
    post_good(3);
    check(status, why);
    CHECK(requests(pair, 0).size() == 1);
  }

  DevicePair pair;
  Node::Buffer local;
  Node::Buffer remote;
};

constexpr auto kLength = CompletionStatus::local_length_error;
constexpr auto kProtection = CompletionStatus::local_protection_error;
constexpr auto kOperation = CompletionStatus::local_qp_operation_error;

TEST_CASE("a message of more than 2 GiB is a local length error") {
  Bad bad;
  bad.run(
      WorkOpcode::rdma_write, 64, [](OwnedSend& send) { send.request.length = (1ULL << 31) + 1; },
      kLength, VendorError::message_too_long);
}

TEST_CASE("an atomic of other than eight bytes is a local length error") {
  const std::size_t length = GENERATE(0, 4, 16);
  Bad bad;
  bad.run(
      WorkOpcode::fetch_add, length, [](OwnedSend&) {}, kLength,
      VendorError::atomic_needs_eight_bytes);
}

TEST_CASE("an unknown local key is a local protection error") {
  Bad bad;
  bad.run(
      WorkOpcode::send, 8, [](OwnedSend& send) { send.sges[0].lkey ^= 0x100; }, kProtection,
      VendorError::bad_local_key);
}

TEST_CASE("a stale local key is a local protection error") {
  Bad bad;
  const auto gone = bad.pair.client().buffer(64);
  for (MemoryRegion* region : bad.pair.client().regions) {
    if (region->key() == gone.key) REQUIRE(bad.pair.client().device.destroy(*region));
  }
  bad.run(
      WorkOpcode::send, 8,
      [&](OwnedSend& send) {
        send.sges[0] = {gone.address, 8, gone.key};
      },
      kProtection, VendorError::bad_local_key);
}

TEST_CASE("a range outside of the region is a local protection error") {
  const int offset = GENERATE(-1, 57);
  Bad bad;
  bad.run(
      WorkOpcode::rdma_write, 8,
      [offset](OwnedSend& send) { send.sges[0].address += static_cast<std::uint64_t>(offset); },
      kProtection, VendorError::local_out_of_bounds);
}

TEST_CASE("a READ into a region without LOCAL_WRITE is a local protection error") {
  Bad bad;
  const auto read_only = bad.pair.client().buffer(64, kRemoteRead);
  bad.run(
      WorkOpcode::rdma_read, 8,
      [&](OwnedSend& send) {
        send.sges[0] = {read_only.address, 8, read_only.key};
      },
      kProtection, VendorError::local_no_permission);
}

TEST_CASE("a region of another protection domain is a local protection error") {
  Bad bad;
  Node& client = bad.pair.client();
  ProtectionDomain* other = *client.device.create_pd();
  const std::uint64_t start = client.memory.map(64);
  const MemoryRegion* region =
      *client.device.register_region(*other, {.start = start, .length = 64, .iova = start});
  bad.run(
      WorkOpcode::send, 8,
      [&](OwnedSend& send) {
        send.sges[0] = {start, 8, region->key()};
      },
      kProtection, VendorError::local_other_domain);
}

TEST_CASE("memory that the program unmapped is a local protection error, not a crash") {
  Bad bad;
  const auto gone = bad.pair.client().buffer(64);
  bad.pair.client().memory.unmap(gone.address);
  bad.run(
      WorkOpcode::send, 8,
      [&](OwnedSend& send) {
        send.sges[0] = {gone.address, 8, gone.key};
      },
      kProtection, VendorError::memory_gone);
}

TEST_CASE("memory that goes away before it is sent again fails the request, whatever the timeout") {
  PairOptions options;
  options.timeout = GENERATE(0, 14);
  DevicePair pair(options);
  const auto remote = pair.server().buffer(64);
  const auto gone = pair.client().buffer(64);
  pair.fate = [](const WirePacket&) { return 0; };
  REQUIRE(pair.post(0, WorkOpcode::rdma_write, gone, 64, remote));
  pair.transmit();
  REQUIRE(pair.client().device.destroy(*pair.client().regions.back()));
  pair.run(1s);
  CHECK(statuses(pair.client().send_completions) == std::vector{kProtection});
  CHECK(pair.client().qp->state() == QpState::error);
}

TEST_CASE("an answer that cannot be written to memory is a local protection error") {
  Bad bad;
  const auto gone = bad.pair.client().buffer(64);
  bad.pair.client().memory.unmap(gone.address);
  bad.post_good(1);
  const bool atomic = GENERATE(false, true);
  bad.post_bad(atomic ? WorkOpcode::fetch_add : WorkOpcode::rdma_read, 8, [&](OwnedSend& send) {
    send.sges[0] = {gone.address, 8, gone.key};
  });
  bad.post_good(3);
  bad.check(kProtection, VendorError::memory_gone);
}

TEST_CASE("a request that the ring holds malformed is a local QP operation error") {
  Bad bad;
  bad.run(
      WorkOpcode::send, 8, [](OwnedSend& send) { send.request.malformed = true; }, kOperation,
      VendorError::malformed_request);
}

TEST_CASE("an opcode that RC lacks is a local QP operation error") {
  const auto opcode = GENERATE(WorkOpcode{13}, WorkOpcode{16}, WorkOpcode{99});
  Bad bad;
  bad.run(
      opcode, 8, [](OwnedSend&) {}, kOperation, VendorError::opcode_not_for_this_type);
}

TEST_CASE("inline data for an answer is a local QP operation error") {
  Bad bad;
  bad.run(
      WorkOpcode::rdma_read, 8, [](OwnedSend& send) { send.inline_data.resize(8); }, kOperation,
      VendorError::malformed_request);
}

TEST_CASE("a READ or an atomic while max_rd_atomic is 0 is a local QP operation error") {
  PairOptions options;
  options.read_atomic = 0;
  Bad bad(options);
  bad.run(
      GENERATE(WorkOpcode::rdma_read, WorkOpcode::fetch_add), 8, [](OwnedSend&) {}, kOperation,
      VendorError::reads_not_enabled);
}

TEST_CASE("invalidating a key that is no bound window's is a local QP operation error") {
  Bad bad;
  bad.run(
      WorkOpcode::local_invalidate, 0,
      [](OwnedSend& send) { send.request.invalidate = wire::RKey{0x12345678}; }, kOperation,
      VendorError::invalidate_refused);
}

TEST_CASE("binding a window that does not exist is a window bind error") {
  Bad bad;
  bad.run(
      WorkOpcode::bind_window, 0, [](OwnedSend&) {}, CompletionStatus::window_bind_error,
      VendorError::bind_refused);
}

TEST_CASE("an unsignalled request that fails completes all the same") {
  PairOptions options;
  options.signal_all = false;
  DevicePair pair(options);
  const auto local = pair.client().buffer(8);
  REQUIRE(
      pair.post(0, WorkOpcode::send, local, 8, {}, [](OwnedSend& send) { send.sges[0].lkey = 0; }));
  REQUIRE(pair.post(0, WorkOpcode::send, local, 8));
  pair.run();
  CHECK(statuses(pair.client().send_completions) == Statuses{kProtection, kFlushed});
}

// --- UC and UD: the send queue stops, receiving goes on

TEST_CASE("a local error puts the send queue of an unreliable queue pair in error, not the rest") {
  const auto type = GENERATE(QpType::uc, QpType::ud);
  PairOptions options;
  options.type = type;
  DevicePair pair(options);
  const auto local = pair.client().buffer(128);
  const auto remote = pair.server().buffer(128);
  const auto address_peer = [&](OwnedSend& send) {
    send.request.datagram = {
        .vector = pair.attributes(0).vector, .qpn = pair.server().qp->qpn(), .qkey = kTestQKey};
  };
  REQUIRE(pair.post(0, WorkOpcode::send, local, 8, {}, [&](OwnedSend& send) {
    address_peer(send);
    send.sges[0].lkey = 0;
  }));
  REQUIRE(pair.post(0, WorkOpcode::send, local, 8, {}, address_peer));
  pair.run();
  CHECK(statuses(pair.client().send_completions) == Statuses{kProtection, kFlushed});
  CHECK(pair.client().qp->state() == QpState::send_queue_error);
  CHECK(take_events(pair.client().device).empty());

  // What is posted now is flushed; what comes is received; the program may go on.
  REQUIRE(pair.post(0, WorkOpcode::send, local, 8, {}, address_peer));
  CHECK(statuses(pair.client().send_completions) == Statuses{kProtection, kFlushed, kFlushed});
  pair.post_receive(0, local);
  REQUIRE(pair.post(1, WorkOpcode::send, remote, 8, {}, [&](OwnedSend& send) {
    send.request.datagram = {
        .vector = pair.attributes(1).vector, .qpn = pair.client().qp->qpn(), .qkey = kTestQKey};
  }));
  pair.run();
  CHECK(statuses(pair.client().receive_completions) == Statuses{kOk});
  QpAttributes wanted;
  wanted.state = QpState::ready_to_send;
  REQUIRE(pair.client().qp->modify(wanted, kAttrState));
  pair.post_receive(1, remote);
  REQUIRE(pair.post(0, WorkOpcode::send, local, 8, {}, address_peer));
  pair.run();
  CHECK(pair.client().send_completions.completions.back().status == kOk);
  CHECK(statuses(pair.server().receive_completions) == Statuses{kOk});
}

TEST_CASE("operations that UC and UD lack are local QP operation errors") {
  struct Lacking {
    QpType type;
    WorkOpcode opcode;
  };
  const Lacking lacking = GENERATE(
      Lacking{QpType::uc, WorkOpcode::rdma_read}, Lacking{QpType::uc, WorkOpcode::fetch_add},
      Lacking{QpType::uc, WorkOpcode::compare_swap},
      Lacking{QpType::uc, WorkOpcode::send_with_invalidate},
      Lacking{QpType::ud, WorkOpcode::rdma_write}, Lacking{QpType::ud, WorkOpcode::rdma_read},
      Lacking{QpType::ud, WorkOpcode::bind_window},
      Lacking{QpType::ud, WorkOpcode::local_invalidate});
  PairOptions options;
  options.type = lacking.type;
  DevicePair pair(options);
  REQUIRE(pair.post(0, lacking.opcode, pair.client().buffer(8), 8, pair.server().buffer(8)));
  pair.run();
  CHECK(statuses(pair.client().send_completions) == Statuses{kOperation});
  CHECK(pair.log.empty());
}

TEST_CASE("a datagram longer than the MTU, and one without a usable address, are refused") {
  PairOptions options;
  options.type = QpType::ud;
  DevicePair pair(options);
  const auto local = pair.client().buffer(5000);
  SECTION("length") {
    REQUIRE(pair.post(0, WorkOpcode::send, local, 4097));
    pair.run();
    CHECK(statuses(pair.client().send_completions) == Statuses{kLength});
  }
  SECTION("length, since the port's MTU became smaller") {
    pair.client().device.set_port_mtu(Mtu::bytes1024);
    REQUIRE(pair.post(0, WorkOpcode::send, local, 1025));
    pair.run();
    CHECK(statuses(pair.client().send_completions) == Statuses{kLength});
  }
  SECTION("address") {
    REQUIRE(pair.post(0, WorkOpcode::send, local, 8, {},
                      [](OwnedSend& send) { send.request.datagram.handle_number = 7; }));
    pair.run();
    CHECK(statuses(pair.client().send_completions) == Statuses{kOperation});
    CHECK(pair.client().send_completions.completions[0].vendor_error ==
          static_cast<std::uint32_t>(VendorError::bad_address_handle));
  }
  CHECK(pair.log.empty());
}

}  // namespace
}  // namespace urxe::test
