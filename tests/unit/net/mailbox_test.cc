// Letters between processes, and what is none.
#include "net/udp/mailbox.h"

#include <cstring>

#include <catch2/catch.hpp>

#include "net/udp/outbox.h"
#include "net/udp/steering.h"
#include "tests/unit/net/traffic.h"

using namespace urxe;
using namespace urxe::test;

namespace {

std::string name_of_this_test(const std::string& which) {
  return "urxe/test/" + node_address(0) + "/" + which;
}

const std::vector<std::uint8_t> kBytes(1000, 0x5A);

net::Datagram example() {
  return {.path = {.source = ip("192.0.2.1"),
                   .destination = ip("192.0.2.2"),
                   .source_port = 0xC001,
                   .traffic_class = 0x6A,
                   .hop_limit = 3},
          .segment_size = 300,
          .bytes = kBytes};
}

}  // namespace

TEST_CASE("a letter carries several datagrams with all that is known of them") {
  auto mailbox = net::Mailbox::open(name_of_this_test("a"), nullptr);
  REQUIRE(mailbox);
  net::Letter letter;
  REQUIRE(letter.add(example()));
  net::Datagram second = example();
  second.path.source = ip("fe80::1");
  second.path.destination = ip("fe80::2");
  second.bytes = wire::Bytes(kBytes).first(300);
  REQUIRE(letter.add(second));
  REQUIRE(mailbox->post(name_of_this_test("a"), letter.bytes()) == 0);

  std::vector<std::uint8_t> buffer(net::Letter::kMaxSize);
  auto got = mailbox->take(buffer);
  REQUIRE(got);
  const auto first_got = net::Letter::take(*got);
  REQUIRE(first_got);
  CHECK(first_got->path == example().path);
  CHECK(first_got->segment_size == 300);
  CHECK(std::equal(kBytes.begin(), kBytes.end(), first_got->bytes.begin(), first_got->bytes.end()));
  const auto second_got = net::Letter::take(*got);
  REQUIRE(second_got);
  CHECK(second_got->path == second.path);
  CHECK(second_got->bytes.size() == 300);
  CHECK(!net::Letter::take(*got));
  CHECK(!mailbox->take(buffer));
}

TEST_CASE("a letter that is cut off, or that lies, ends early") {
  net::Letter letter;
  REQUIRE(letter.add(example()));
  const std::vector<std::uint8_t> whole(letter.bytes().begin(), letter.bytes().end());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    wire::Bytes cut = wire::Bytes(whole).first(size);
    CHECK(!net::Letter::take(cut));
  }
  const std::size_t head = whole.size() - kBytes.size();
  for (std::size_t at = 0; at < head; ++at) {
    for (const std::uint8_t value : {0x00, 0x01, 0x7F, 0xFF}) {
      std::vector<std::uint8_t> changed = whole;
      changed[at] = value;
      wire::Bytes rest(changed);
      const auto datagram = net::Letter::take(rest);
      if (!datagram) continue;
      CHECK(datagram->segment_size > 0);
      CHECK(datagram->segment_size <= datagram->bytes.size());
      CHECK(datagram->bytes.data() + datagram->bytes.size() <= changed.data() + changed.size());
      CHECK(datagram->path.source.is_v4() == datagram->path.destination.is_v4());
    }
  }
}

TEST_CASE("a mailbox's name belongs to one, until that closes it") {
  {
    const auto first = net::Mailbox::open(name_of_this_test("b"), nullptr);
    REQUIRE(first);
    const auto second = net::Mailbox::open(name_of_this_test("b"), nullptr);
    REQUIRE(!second);
    CHECK(second.error() == EADDRINUSE);
  }
  CHECK(net::Mailbox::open(name_of_this_test("b"), nullptr));
}

TEST_CASE("posting tells apart who is not there and who does not keep up") {
  const auto sender = net::Mailbox::open(name_of_this_test("c"), nullptr);
  const auto full = net::Mailbox::open(name_of_this_test("d"), nullptr);
  REQUIRE(sender);
  REQUIRE(full);
  CHECK(sender->post(name_of_this_test("nobody"), kBytes) == ECONNREFUSED);
  int error = 0;
  for (int i = 0; i < 100'000 && error == 0; ++i) {
    error = sender->post(name_of_this_test("d"), kBytes);
  }
  CHECK(error == EAGAIN);
}

TEST_CASE("an outbox writes one letter to each, and has room for a few") {
  auto mailbox = net::Mailbox::open(name_of_this_test("e"), nullptr);
  REQUIRE(mailbox);
  net::Outbox outbox;
  REQUIRE(outbox.add(name_of_this_test("e"), example(), 4));
  REQUIRE(outbox.add(name_of_this_test("nobody"), example(), 4));
  REQUIRE(outbox.add(name_of_this_test("e"), example(), 4));
  for (int i = 2; i < 8; ++i) REQUIRE(outbox.add(std::to_string(i), example(), 4));
  CHECK(!outbox.add("one too many", example(), 4));
  std::uint64_t posted = 0;
  std::uint64_t refused = 0;
  outbox.post_all(*mailbox, [&](const net::Outbox::Entry& entry, int error) {
    (error == 0 ? posted : refused) += entry.packets;
  });
  CHECK(posted == 8);
  CHECK(refused == 7 * 4);
  CHECK(outbox.add("one too many", example(), 4));
  std::vector<std::uint8_t> buffer(net::Letter::kMaxSize);
  auto letter = mailbox->take(buffer);
  REQUIRE(letter);
  CHECK(net::Letter::take(*letter));
  CHECK(net::Letter::take(*letter));
  CHECK(!net::Letter::take(*letter));
}

TEST_CASE("steering notes are told from packets") {
  const net::SteeringNote probe{.index = 7, .slot = net::Slot{1000}, .nonce = 0x0123456789ABCDEF};
  const auto bytes = probe.serialize();
  const auto parsed = net::SteeringNote::parse(bytes);
  REQUIRE(parsed);
  CHECK(parsed->kind == net::SteeringNote::Kind::probe);
  CHECK(parsed->index == 7);
  CHECK(parsed->slot == net::Slot{1000});
  CHECK(parsed->nonce == probe.nonce);
  CHECK(!net::SteeringNote::parse(wire::Bytes(bytes).first(23)));
  CHECK(!net::SteeringNote::parse(wire::Bytes(kBytes).first(24)));
}
