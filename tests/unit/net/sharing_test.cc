// Several processes on one address.
#include <memory>
#include <set>
#include <vector>

#include <catch2/catch.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "net/udp/socket_address.h"
#include "tests/support/skip.h"
#include "tests/unit/net/child.h"
#include "tests/unit/net/traffic.h"

using namespace urxe;
using namespace urxe::test;

namespace {

using Children = std::vector<std::unique_ptr<Child>>;

Children start(std::size_t count, const net::UdpOptions& options) {
  Children children;
  for (std::size_t i = 0; i < count; ++i) {
    children.push_back(std::make_unique<Child>(options));
    REQUIRE(children.back()->error().empty());
  }
  return children;
}

// Somebody at another address who sends to them.
struct Peer {
  Peer() : fabric(open_fabric(on_loopback(node_address(0)))) {
    path.source = ip(node_address(0));
    path.destination = ip(node_address(1));
  }
  void send(wire::Qpn to, std::uint32_t packets, std::size_t payload = 256) {
    const Time deadline = now() + kPatience;
    for (std::uint32_t i = 0; i < packets; ++i, ++psn) {
      while (!put(*fabric, path, to, psn, payload)) {
        REQUIRE(now() < deadline);
        fabric->flush(now());
      }
    }
    while (!fabric->flush(now())) REQUIRE(now() < deadline);
  }
  // Until a few packets in a row need no handing over.
  void send_until_steered(const Children& children) {
    const Time deadline = now() + kPatience;
    bool steered = false;
    while (!steered && now() < deadline) {
      steered = true;
      for (const auto& child : children) {
        const std::uint64_t before = child->report().counters.taken_over;
        const std::uint64_t packets = child->report().packets;
        send(child->qpn(), 1);
        steered = child->report_after(packets + 1).counters.taken_over == before && steered;
      }
    }
    CHECK(steered);
  }
  std::unique_ptr<net::UdpFabric> fabric;
  wire::Path path{.source_port = 0xC055};
  std::uint32_t psn = 0;
};

net::UdpOptions shared_address() { return on_loopback(node_address(1)); }

}  // namespace

TEST_CASE("each process gets the packets to its queue pairs, whatever the kernel picks") {
  Peer peer;
  Children children = start(5, shared_address());
  std::set<std::uint32_t> slots;
  for (const auto& child : children) slots.insert(child->slot().value());
  CHECK(slots.size() == children.size());
  for (std::uint64_t round = 1; round <= 10; ++round) {
    for (const auto& child : children) peer.send(child->qpn(), 7);
    // Datagrams may be lost where queues overflow because a process does not run.
    for (const auto& child : children) CHECK(child->report_after(7 * round).packets == 7 * round);
  }
  for (const auto& child : children) {
    const ChildReport report = child->report_after(70);
    CHECK(report.packets == 70);
    CHECK(report.right_packets == 70);
  }
}

TEST_CASE("processes find out the kernel's order, and then nothing is handed over") {
  Peer peer;
  Children children = start(4, shared_address());
  peer.send_until_steered(children);
}

TEST_CASE("while one process has the turn to ask for the order, the others hand over") {
  Peer peer;
  const Time start = now();
  std::vector<net::Mailbox> turns;
  for (const Time when : {start, start + std::chrono::seconds(2)}) {
    auto turn = net::Mailbox::open(net::turn_mailbox(ip(node_address(1)), when), nullptr);
    REQUIRE(turn);
    turns.push_back(std::move(*turn));
  }
  Children children;
  for (int i = 0; i < 3; ++i) {
    children.push_back(std::make_unique<Child>(shared_address(), [&] { turns.clear(); }));
    REQUIRE(children.back()->error().empty());
  }
  // Long enough for them to want the turn again and again.
  for (std::uint64_t round = 1; now() < start + std::chrono::milliseconds(800); ++round) {
    std::uint64_t taken_over = 0;
    for (const auto& child : children) {
      peer.send(child->qpn(), 1);
      taken_over += child->report_after(round).counters.taken_over;
    }
    // The packets have one source, so all come to one of the three.
    REQUIRE(taken_over == 2 * round);
  }
  turns.clear();
  peer.send_until_steered(children);
}

TEST_CASE("a process that stands still while it has the turn holds the others up for seconds") {
  Peer peer;
  const auto turn = net::Mailbox::open(net::turn_mailbox(ip(node_address(1)), now()), nullptr);
  REQUIRE(turn);
  Children children = start(3, shared_address());
  peer.send_until_steered(children);
}

TEST_CASE("the order is found out anew when a process in the middle ends") {
  Peer peer;
  Children children = start(5, shared_address());
  peer.send_until_steered(children);
  children.erase(children.begin() + 1);
  for (const auto& child : children) {
    const std::uint64_t before = child->report().packets;
    peer.send(child->qpn(), 20);
    CHECK(child->report_after(before + 20).packets == before + 20);
  }
  peer.send_until_steered(children);
}

