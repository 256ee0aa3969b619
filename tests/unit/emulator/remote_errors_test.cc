// Errors that the responder finds: what the requester sees, what the responder sees.
#include <catch2/catch.hpp>

#include "tests/support/outcomes.h"

namespace urxe::test {
namespace {

using namespace emulator;

using Statuses = std::vector<CompletionStatus>;
using Events = std::vector<AsyncEventType>;
constexpr auto kOk = CompletionStatus::success;
constexpr auto kFlushed = CompletionStatus::flushed;
constexpr auto kAccess = CompletionStatus::remote_access_error;
constexpr auto kInvalid = CompletionStatus::remote_invalid_request;
constexpr auto kOperational = CompletionStatus::remote_operational_error;

struct Refused {
  Refused() : Refused(PairOptions{}) {}
  explicit Refused(const PairOptions& options)
      : pair(options), local(pair.client().buffer(64)), remote(pair.server().buffer(64)) {
    std::memset(pair.server().bytes(remote), 0xEE, remote.size);
  }

  void post(
      WorkOpcode opcode, std::size_t length,
      const std::function<void(OwnedSend&)>& adjust = [](OwnedSend&) {}) {
    REQUIRE(pair.post(0, opcode, local, length, remote, adjust));
  }
  // The request is refused with this NAK; the one after it is flushed; both ends are in error.
  void check(CompletionStatus status, wire::NakCode code, AsyncEventType event) {
    post(WorkOpcode::rdma_write, 1);
    pair.run();
    CHECK(statuses(pair.client().send_completions) == Statuses{status, kFlushed});
    CHECK(pair.client().send_completions.completions.at(0).vendor_error ==
          static_cast<std::uint32_t>(VendorError::nak_received));
    const auto naks = acknowledgements(pair, 1);
    REQUIRE(naks.size() == 1);
    CHECK(naks[0].syndrome == wire::Syndrome::nak(code));
    CHECK(pair.client().qp->state() == QpState::error);
    CHECK(pair.server().qp->state() == QpState::error);
    CHECK(take_events(pair.client().device).empty());
    CHECK(take_events(pair.server().device) == Events{event});
    CHECK(pair.client().sends.held() == 0);
    CHECK(pair.server().memory.faults <= 1);
  }
  void check_access_error() {
    check(kAccess, wire::NakCode::remote_access_error, AsyncEventType::qp_access_error);
    CHECK(is_untouched());
  }
  void check_invalid_request() {
    check(kInvalid, wire::NakCode::invalid_request, AsyncEventType::qp_request_error);
    CHECK(is_untouched());
  }
  void check_operational_error() {
    check(kOperational, wire::NakCode::remote_operational_error, AsyncEventType::qp_fatal);
  }
  bool is_untouched() {
    const std::uint8_t* bytes = pair.server().bytes(remote);
    return std::all_of(bytes, bytes + remote.size, [](std::uint8_t byte) { return byte == 0xEE; });
  }

