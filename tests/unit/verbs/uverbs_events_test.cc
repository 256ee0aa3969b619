// Events: what the program reads from its descriptors, and what destroy commands say of them.
#include <cerrno>

#include <fcntl.h>

#include "tests/unit/verbs/uverbs_pair.h"

using namespace urxe;
using namespace urxe::test;

namespace {

ib_uverbs_destroy_cq_resp destroy_cq(UverbsClient& client, std::uint32_t cq) {
  ib_uverbs_destroy_cq request{};
  request.cq_handle = cq;
  ib_uverbs_destroy_cq_resp response{};
  REQUIRE(client.run(IB_USER_VERBS_CMD_DESTROY_CQ, request, &response) == 0);
  return response;
}

std::uint32_t destroy_qp(UverbsClient& client, std::uint32_t qp) {
  ib_uverbs_destroy_qp request{};
  request.qp_handle = qp;
  ib_uverbs_destroy_qp_resp response{};
  REQUIRE(client.run(IB_USER_VERBS_CMD_DESTROY_QP, request, &response) == 0);
  return response.events_reported;
}

std::uint64_t read_completion_event(int fd) {
  ib_uverbs_comp_event_desc event{};
  REQUIRE(read(fd, &event, sizeof(event)) == sizeof(event));
  return event.cq_handle;
}

ib_uverbs_async_event_desc read_async_event(int fd) {
  ib_uverbs_async_event_desc event{};
  REQUIRE(read(fd, &event, sizeof(event)) == sizeof(event));
  return event;
}

}  // namespace

TEST_CASE(
    "an armed completion queue gives one event, which the program reads from its descriptor") {
  Pair pair(either_front());
  REQUIRE(pair.client.request_notification(pair.receive_cq.handle) == 0);
  CHECK_FALSE(is_readable(pair.channel));
  pair.transfer();
  pair.transfer();
  REQUIRE(is_readable(pair.channel));
  ib_uverbs_comp_event_desc event{};
  REQUIRE(read(pair.channel, &event, sizeof(event)) == sizeof(event));
  CHECK(event.cq_handle == kReceiveCq);
  CHECK_FALSE(is_readable(pair.channel));
  fcntl(pair.channel, F_SETFL, O_NONBLOCK);
  CHECK(read(pair.channel, &event, sizeof(event)) == -1);
  CHECK(errno == EAGAIN);
}

TEST_CASE("a queue armed for solicited events sleeps through others") {
  Pair pair;
  REQUIRE(pair.client.request_notification(pair.receive_cq.handle, true) == 0);
  pair.transfer();
  CHECK_FALSE(is_readable(pair.channel));
  pair.transfer(kSolicited);
  CHECK(is_readable(pair.channel));
}

TEST_CASE("destroying a completion queue takes back the events that were not read") {
  Pair pair(either_front());
  for (const auto* cq : {&pair.send_cq, &pair.receive_cq}) {
    REQUIRE(pair.client.request_notification(cq->handle) == 0);
  }
  pair.transfer();
  const std::uint64_t first = read_completion_event(pair.channel);
  REQUIRE(pair.client.request_notification(pair.receive_cq.handle) == 0);
  pair.transfer();
  destroy_qp(pair.client, pair.sender.handle);
  destroy_qp(pair.client, pair.receiver.handle);
  const std::uint32_t read_of_receives = first == kReceiveCq ? 1 : 0;
  CHECK(destroy_cq(pair.client, pair.receive_cq.handle).comp_events_reported == read_of_receives);
  if (read_of_receives == 0) {
    CHECK_FALSE(is_readable(pair.channel));
  } else {
    CHECK(read_completion_event(pair.channel) == kSendCq);
  }
  CHECK(destroy_cq(pair.client, pair.send_cq.handle).comp_events_reported == 1);
  CHECK_FALSE(is_readable(pair.channel));
}