TEST_CASE("a killed process's slot is free at once") {
  Peer peer;
  Children children = start(3, shared_address());
  const net::Slot freed = children[1]->slot();
  children[1]->kill_now();
  children[1] = nullptr;
  // Somebody else's test may take it first.
  std::vector<std::unique_ptr<Child>> more;
  bool taken = false;
  for (int i = 0; i < 3 && !taken; ++i) {
    more.push_back(std::make_unique<Child>(shared_address()));
    REQUIRE(more.back()->error().empty());
    taken = more.back()->slot() == freed;
  }
  for (const auto& child : more) {
    peer.send(child->qpn(), 10);
    CHECK(child->report_after(10).right_packets == 10);
  }
}

TEST_CASE("packets to a slot without an owner are counted") {
  Peer peer;
  Children children = start(1, shared_address());
  peer.send(net::first_qpn_of(net::Slot{net::kSlotCount - 1}), 3);
  const Time deadline = now() + kPatience;
  while (children[0]->report().counters.ownerless < 3 && now() < deadline) {
  }
  CHECK(children[0]->report().counters.ownerless == 3);
}

TEST_CASE("a process that stands still hurts no other") {
  Peer peer;
  Children children = start(4, shared_address());
  peer.send_until_steered(children);
  children[1]->stop();
  peer.send(children[1]->qpn(), 2000, 1024);
  for (const std::size_t i : {0, 2, 3}) {
    const std::uint64_t before = children[i]->report().packets;
    peer.send(children[i]->qpn(), 100);
    CHECK(children[i]->report_after(before + 100).packets == before + 100);
  }
  children[1]->go_on();
  CHECK(children[1]->report().packets > 0);
}

TEST_CASE("packets are handed over to a process that stands still only as far as they fit") {
  // The group's only other member, without steering: everything for it comes here first.
  net::UdpOptions elsewhere = on_loopback(node_address(2));
  Child stopped(elsewhere);
  REQUIRE(stopped.error().empty());
  stopped.stop();
  Peer peer;
  Children children = start(1, shared_address());
  const Time deadline = now() + kPatience;
  net::UdpCounters counters;
  for (std::uint64_t sent = 2; sent <= 200; sent += 2) {
    peer.send(stopped.qpn(), 2);
    while (counters.handed_over + counters.hand_over_drops < sent && now() < deadline) {
      counters = children[0]->report().counters;
    }
  }
  CHECK(counters.handed_over > 0);
  CHECK(counters.hand_over_drops > 0);
  CHECK(counters.handed_over + counters.hand_over_drops == 200);
  // It has no such address: what was handed over is nobody's.
  stopped.go_on();
  while (stopped.report().counters.ownerless < counters.handed_over && now() < deadline) {
  }
  CHECK(stopped.report().packets == 0);
  CHECK(stopped.report().counters.ownerless == counters.handed_over);
}

TEST_CASE("management datagrams go to the lowest slot of all") {
  if (!enter_own_network()) return skip(kNeedsRoot);  // where no other test has a lower one
  Children children = start(3, shared_address());
  Peer peer;
  for (int i = 0; i < 10; ++i) peer.send(wire::kGsiQpn, 1);
  CHECK(children[0]->report_after(10).packets == 10);
  children[0] = nullptr;
  for (int i = 0; i < 10; ++i) peer.send(wire::kGsiQpn, 1);
  CHECK(children[1]->report_after(10).packets == 10);
  CHECK(children[2]->report().packets == 0);
}

TEST_CASE("a router gives management datagrams to whoever claimed a name") {
  class Router final : public net::MadRouter {
   public:
    std::optional<std::string> owner_of(const wire::Inbound& packet) override {
      const wire::Psn psn = wire::Bth::parse(packet.bytes).psn;
      return net::mailbox_of_name("test/" + node_address(1) + "/" +
                                  std::to_string(psn.value() % 2));
    }
  };
  Peer peer;
  Children children;
  for (int i = 0; i < 2; ++i) {
    children.push_back(std::make_unique<Child>(
        shared_address(), [] {},
        [i](net::UdpFabric& fabric) {
          static Router router;
          fabric.set_mad_router(&router);
          const std::string name = "test/" + node_address(1) + "/" + std::to_string(i);
          if (fabric.claim_name(name) != 0) _exit(1);
          if (fabric.claim_name(name) != EADDRINUSE) _exit(2);
        }));
    REQUIRE(children.back()->error().empty());
  }
  for (int i = 0; i < 20; ++i) peer.send(wire::kGsiQpn, 1);
  for (const auto& child : children) CHECK(child->report_after(10).packets == 10);
}