  DevicePair pair;
  Node::Buffer local;
  Node::Buffer remote;
};

// --- remote access errors

TEST_CASE("an unknown remote key is a remote access error") {
  const auto opcode = GENERATE(WorkOpcode::rdma_write, WorkOpcode::rdma_read, WorkOpcode::fetch_add,
                               WorkOpcode::rdma_write_with_immediate);
  Refused refused;
  refused.pair.post_receive(1, refused.remote, 5);
  refused.post(opcode, 8, [](OwnedSend& send) {
    send.request.rkey = wire::RKey{send.request.rkey.value() ^ 0x100};
  });
  refused.check_access_error();
  CHECK(statuses(refused.pair.server().receive_completions) == Statuses{kFlushed});
}

TEST_CASE("a stale remote key is a remote access error") {
  Refused refused;
  const auto gone = refused.pair.server().buffer(64);
  REQUIRE(refused.pair.server().device.destroy(*refused.pair.server().regions.back()));
  refused.post(WorkOpcode::rdma_write, 8, [&](OwnedSend& send) {
    send.request.remote_address = gone.address;
    send.request.rkey = wire::RKey{gone.key};
  });
  refused.check_access_error();
}

TEST_CASE("a remote range that exceeds the region is a remote access error") {
  struct Range {
    std::int64_t offset;
    std::size_t length;
  };
  const Range range =
      GENERATE(Range{-1, 8}, Range{57, 8}, Range{64, 1}, Range{-8, 64}, Range{INT64_MIN, 8});
  Refused refused;
  refused.post(WorkOpcode::rdma_write, range.length, [range](OwnedSend& send) {
    send.request.remote_address += static_cast<std::uint64_t>(range.offset);
  });
  refused.check_access_error();
}

TEST_CASE("a permission that the region lacks is a remote access error") {
  struct Lacking {
    WorkOpcode opcode;
    Access granted;
  };
  const Lacking lacking =
      GENERATE(Lacking{WorkOpcode::rdma_write, kLocalWrite | kRemoteRead | kRemoteAtomic},
               Lacking{WorkOpcode::rdma_read, kLocalWrite | kRemoteWrite | kRemoteAtomic},
               Lacking{WorkOpcode::fetch_add, kLocalWrite | kRemoteRead | kRemoteWrite},
               Lacking{WorkOpcode::compare_swap, kLocalWrite | kRemoteRead | kRemoteWrite});
  Refused refused;
  refused.remote = refused.pair.server().buffer(64, lacking.granted);
  std::memset(refused.pair.server().bytes(refused.remote), 0xEE, 64);
  refused.post(lacking.opcode, 8);
  refused.check_access_error();
}

TEST_CASE("a region of another protection domain is a remote access error") {
  Refused refused;
  Node& server = refused.pair.server();
  ProtectionDomain* other = *server.device.create_pd();
  const std::uint64_t start = server.memory.map(64);
  const MemoryRegion* region = *server.device.register_region(
      *other, {.start = start, .length = 64, .iova = start, .access = kLocalWrite | kRemoteWrite});
  refused.post(WorkOpcode::rdma_write, 8, [&](OwnedSend& send) {
    send.request.remote_address = start;
    send.request.rkey = wire::RKey{region->key()};
  });
  refused.check_access_error();
}

TEST_CASE("a peer's access to memory that was unmapped is a remote access error, not a crash") {
  const auto opcode =
      GENERATE(WorkOpcode::rdma_write, WorkOpcode::fetch_add, WorkOpcode::rdma_read);
  Refused refused;
  const auto gone = refused.pair.server().buffer(64);
  refused.pair.server().memory.unmap(gone.address);
  refused.post(opcode, 8, [&](OwnedSend& send) {
    send.request.remote_address = gone.address;
    send.request.rkey = wire::RKey{gone.key};
  });
  refused.check_access_error();
}

TEST_CASE("a region that goes away in the middle of a READ ends it with a remote access error") {
  Refused refused;
  DevicePair& pair = refused.pair;
  refused.local = pair.client().buffer(4096);
  refused.remote = pair.server().buffer(4096);
  refused.post(WorkOpcode::rdma_read, 4096);
  int answers = 0;
  pair.fate = [&](const WirePacket& packet) {
    if (packet.from == 1 && ++answers == 2) {
      REQUIRE(pair.server().device.destroy(*pair.server().regions.back()));
    }
    return 1;
  };
  pair.run();
  CHECK(statuses(pair.client().send_completions) == Statuses{kAccess});
  CHECK(pair.server().qp->state() == QpState::error);
  CHECK(take_events(pair.server().device) == Events{AsyncEventType::qp_access_error});
}

TEST_CASE("a region that goes away in the middle of a WRITE ends it with a remote access error") {
  Refused refused;
  DevicePair& pair = refused.pair;
  refused.local = pair.client().buffer(4096);
  refused.remote = pair.server().buffer(4096);
  refused.post(WorkOpcode::rdma_write, 4096);
  pair.transmit();
  pair.deliver_next();
  pair.deliver_next();
  REQUIRE(pair.server().device.destroy(*pair.server().regions.back()));
  pair.run();
  CHECK(statuses(pair.client().send_completions) == Statuses{kAccess});
  CHECK(pair.server().qp->state() == QpState::error);
  CHECK(take_events(pair.server().device) == Events{AsyncEventType::qp_access_error});
}

// --- remote invalid requests

TEST_CASE("an operation that the queue pair does not allow is an invalid request") {
  struct Lacking {
    WorkOpcode opcode;
    Access granted;
  };
  const Lacking lacking = GENERATE(Lacking{WorkOpcode::rdma_write, kRemoteRead | kRemoteAtomic},
                                   Lacking{WorkOpcode::rdma_read, kRemoteWrite | kRemoteAtomic},
                                   Lacking{WorkOpcode::fetch_add, kRemoteRead | kRemoteWrite},
                                   Lacking{WorkOpcode::compare_swap, kRemoteRead | kRemoteWrite});
  PairOptions options;
  options.access = lacking.granted;
  Refused refused(options);
  refused.post(lacking.opcode, 8);
  refused.check_invalid_request();
}

TEST_CASE("a READ or an atomic to a responder with max_dest_rd_atomic 0 is an invalid request") {
  Refused refused;
  QpAttributes attributes = refused.pair.attributes(1);
  QueuePair& server = *refused.pair.server().qp;
  attributes.max_dest_read_atomic = 0;
  step_to(server, attributes, QpState::reset);
  bring_up(server, attributes);
  refused.post(GENERATE(WorkOpcode::rdma_read, WorkOpcode::fetch_add), 8);
  refused.check_invalid_request();
}

TEST_CASE("a misaligned atomic is an invalid request") {
  Refused refused;
  refused.post(GENERATE(WorkOpcode::fetch_add, WorkOpcode::compare_swap), 8,
               [](OwnedSend& send) { send.request.remote_address += 4; });
  refused.check_invalid_request();
}

TEST_CASE("a message longer than its receive is an invalid request and a local length error") {
  const std::size_t excess = GENERATE(1, 1024, 3000);
  Refused refused;
  refused.local = refused.pair.client().buffer(64 + excess);
  refused.pair.post_receive(1, refused.remote, 5);
  refused.pair.post_receive(1, refused.remote, 6);
  refused.post(WorkOpcode::send, 64 + excess);
  refused.check(kInvalid, wire::NakCode::invalid_request, AsyncEventType::qp_request_error);
  const auto& received = refused.pair.server().receive_completions;
  CHECK(statuses(received) == Statuses{CompletionStatus::local_length_error, kFlushed});
  CHECK(received.completions[0].wr_id == 5);
  CHECK(received.completions[0].vendor_error ==
        static_cast<std::uint32_t>(VendorError::receive_too_short));
  CHECK(received.completions[1].wr_id == 6);
}

TEST_CASE("peers with different path MTUs find out by an invalid request") {
  PairOptions options;
  options.mtu = Mtu::bytes2048;
  Refused refused(options);
  QpAttributes attributes = refused.pair.attributes(1);
  attributes.path_mtu = Mtu::bytes1024;
  QueuePair& server = *refused.pair.server().qp;
  step_to(server, attributes, QpState::reset);
  bring_up(server, attributes);
  refused.local = refused.pair.client().buffer(5000);
  refused.remote = refused.pair.server().buffer(5000);
  refused.pair.server().device.listen_to_sentences(true);
  refused.post(WorkOpcode::rdma_write, 5000);
  refused.check(kInvalid, wire::NakCode::invalid_request, AsyncEventType::qp_request_error);
  const auto sentences = refused.pair.server().device.take_sentences();
  REQUIRE(sentences.size() == 1);
  CHECK(sentences[0].find("path MTU is 1024") != std::string::npos);
}

// A request that no requester of ours would write.
struct Raw {
  explicit Raw(wire::Opcode opcode) {
    packet.info = &wire::info(opcode);
    packet.bth.psn = wire::Psn{PairOptions{}.first_psn};
  }
  wire::Packet packet;
};

void check_raw_is_invalid(Refused& refused) {
  const auto naks = acknowledgements(refused.pair, 1);
  REQUIRE(naks.size() == 1);
  CHECK(naks[0].syndrome == wire::Syndrome::nak(wire::NakCode::invalid_request));
  CHECK(refused.pair.server().qp->state() == QpState::error);
  CHECK(take_events(refused.pair.server().device) == Events{AsyncEventType::qp_request_error});
  CHECK(refused.is_untouched());
}

TEST_CASE("a packet out of its place in the message is an invalid request") {
  const auto opcode = GENERATE(wire::Opcode::rc_send_middle, wire::Opcode::rc_send_last,
                               wire::Opcode::rc_write_middle, wire::Opcode::rc_write_last_immediate,
                               wire::Opcode::rc_send_last_invalidate);
  Refused refused;
  refused.pair.post_receive(1, refused.remote);
  const Raw raw(opcode);
  refused.pair.inject(1, raw.packet, std::vector<std::uint8_t>(1024));
  check_raw_is_invalid(refused);
}

TEST_CASE("a new message before the end of the last one is an invalid request") {
  const auto opcode = GENERATE(wire::Opcode::rc_send_first, wire::Opcode::rc_send_only,
                               wire::Opcode::rc_write_only, wire::Opcode::rc_write_middle,
                               wire::Opcode::rc_read_request, wire::Opcode::rc_fetch_add);
  Refused refused;
  refused.pair.post_receive(1, refused.pair.server().buffer(4096));
  Raw raw(wire::Opcode::rc_send_first);
  refused.pair.inject(1, raw.packet, std::vector<std::uint8_t>(1024));
  raw.packet.info = &wire::info(opcode);
  raw.packet.bth.psn = raw.packet.bth.psn + 1;
  const bool has_data = raw.packet.info->payload == wire::PayloadRule::exact_mtu;
  refused.pair.inject(1, raw.packet, std::vector<std::uint8_t>(has_data ? 1024 : 0));
  check_raw_is_invalid(refused);
}

TEST_CASE("a packet that is longer or shorter than its place allows is an invalid request") {
  struct Wrong {
    wire::Opcode opcode;
    std::size_t payload;
  };
  const Wrong wrong =
      GENERATE(Wrong{wire::Opcode::rc_send_first, 1020}, Wrong{wire::Opcode::rc_send_first, 1028},
               Wrong{wire::Opcode::rc_send_only, 1025}, Wrong{wire::Opcode::rc_write_first, 0});
  Refused refused;
  refused.pair.post_receive(1, refused.pair.server().buffer(4096));
  Raw raw(wrong.opcode);
  raw.packet.reth = {
      .address = refused.remote.address, .rkey = wire::RKey{refused.remote.key}, .length = 2000};
  refused.pair.inject(1, raw.packet, std::vector<std::uint8_t>(wrong.payload));
  check_raw_is_invalid(refused);
}

TEST_CASE("an empty last packet is an invalid request") {
  Refused refused;
  refused.pair.post_receive(1, refused.pair.server().buffer(4096));
  Raw raw(wire::Opcode::rc_send_first);
  refused.pair.inject(1, raw.packet, std::vector<std::uint8_t>(1024));
  raw.packet.info = &wire::info(wire::Opcode::rc_send_last);
  raw.packet.bth.psn = raw.packet.bth.psn + 1;
  refused.pair.inject(1, raw.packet);
  check_raw_is_invalid(refused);
}

TEST_CASE("a WRITE whose packets do not add up to its length is an invalid request") {
  struct Wrong {
    wire::Opcode opcode;
    std::uint32_t length;
    std::size_t payload;
  };
  const Wrong wrong = GENERATE(
      Wrong{wire::Opcode::rc_write_only, 8, 4}, Wrong{wire::Opcode::rc_write_only, 8, 12},
      Wrong{wire::Opcode::rc_write_first, 1024, 1024}, Wrong{wire::Opcode::rc_write_only, 0, 4},
      Wrong{wire::Opcode::rc_write_first, 0x80000001, 1024});
  Refused refused;
  Raw raw(wrong.opcode);
  raw.packet.reth = {.address = refused.remote.address,
                     .rkey = wire::RKey{refused.remote.key},
                     .length = wrong.length};
  refused.pair.inject(1, raw.packet, std::vector<std::uint8_t>(wrong.payload));
  check_raw_is_invalid(refused);
}

TEST_CASE("a READ of more than 2 GiB is an invalid request") {
  Refused refused;
  Raw raw(wire::Opcode::rc_read_request);
  raw.packet.reth = {.address = refused.remote.address,
                     .rkey = wire::RKey{refused.remote.key},
                     .length = 0x80000001};
  refused.pair.inject(1, raw.packet);
  check_raw_is_invalid(refused);
}

TEST_CASE("a FLUSH above 2 GiB and an ATOMIC WRITE of other than 8 bytes are invalid requests") {
  const auto opcode = GENERATE(wire::Opcode::rc_flush, wire::Opcode::rc_atomic_write);
  Refused refused;
  Raw raw(opcode);
  const bool writes = opcode == wire::Opcode::rc_atomic_write;
  raw.packet.reth = {.address = refused.remote.address,
                     .rkey = wire::RKey{refused.remote.key},
                     .length = writes ? 16 : 0x80000001};
  refused.pair.inject(1, raw.packet, std::vector<std::uint8_t>(writes ? 8 : 0));
  check_raw_is_invalid(refused);
}

TEST_CASE("more READs at one time than max_dest_rd_atomic are an invalid request") {
  Refused refused;
  refused.remote = refused.pair.server().buffer(1U << 20);
  Raw raw(wire::Opcode::rc_read_request);
  raw.packet.reth = {
      .address = refused.remote.address, .rkey = wire::RKey{refused.remote.key}, .length = 2048};
  // Nothing is sent in between: the answers pile up.
  Device& server = refused.pair.server().device;
  for (int i = 0; i < 5; ++i) {
    std::vector<std::uint8_t> bytes(64);
    wire::Packet packet = raw.packet;
    packet.bth.opcode = static_cast<std::uint8_t>(packet.info->opcode);
    packet.bth.destination = refused.pair.server().qp->qpn();
    packet.bth.psn = raw.packet.bth.psn + static_cast<std::uint32_t>(2 * i);
    bytes.resize(wire::write_headers(packet, bytes) + wire::kIcrcSize);
    server.handle_packet(
        refused.pair.now(),
        {.path = refused.pair.client().qp->path(), .bytes = bytes, .icrc_is_right = true});
  }
  CHECK(refused.pair.server().qp->state() == QpState::error);
  CHECK(take_events(server) == Events{AsyncEventType::qp_request_error});
}

// --- the responder's own receive requests are at fault

TEST_CASE("a receive with a bad local key is a remote operational error for the sender") {
  Refused refused;
  Node::Buffer bad = refused.remote;
  bad.key ^= 0x100;
  refused.pair.post_receive(1, bad, 5);
  refused.pair.post_receive(1, refused.remote, 6);
  refused.post(WorkOpcode::send, 8);
  refused.check_operational_error();
  const auto& received = refused.pair.server().receive_completions;
  CHECK(statuses(received) == Statuses{CompletionStatus::local_protection_error, kFlushed});
  CHECK(received.completions[0].wr_id == 5);
  CHECK(received.completions[0].vendor_error ==
        static_cast<std::uint32_t>(VendorError::bad_local_key));
}

TEST_CASE("a receive into read-only or unmapped memory is a remote operational error") {
  Refused refused;
  const bool unmapped = GENERATE(false, true);
  const auto bad = refused.pair.server().buffer(64, unmapped ? kLocalWrite : kRemoteRead);
  if (unmapped) refused.pair.server().memory.unmap(bad.address);
  refused.pair.post_receive(1, bad, 5);
  refused.post(WorkOpcode::send, 8);
  refused.check_operational_error();
  CHECK(statuses(refused.pair.server().receive_completions) ==
        Statuses{CompletionStatus::local_protection_error});
}

TEST_CASE("a malformed receive is a remote operational error for the sender") {
  Refused refused;
  ReceiveRequest malformed;
  malformed.wr_id = 5;
  malformed.malformed = true;
  refused.pair.server().receives.post(malformed);
  refused.post(WorkOpcode::send, 8);
  refused.check_operational_error();
  CHECK(statuses(refused.pair.server().receive_completions) ==
        Statuses{CompletionStatus::local_qp_operation_error});
}

// --- SEND with invalidate

TEST_CASE("a SEND that invalidates a bad key ends the responder without a NAK") {
  Refused refused;
  refused.pair.post_receive(1, refused.remote, 5);
  refused.post(WorkOpcode::send_with_invalidate, 8,
               [](OwnedSend& send) { send.request.invalidate = wire::RKey{0x777}; });
  refused.pair.run(100s);
  CHECK(acknowledgements(refused.pair, 1).empty());
  CHECK(statuses(refused.pair.server().receive_completions) ==
        Statuses{CompletionStatus::local_qp_operation_error});
  CHECK(refused.pair.server().qp->state() == QpState::error);
  // The peer learns of it as of a peer that died.
  CHECK(statuses(refused.pair.client().send_completions) ==
        Statuses{CompletionStatus::retry_exceeded});
}

// --- what is not looked at

TEST_CASE("a READ or WRITE of no bytes succeeds whatever its key and address") {
  Refused refused;
  refused.post(GENERATE(WorkOpcode::rdma_read, WorkOpcode::rdma_write), 0, [](OwnedSend& send) {
    send.request.rkey = wire::RKey{0xDEADBEEF};
    send.request.remote_address = ~std::uint64_t{0};
    send.sges.clear();
  });
  refused.pair.run();
  CHECK(statuses(refused.pair.client().send_completions) == Statuses{kOk});
}

}  // namespace
}  // namespace urxe::test