TEST_CASE("the first message to a queue pair that is not yet ready to send is an event") {
  Pair pair(either_front());
  const auto early = pair.client.qp(pair.pd, pair.receive_cq.handle, 0xA3);
  const auto peer = pair.client.qp(pair.pd, pair.send_cq.handle, 0xA4);
  pair.client.connect(peer, early.qpn, Pair::gid());
  pair.client.connect(early, peer.qpn, Pair::gid(), 2);
  post_receive(pair.client.map(early.mappings.rq_mi), 9, pair.piece(1024, 64));
  post_send(pair.client.map(peer.mappings.sq_mi), 8, pair.piece(0, 64));
  REQUIRE(pair.client.ring(peer.handle) == 0);
  pair.client.file().drive();
  REQUIRE(is_readable(pair.async));
  const auto event = read_async_event(pair.async);
  CHECK(event.element == 0xA3);
  CHECK(event.event_type == 4);  // IBV_EVENT_COMM_EST
  CHECK(destroy_qp(pair.client, early.handle) == 1);
  CHECK(destroy_qp(pair.client, peer.handle) == 0);
}

TEST_CASE("asynchronous events that were not read go with their queue pair") {
  Pair pair(either_front());
  const auto early = pair.client.qp(pair.pd, pair.receive_cq.handle, 0xA3);
  const auto peer = pair.client.qp(pair.pd, pair.send_cq.handle, 0xA4);
  pair.client.connect(peer, early.qpn, Pair::gid());
  pair.client.connect(early, peer.qpn, Pair::gid(), 2);
  post_receive(pair.client.map(early.mappings.rq_mi), 9, pair.piece(1024, 64));
  post_send(pair.client.map(peer.mappings.sq_mi), 8, pair.piece(0, 64));
  REQUIRE(pair.client.ring(peer.handle) == 0);
  pair.client.file().drive();
  REQUIRE(is_readable(pair.async));
  CHECK(destroy_qp(pair.client, early.handle) == 0);
  CHECK_FALSE(is_readable(pair.async));
}

TEST_CASE("a shared receive queue tells once that few requests are left") {
  Pair pair(either_front());
  const auto srq = pair.client.srq(pair.pd, 0xB1, 2);
  ib_uverbs_create_qp wanted = UverbsClient::usual_qp();
  wanted.is_srq = 1;
  wanted.srq_handle = srq.handle;
  const auto taker = pair.client.qp(pair.pd, pair.receive_cq.handle, 8, wanted);
  const auto sender = pair.client.qp(pair.pd, pair.send_cq.handle, 7);
  pair.client.connect(taker, sender.qpn, Pair::gid());
  pair.client.connect(sender, taker.qpn, Pair::gid());
  auto* const receives = pair.client.map(srq.mapping);
  post_receive(receives, 31, pair.piece(2048, 64));
  post_receive(receives, 32, pair.piece(2048, 64));
  post_send(pair.client.map(sender.mappings.sq_mi), 1, pair.piece(0, 64));
  REQUIRE(pair.client.ring(sender.handle) == 0);
  pair.client.file().drive();
  const auto event = read_async_event(pair.async);
  CHECK(event.element == 0xB1);
  CHECK(event.event_type == 15);  // IBV_EVENT_SRQ_LIMIT_REACHED
  CHECK_FALSE(is_readable(pair.async));
}

TEST_CASE("an overflow of a completion queue is told of the queue and of the queue pair") {
  Pair pair(either_front());
  const auto small = pair.client.cq(0xC3, -1, 1);
  const auto sender = pair.client.qp(pair.pd, small.handle, 0xA5);
  const auto taker = pair.client.qp(pair.pd, pair.receive_cq.handle, 0xA6);
  pair.client.connect(sender, taker.qpn, Pair::gid());
  pair.client.connect(taker, sender.qpn, Pair::gid());
  auto* const receives = pair.client.map(taker.mappings.rq_mi);
  auto* const sends = pair.client.map(sender.mappings.sq_mi);
  const std::uint32_t room = pair.client.map(small.mapping)->index_mask;
  for (std::uint32_t i = 0; i <= room; ++i) {
    post_receive(receives, i, pair.piece(2048, 64));
    post_send(sends, i, pair.piece(0, 64));
  }
  REQUIRE(pair.client.ring(sender.handle) == 0);
  pair.client.file().drive();
  REQUIRE(is_readable(pair.async));
  const auto event = read_async_event(pair.async);
  CHECK(event.element == 0xC3);
  CHECK(event.event_type == 0);  // IBV_EVENT_CQ_ERR
}