namespace {

// All management datagrams are one owner's.
class OneOwner final : public net::MadRouter {
 public:
  explicit OneOwner(std::string name) : name_(std::move(name)) {}
  std::optional<std::string> owner_of(const wire::Inbound&) override { return name_; }

 private:
  const std::string name_;
};

}  // namespace

TEST_CASE("management datagrams of a process that is gone are answered by whoever has them") {
  OneOwner router(net::mailbox_of(net::Slot{999}));
  auto fabric = open_fabric(shared_address());
  fabric->set_mad_router(&router);
  Peer peer;
  peer.send(wire::kGsiQpn, 1);
  Arrivals arrivals;
  receive_until(*fabric, arrivals, 1);
  CHECK(arrivals.all.size() == 1);
}

TEST_CASE("a request for a name that nobody has is held, and then answered by whoever has it") {
  OneOwner router(net::mailbox_of_name("test/nobody"));
  auto fabric = open_fabric(shared_address());
  fabric->set_mad_router(&router);
  Peer peer;
  peer.send(wire::kGsiQpn, 1);
  Arrivals arrivals;
  const Time start = now();
  while (arrivals.all.empty() && now() < start + kPatience) {
    static_cast<void>(fabric->receive(now(), arrivals, 1000));
  }
  CHECK(arrivals.all.size() == 1);
  CHECK(now() - start >= net::HeldRequests::kGrace);
}

TEST_CASE("a held request goes to who claims the name") {
  OneOwner router(net::mailbox_of_name("test/late"));
  auto holder = open_fabric(shared_address());
  holder->set_mad_router(&router);
  Peer peer;
  peer.send(wire::kGsiQpn, 1);
  Arrivals of_holder;
  const Time start = now();
  // Held for as long as time stands still.
  for (int i = 0; i < 1000; ++i) static_cast<void>(holder->receive(start, of_holder, 1000));
  CHECK(of_holder.all.empty());
  const bool by_another = GENERATE(true, false);
  std::unique_ptr<net::UdpFabric> other;
  if (by_another) other = open_fabric(on_loopback(node_address(2)));
  REQUIRE((by_another ? *other : *holder).claim_name("test/late") == 0);
  while (holder->counters().handed_over == 0 && of_holder.all.empty() &&
         now() < start + kPatience) {
    static_cast<void>(holder->receive(start, of_holder, 1000));
  }
  CHECK(holder->counters().handed_over == (by_another ? 1 : 0));
  CHECK(of_holder.all.size() == (by_another ? 0 : 1));
}

TEST_CASE("requests that were not read when a name was released go to who claims it next") {
  OneOwner router(net::mailbox_of_name("test/next"));
  auto holder = open_fabric(shared_address());
  holder->set_mad_router(&router);
  auto first = open_fabric(on_loopback(node_address(2)));
  REQUIRE(first->claim_name("test/next") == 0);
  Peer peer;
  peer.send(wire::kGsiQpn, 1);
  Arrivals arrivals;
  const Time start = now();
  while (holder->counters().handed_over == 0 && now() < start + kPatience) {
    static_cast<void>(holder->receive(now(), arrivals, 1000));
  }
  first->release_name("test/next");
  auto second = open_fabric(on_loopback(node_address(3)));
  REQUIRE(second->claim_name("test/next") == 0);
  while (first->counters().handed_over == 0 && now() < start + kPatience) {
    static_cast<void>(first->receive(now(), arrivals, 1000));
  }
  CHECK(first->counters().handed_over == 1);
  CHECK(arrivals.all.empty());
}

TEST_CASE("management datagrams wait for a process whose mailbox is full") {
  OneOwner router(net::mailbox_of_name("test/slow/" + node_address(1)));
  auto holder = open_fabric(shared_address());
  auto slow = open_fabric(shared_address());
  holder->set_mad_router(&router);
  slow->set_mad_router(&router);
  REQUIRE(slow->claim_name("test/slow/" + node_address(1)) == 0);
  Peer peer;
  constexpr std::size_t kMany = 100;
  for (std::size_t i = 0; i < kMany; ++i) peer.send(wire::kGsiQpn, 1);
  Arrivals of_holder;
  Arrivals of_slow;
  const Time start = now();
  // Time stands still, so that nothing is given up.
  for (int i = 0; i < 100; ++i) static_cast<void>(holder->receive(start, of_holder, 1000));
  while (of_slow.all.size() < kMany && now() < start + kPatience) {
    static_cast<void>(holder->receive(start, of_holder, 1000));
    static_cast<void>(slow->receive(start, of_slow, 1000));
  }
  CHECK(of_holder.all.empty());
  CHECK(of_slow.all.size() == kMany);
}

