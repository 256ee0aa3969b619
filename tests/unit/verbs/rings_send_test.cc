#include <cerrno>
#include <functional>
#include <string>

#include <arpa/inet.h>
#include <catch2/catch.hpp>

#include "tests/support/ring_program.h"
#include "verbs/rings/send_ring.h"

namespace urxe::verbs {
namespace {

using emulator::SendRequest;
using emulator::WorkOpcode;
using test::RingPoster;

struct Fixture {
  explicit Fixture(SendRingSize wanted = {.max_wr = 3, .max_sge = 2, .max_inline = 64}) {
    auto made = SendRing::create(*memory, wanted);
    REQUIRE(made.has_value());
    ring = std::move(*made);
  }
  [[nodiscard]] RingPoster program() const { return RingPoster(ring->area().bytes()); }
  SendRequest take() const {
    SendRequest request;
    REQUIRE(ring->take(request));
    return request;
  }
  SendRequest post_and_take(const rxe_send_wqe& wqe, std::span<const std::byte> data = {}) const {
    REQUIRE(program().post(wqe, data));
    return take();
  }

  std::shared_ptr<RingMemory> memory = RingMemory::create().value();
  std::unique_ptr<SendRing> ring;
};

rxe_send_wqe wqe_of(WorkOpcode opcode, std::uint64_t wr_id = 0) {
  rxe_send_wqe wqe{};
  wqe.wr.wr_id = wr_id;
  wqe.wr.opcode = static_cast<__u32>(opcode);
  return wqe;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

bool lies_in(const void* data, std::size_t size, const RingArea& area) {
  const auto* const begin = static_cast<const std::byte*>(data);
  const std::span<const std::byte> bytes = area.bytes();
  return begin >= bytes.data() && begin + size <= bytes.data() + bytes.size();
}

TEST_CASE("a send ring has the sizes that rxe would give it") {
  struct Row {
    SendRingSize wanted;
    SendRingSize actual;
    std::uint32_t log2_element_size;
  };
  const Row rows[] = {{{0, 0, 0}, {0, 0, 0}, 8},          {{1, 1, 0}, {1, 1, 16}, 8},
                      {{2, 1, 0}, {3, 1, 16}, 8},         {{127, 3, 0}, {127, 3, 48}, 8},
                      {{128, 4, 0}, {255, 4, 64}, 9},     {{10, 1, 512}, {15, 32, 512}, 10},
                      {{10, 32, 64}, {15, 32, 512}, 10},  {{10, 1, 33}, {15, 2, 33}, 8},
                      {{10, 1, 1024}, {15, 32, 1024}, 11}};
  for (const Row& row : rows) {
    CAPTURE(row.wanted.max_wr, row.wanted.max_sge, row.wanted.max_inline);
    const Fixture f(row.wanted);
    CHECK(f.ring->actual().max_wr == row.actual.max_wr);
    CHECK(f.ring->actual().max_sge == row.actual.max_sge);
    CHECK(f.ring->actual().max_inline == row.actual.max_inline);
    CHECK(f.program().header().index_mask == row.actual.max_wr);
    CHECK(f.program().header().log2_elem_size == row.log2_element_size);
    CHECK(f.ring->area().size() >=
          sizeof(rxe_queue_buf) + (std::size_t{row.actual.max_wr} + 1 << row.log2_element_size));
  }
}

TEST_CASE("a send ring that cannot be is refused") {
  const auto memory = RingMemory::create().value();
  const std::uint32_t most = UINT32_MAX;
  CHECK(SendRing::create(*memory, {1, emulator::kMaxSge + 1, 0}).error() == EINVAL);
  CHECK(SendRing::create(*memory, {1, most, 0}).error() == EINVAL);
  CHECK(SendRing::create(*memory, {1, 1, most}).error() == ENOMEM);
  CHECK(SendRing::create(*memory, {most, 1, 0}).error() == ENOMEM);
  CHECK(SendRing::create(*memory, {1U << 24, 1, 0}).error() == ENOMEM);  // of 256 bytes: 8 GiB
}

TEST_CASE("nothing is taken from an empty send ring") {
  const Fixture f;
  SendRequest request;
  CHECK_FALSE(f.ring->take(request));
  CHECK(f.ring->waiting() == 0);
}

TEST_CASE("a posted RDMA WRITE comes out with its list") {
  const Fixture f;
  rxe_send_wqe wqe = wqe_of(WorkOpcode::rdma_write, 0x1122334455667788);
  wqe.wr.send_flags = 0b0110;  // signaled, solicited
  wqe.wr.wr.rdma.remote_addr = 0xABCDEF0123456789;
  wqe.wr.wr.rdma.rkey = 0x10203040;
  wqe.dma.num_sge = 2;
  const rxe_sge list[] = {{0x1000, 100, 1}, {0x2000, 50, 2}};
  const SendRequest request = f.post_and_take(wqe, std::as_bytes(std::span(list)));
  CHECK(request.wr_id == 0x1122334455667788);
  CHECK(request.opcode == WorkOpcode::rdma_write);
  CHECK(request.flags == (emulator::kSignaled | emulator::kSolicited));
  CHECK(request.remote_address == 0xABCDEF0123456789);
  CHECK(request.rkey == wire::RKey{0x10203040});
  CHECK(request.length == 150);
  REQUIRE(request.sges.size() == 2);
  CHECK(request.sges[1].address == 0x2000);
  CHECK(request.sges[1].length == 50);
  CHECK(request.sges[1].lkey == 2);
  CHECK(request.inline_data.empty());
  CHECK_FALSE(request.malformed);
  CHECK(lies_in(request.sges.data(), request.sges.size_bytes(), f.ring->area()));
}

TEST_CASE("the length of a list is its sum, also above what the WQE's field holds") {
  const Fixture f;
  rxe_send_wqe wqe = wqe_of(WorkOpcode::rdma_write);
  wqe.dma.num_sge = 2;
  wqe.dma.length = 5;
  const rxe_sge list[] = {{0, 0xFFFFFFFF, 1}, {0, 6, 2}};
  CHECK(f.post_and_take(wqe, std::as_bytes(std::span(list))).length == 0x100000005);
}

TEST_CASE("immediate data and the key to invalidate share a field but not their byte order") {
  const Fixture f;
  rxe_send_wqe wqe = wqe_of(WorkOpcode::send_with_immediate);
  wqe.wr.ex.imm_data = htonl(0x01020304);
  CHECK(f.post_and_take(wqe).immediate == 0x01020304);
  for (const auto opcode : {WorkOpcode::send_with_invalidate, WorkOpcode::local_invalidate}) {
    rxe_send_wqe invalidating = wqe_of(opcode);
    invalidating.wr.ex.invalidate_rkey = 0x01020304;
    CHECK(f.post_and_take(invalidating).invalidate == wire::RKey{0x01020304});
  }
}

TEST_CASE("atomics come out with both operands") {
  const Fixture f;
  for (const auto opcode : {WorkOpcode::compare_swap, WorkOpcode::fetch_add}) {
    rxe_send_wqe wqe = wqe_of(opcode);
    wqe.wr.wr.atomic.remote_addr = 0x8888;
    wqe.wr.wr.atomic.compare_add = 3;
    wqe.wr.wr.atomic.swap = 4;
    wqe.wr.wr.atomic.rkey = 5;
    wqe.dma.num_sge = 1;
    const rxe_sge sge{0x1000, 8, 1};
    const SendRequest request = f.post_and_take(wqe, std::as_bytes(std::span(&sge, 1)));
    CHECK(request.remote_address == 0x8888);
    CHECK(request.compare_or_add == 3);
    CHECK(request.swap == 4);
    CHECK(request.rkey == wire::RKey{5});
    CHECK(request.length == 8);
    f.ring->retire(1);
  }
}

TEST_CASE("a UD send comes out with the address handle's number") {
  const Fixture f;
  rxe_send_wqe wqe = wqe_of(WorkOpcode::send);
  wqe.wr.wr.ud.remote_qpn = 0x123456;
  wqe.wr.wr.ud.remote_qkey = 0x80010000;
  wqe.wr.wr.ud.ah_num = 7;
  const SendRequest request = f.post_and_take(wqe);
  CHECK(request.datagram.qpn == wire::Qpn{0x123456});
  CHECK(request.datagram.qkey == wire::QKey{0x80010000});
  CHECK(request.datagram.handle_number == 7);
}

TEST_CASE("a UD send of an older librxe comes out with the address vector") {
  const Fixture f;
  rxe_send_wqe wqe = wqe_of(WorkOpcode::send);
  rxe_av& av = wqe.wr.wr.ud.av;
  av.port_num = 1;
  av.network_type = RXE_NETWORK_TYPE_IPV4;
  av.grh.dgid.raw[10] = av.grh.dgid.raw[11] = 0xFF;
  av.grh.dgid.raw[12] = 10;
  av.grh.dgid.raw[15] = 9;
  av.grh.flow_label = 0xFFF12345;
  av.grh.sgid_index = 3;
  av.grh.hop_limit = 64;
  av.grh.traffic_class = 0x20;
  const emulator::DatagramAddress address = f.post_and_take(wqe).datagram;
  CHECK(address.handle_number == 0);
  CHECK(address.vector.destination == wire::IpAddress::from_v4(0x0A000009));
  CHECK(address.vector.flow_label == 0x12345);
  CHECK(address.vector.source_gid_index == 3);
  CHECK(address.vector.hop_limit == 64);
  CHECK(address.vector.traffic_class == 0x20);
  CHECK(address.vector.port == 1);
  CHECK(address.vector.global);
}

TEST_CASE("a bind comes out with the window's keys, and what its list holds is nothing") {
  const Fixture f;
  rxe_send_wqe wqe = wqe_of(WorkOpcode::bind_window);
  wqe.wr.wr.mw.addr = 0x1000;
  wqe.wr.wr.mw.length = 0x200;
  wqe.wr.wr.mw.mr_lkey = 1;
  wqe.wr.wr.mw.mw_rkey = 2;
  wqe.wr.wr.mw.rkey = 3;
  wqe.wr.wr.mw.access = 0b1110;
  wqe.dma.num_sge = 0xFFFFFFFF;
  const SendRequest request = f.post_and_take(wqe);
  CHECK(request.bind.address == 0x1000);
  CHECK(request.bind.length == 0x200);
  CHECK(request.bind.region == wire::LKey{1});
  CHECK(request.bind.window == wire::RKey{2});
  CHECK(request.bind.new_key == wire::RKey{3});
  CHECK(request.bind.access == emulator::Access{0b1110});
  CHECK(request.length == 0);
  CHECK_FALSE(request.malformed);
}

TEST_CASE("inline data comes out as it lies in the ring, flagged or without a list") {
  const Fixture f;
  const std::string text = "sixteen bytes ok";
  for (const std::uint32_t flags : {emulator::kInline.bits(), 0U}) {
    rxe_send_wqe wqe = wqe_of(WorkOpcode::send);
    wqe.wr.send_flags = flags;
    wqe.dma.length = 16;
    wqe.dma.num_sge = flags == 0 ? 0 : 2;  // ibv_post_send leaves the number of the pieces there
    const SendRequest request = f.post_and_take(wqe, bytes_of(text));
    CHECK(std::string(request.inline_data.begin(), request.inline_data.end()) == text);
    CHECK(request.length == 16);
    CHECK(request.sges.empty());
    CHECK(lies_in(request.inline_data.data(), request.inline_data.size(), f.ring->area()));
  }
}

TEST_CASE("an ATOMIC WRITE brings its eight bytes, a FLUSH only its range") {
  const Fixture f;
  rxe_send_wqe write = wqe_of(WorkOpcode::atomic_write);
  write.dma.length = 8;
  CHECK(f.post_and_take(write, bytes_of("8 bytes.")).inline_data.size() == 8);
  const Fixture without_inline_data({.max_wr = 3, .max_sge = 1, .max_inline = 0});
  const SendRequest written = without_inline_data.post_and_take(write, bytes_of("8 bytes."));
  CHECK(written.inline_data.size() == 8);
  CHECK_FALSE(written.malformed);
  write.dma.length = 24;
  CHECK(without_inline_data.post_and_take(write, bytes_of("24 bytes, which it isn't")).malformed);
  rxe_send_wqe flush = wqe_of(WorkOpcode::flush);
  flush.wr.wr.rdma.remote_addr = 0x1000;
  flush.wr.wr.rdma.reserved = 0x77;  // where newer headers have the key
  flush.wr.wr.atomic.swap = 0x0103;  // ... and the type and the level
  flush.dma.length = 1U << 30;
  const SendRequest request = f.post_and_take(flush);
  CHECK(request.length == 0);
  CHECK(request.flush.length == 1U << 30);
  CHECK(request.flush.placement == 3);
  CHECK(request.flush.selectivity == 1);
  CHECK(request.rkey == wire::RKey{0x77});
  CHECK(request.inline_data.empty());
  CHECK_FALSE(request.malformed);
}

TEST_CASE("a slot is the program's again when it is retired, not when it is taken") {
  const Fixture f;
  RingPoster program = f.program();
  for (std::uint64_t i = 0; i < 3; ++i) REQUIRE(program.post(wqe_of(WorkOpcode::send, i)));
  CHECK_FALSE(program.post(wqe_of(WorkOpcode::send)));
  CHECK(f.ring->waiting() == 3);
  for (std::uint64_t i = 0; i < 3; ++i) CHECK(f.take().wr_id == i);
  CHECK(f.ring->waiting() == 0);
  CHECK_FALSE(program.post(wqe_of(WorkOpcode::send)));
  f.ring->retire(2);
  CHECK(program.post(wqe_of(WorkOpcode::send)));
  CHECK(program.post(wqe_of(WorkOpcode::send)));
  CHECK_FALSE(program.post(wqe_of(WorkOpcode::send)));
}

TEST_CASE("a send ring keeps order around its end many times") {
  const Fixture f;
  RingPoster program = f.program();
  std::uint64_t posted = 0;
  std::uint64_t seen = 0;
  for (int round = 0; round < 100; ++round) {
    while (program.post(wqe_of(WorkOpcode::send, posted))) ++posted;
    for (int i = 0; i < 1 + round % 3; ++i) {
      CHECK(f.take().wr_id == seen++);
      f.ring->retire(1);
    }
  }
  CHECK(posted - seen <= 3);
  CHECK(seen > 150);
}

TEST_CASE("clearing a send ring throws away what was posted, and nothing else") {
  const Fixture f;
  RingPoster program = f.program();
  for (std::uint64_t i = 0; i < 3; ++i) REQUIRE(program.post(wqe_of(WorkOpcode::send, i)));
  f.take();
  f.ring->clear();
  SendRequest request;
  CHECK_FALSE(f.ring->take(request));
  for (std::uint64_t i = 10; i < 13; ++i) REQUIRE(program.post(wqe_of(WorkOpcode::send, i)));
  for (std::uint64_t i = 10; i < 13; ++i) CHECK(f.take().wr_id == i);
}

// --- hostile programs

struct Nonsense {
  const char* name;
  std::function<void(rxe_send_wqe&)> write;
  bool malformed;
};

TEST_CASE("whatever stands in a send WQE, what comes out lies within its element") {
  const __u32 all = 0xFFFFFFFF;
  const Nonsense rows[] = {
      {"an opcode that no one has", [](auto& w) { w.wr.opcode = 200; }, true},
      {"an opcode that ends like SEND", [](auto& w) { w.wr.opcode = 0x102; }, true},
      {"the largest opcode", [=](auto& w) { w.wr.opcode = all; }, true},
      {"TSO, which is the kernel's only", [](auto& w) { w.wr.opcode = 10; }, true},
      {"a list one longer than allowed", [](auto& w) { w.dma.num_sge = 5; }, true},
      {"the longest list", [=](auto& w) { w.dma.num_sge = all; }, true},
      {"a list whose size in bytes wraps", [](auto& w) { w.dma.num_sge = 1U << 28; }, true},
      {"inline data one byte longer than allowed",
       [](auto& w) {
         w.wr.send_flags = emulator::kInline.bits();
         w.dma.length = 65;
       },
       true},
      {"the longest inline data",
       [=](auto& w) {
         w.wr.send_flags = emulator::kInline.bits();
         w.dma.length = all;
       },
       true},
      {"inline data without a flag, too long", [=](auto& w) { w.dma.length = all; }, true},
      {"every flag", [=](auto& w) { w.wr.send_flags = all; }, false},
      {"a length with a list",
       [=](auto& w) {
         w.dma.num_sge = 1;
         w.dma.length = all;
       },
       false},
      {"the fields that are the kernel's",
       [=](auto& w) {
         w.status = w.state = w.mask = w.first_psn = w.last_psn = w.ack_length = w.ssn = all;
         w.has_rd_atomic = w.dma.resid = w.dma.cur_sge = w.dma.sge_offset = w.dma.reserved = all;
         w.iova = ~0ULL;
       },
       false},
      {"every bit of the address", [](auto& w) { std::memset(&w.wr.wr, 0xFF, sizeof(w.wr.wr)); },
       false},
  };
  const Fixture f;
  REQUIRE(f.ring->actual().max_sge == 4);
  REQUIRE(f.ring->actual().max_inline == 64);
  for (const Nonsense& row : rows) {
    CAPTURE(row.name);
    rxe_send_wqe wqe = wqe_of(WorkOpcode::send, 77);
    row.write(wqe);
    const SendRequest request = f.post_and_take(wqe);
    CHECK(request.wr_id == 77);
    CHECK(request.malformed == row.malformed);
    if (row.malformed) {
      CHECK(request.length == 0);
      CHECK(request.sges.empty());
      CHECK(request.inline_data.empty());
    }
    CHECK(request.flags.bits() < 16);
    if (!request.sges.empty())
      CHECK(lies_in(request.sges.data(), request.sges.size_bytes(), f.ring->area()));
    if (!request.inline_data.empty())
      CHECK(lies_in(request.inline_data.data(), request.inline_data.size(), f.ring->area()));
    f.ring->retire(1);
  }
}

TEST_CASE("a producer index that jumps posts no more than the ring holds") {
  for (const std::uint32_t index : {3U, 4U, 5U, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU}) {
    CAPTURE(index);
    const Fixture f;
    f.program().producer().store(index);
    SendRequest request;
    std::uint32_t taken = 0;
    while (f.ring->take(request)) REQUIRE(++taken <= f.ring->actual().max_wr);
    CHECK(taken == (index & 3));
    f.ring->retire(taken);
    CHECK_FALSE(f.ring->take(request));
    CHECK(f.program().consumer().load() == (index & 3));
  }
}

TEST_CASE("a producer index that falls back behind what was taken posts nothing") {
  const Fixture f;
  RingPoster program = f.program();
  REQUIRE(program.post(wqe_of(WorkOpcode::send, 1)));
  REQUIRE(program.post(wqe_of(WorkOpcode::send, 2)));
  f.take();
  f.take();
  program.producer().store(1);
  SendRequest request;
  CHECK_FALSE(f.ring->take(request));
  CHECK(f.ring->waiting() == 0);
  program.producer().store(3);
  CHECK(f.ring->take(request));
  CHECK_FALSE(f.ring->take(request));
}

TEST_CASE("what a program writes over the device's side of a send ring changes nothing") {
  const Fixture f;
  RingPoster program = f.program();
  REQUIRE(program.post(wqe_of(WorkOpcode::send, 1)));
  REQUIRE(program.post(wqe_of(WorkOpcode::send, 2)));
  program.consumer().store(0xFFFFFFFF);
  program.header().index_mask = 0xFFFFFFFF;
  program.header().log2_elem_size = 31;
  CHECK(f.take().wr_id == 1);
  CHECK(f.take().wr_id == 2);
  f.ring->retire(2);
  CHECK(program.consumer().load() == 2);
}

TEST_CASE("a list that changes after it was taken is seen, but not its number") {
  const Fixture f;
  rxe_send_wqe wqe = wqe_of(WorkOpcode::send);
  wqe.dma.num_sge = 1;
  const rxe_sge list[] = {{0x1000, 100, 1}, {0x2000, 50, 2}};
  const SendRequest request = f.post_and_take(wqe, std::as_bytes(std::span(list)));
  auto* const element = f.program().element(0);
  reinterpret_cast<rxe_send_wqe*>(element)->dma.num_sge = 2;
  reinterpret_cast<rxe_sge*>(element + sizeof(rxe_send_wqe))->lkey = 99;
  CHECK(request.sges.size() == 1);
  CHECK(request.sges[0].lkey == 99);
  CHECK(request.length == 100);
}

}  // namespace
}  // namespace urxe::verbs