TEST_CASE("events that a program is slow to read wait, and none is lost") {
  Pair pair(either_front());
  constexpr int kEvents = 2000;
  int read_so_far = 0;
  for (int i = 0; i < kEvents; ++i) {
    REQUIRE(pair.client.request_notification(pair.receive_cq.handle) == 0);
    pair.transfer();
    REQUIRE(poll_cq(pair.sent));
    REQUIRE(poll_cq(pair.received));
  }
  auto& listener = *pair.setup.source.device().listener();
  REQUIRE(listener.is_behind());
  std::vector<pollfd> descriptors;
  {
    const auto access = pair.setup.source.device().access();
    listener.wait_for(descriptors);
  }
  REQUIRE(descriptors.size() == 1);
  CHECK(poll(descriptors.data(), 1, 0) == 0);  // full
  fcntl(pair.channel, F_SETFL, O_NONBLOCK);
  for (; read_so_far < kEvents; ++read_so_far) {
    ib_uverbs_comp_event_desc event{};
    if (read(pair.channel, &event, sizeof(event)) == sizeof(event)) continue;
    REQUIRE(errno == EAGAIN);
    CHECK(poll(descriptors.data(), 1, 0) == 1);
    const auto access = pair.setup.source.device().access();  // what the progress thread does
    --read_so_far;
  }
  CHECK_FALSE(is_readable(pair.channel));
  CHECK_FALSE(listener.is_behind());
}

TEST_CASE("of a backlog, too, what belongs to a destroyed queue is taken back") {
  Pair pair(either_front());
  constexpr std::uint32_t kEvents = 1000;
  for (std::uint32_t i = 0; i < kEvents; ++i) {
    REQUIRE(pair.client.request_notification(pair.receive_cq.handle) == 0);
    pair.transfer();
    REQUIRE(poll_cq(pair.sent));
    REQUIRE(poll_cq(pair.received));
  }
  CHECK(read_completion_event(pair.channel) == kReceiveCq);
  destroy_qp(pair.client, pair.sender.handle);
  destroy_qp(pair.client, pair.receiver.handle);
  CHECK(destroy_cq(pair.client, pair.receive_cq.handle).comp_events_reported == 1);
  CHECK_FALSE(is_readable(pair.channel));
}

TEST_CASE("what happens to the port is told in every file") {
  Pair pair;
  UverbsClient other(pair.setup.node, Front::ioctl);
  const int second = other.open_context();
  pair.setup.source.device().listener()->async_event({emulator::AsyncEventType::gid_change, {}});
  for (const int fd : {pair.async, second}) {
    const auto event = read_async_event(fd);
    CHECK(event.element == 1);
    CHECK(event.event_type == 18);  // IBV_EVENT_GID_CHANGE
  }
}

TEST_CASE("a program that closed its channel is not told, and not harmed") {
  Pair pair(either_front());
  ib_uverbs_create_comp_channel_resp response{};
  REQUIRE(pair.client.run(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, ib_uverbs_create_comp_channel{},
                          &response) == 0);
  const auto cq = pair.client.cq(0xC4, static_cast<int>(response.fd));
  close(static_cast<int>(response.fd));
  const auto qp = pair.client.qp(pair.pd, cq.handle, 0xA7);
  pair.client.connect(qp, pair.receiver.qpn, Pair::gid());
  REQUIRE(pair.client.request_notification(cq.handle) == 0);
  ib_uverbs_modify_qp to_error{};
  to_error.qp_state = 6;
  post_send(pair.client.map(qp.mappings.sq_mi), 1, pair.piece(0, 64));
  REQUIRE(pair.client.modify(qp.handle, 1, to_error) == 0);
  REQUIRE(pair.client.ring(qp.handle) == 0);
  CHECK(poll_cq(pair.client.map(cq.mapping))->status == 5);
  destroy_qp(pair.client, qp.handle);
  CHECK(destroy_cq(pair.client, cq.handle).comp_events_reported == 0);
}