TEST_CASE("of requests for nobody only so many are held") {
  OneOwner router(net::mailbox_of_name("test/nobody"));
  auto fabric = open_fabric(shared_address());
  fabric->set_mad_router(&router);
  Peer peer;
  constexpr std::size_t kMore = 10;
  Arrivals arrivals;
  const Time start = now();
  for (std::size_t i = 0; i < net::HeldRequests::kMost + kMore; ++i) {
    peer.send(wire::kGsiQpn, 1);
    static_cast<void>(fabric->receive(start, arrivals, 1000));
  }
  while (arrivals.all.size() < kMore && now() < start + kPatience) {
    static_cast<void>(fabric->receive(start, arrivals, 1000));
  }
  CHECK(arrivals.all.size() == kMore);
}

TEST_CASE("two fabrics of one process share an address, too") {
  auto first = open_fabric(shared_address());
  auto second = open_fabric(shared_address());
  CHECK(first->slots().front().slot != second->slots().front().slot);
  Peer peer;
  for (int i = 0; i < 50; ++i) {
    peer.send(qpn_of(*first), 1);
    peer.send(qpn_of(*second), 1);
  }
  Arrivals of_first;
  Arrivals of_second;
  const Time deadline = now() + kPatience;
  while ((of_first.all.size() < 50 || of_second.all.size() < 50) && now() < deadline) {
    receive_all(*first, of_first);
    receive_all(*second, of_second);
  }
  CHECK(of_first.all.size() == 50);
  CHECK(of_second.all.size() == 50);
}

TEST_CASE("a fabric can claim more slots") {
  auto fabric = open_fabric(shared_address());
  const auto slot = fabric->claim_slot();
  REQUIRE(slot);
  REQUIRE(fabric->slots().size() == 2);
  CHECK(fabric->slots()[1].slot == *slot);
  Peer peer;
  peer.send(net::first_qpn_of(*slot), 5);
  Arrivals arrivals;
  receive_until(*fabric, arrivals, 5);
  CHECK(arrivals.all.size() == 5);
}

TEST_CASE("another user cannot share the address, and is told who has it") {
  if (geteuid() != 0) return skip("needs root, to become another user");
  auto fabric = open_fabric(shared_address());
  const Child other(shared_address(), [] {
    if (setuid(65534) != 0) _exit(1);
  });
  CHECK_THAT(other.error(), Catch::Contains("user 0 has it"));
}

TEST_CASE("another user cannot hand packets over") {
  if (geteuid() != 0) return skip("needs root, to become another user");
  auto fabric = open_fabric(shared_address());
  // A user at another address, who takes this process's packets for ones to hand over.
  const Child other(on_loopback(node_address(2)), [] {
    if (setuid(65534) != 0) _exit(1);
  });
  REQUIRE(other.error().empty());
  Peer peer;
  peer.path.destination = ip(node_address(2));
  peer.send(qpn_of(*fabric), 3);
  Arrivals arrivals;
  const Time deadline = now() + kPatience;
  while (fabric->counters().refused_letters == 0 && now() < deadline) {
    receive_all(*fabric, arrivals);
  }
  CHECK(fabric->counters().refused_letters > 0);
  CHECK(fabric->counters().taken_over == 0);
  CHECK(arrivals.all.empty());
}

TEST_CASE("processes come and go by the hundred, and the others miss nothing", "[.slow]") {
  Peer peer;
  Children children = start(32, shared_address());
  constexpr std::uint32_t kPackets = 10;
  std::uint64_t handed_over = 0;
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
  for (std::size_t round = 0; round < 300; ++round) {
    auto& victim = children[round * 7 % children.size()];
    victim->kill_now();
    victim = std::make_unique<Child>(shared_address());
    REQUIRE(victim->error().empty());
    std::vector<std::uint64_t> before;
    for (const auto& child : children) {
      before.push_back(child->report().packets);
      peer.send(child->qpn(), kPackets);
      sent += kPackets;
    }
    for (std::size_t i = 0; i < children.size(); ++i) {
      CAPTURE(round, i);
      ChildReport report = children[i]->report_after(before[i] + kPackets);
      if (report.packets < before[i] + kPackets) {
        // The kernel may have given them to a socket that was being closed. Those that are sent
        // again must come.
        lost += before[i] + kPackets - report.packets;
        peer.send(children[i]->qpn(), kPackets);
        report = children[i]->report_after(report.packets + kPackets);
        REQUIRE(report.packets >= before[i] + kPackets);
      }
      REQUIRE(report.right_packets == report.packets);
    }
  }
  for (const auto& child : children) handed_over += child->report().counters.handed_over;
  // Most were steered to their owners.
  CHECK(handed_over < sent / 2);
  CHECK(lost <= sent / 1000);
  WARN(handed_over << " of " << sent << " packets were handed over");
}
