// Datagrams to a service that rdma_cm finds, on librdmacm alone.
//   datagrams server ADDRESS PORT            echoes what comes, for any number of clients, until it
//                                            gets SIGTERM
//   datagrams client ADDRESS PORT SECONDS    finds the service, sends and checks the echo for so
//                                            long; what is lost is sent again
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kSize = 64;
constexpr std::uint32_t kHeader = sizeof(ibv_grh);
constexpr std::uint32_t kDepth = 8;
constexpr std::uint32_t kQKey = 0x01234567;  // RDMA_UDP_QKEY
constexpr int kPatience = 60'000;            // milliseconds
constexpr int kLost = 1000;                  // milliseconds
constexpr int kPause = 50;                   // milliseconds; the others want to run, too

volatile std::sig_atomic_t is_over = 0;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::_Exit(1);
}

// An identifier with its queue pair, and buffers that wait for datagrams.
struct Endpoint {
  rdma_cm_id* id = nullptr;
  ibv_mr* region = nullptr;
  ibv_ah* peer = nullptr;
  std::array<std::array<std::uint8_t, kHeader + kSize>, kDepth> buffers{};

  void open() {
    ibv_qp_init_attr attributes{};
    attributes.cap = {.max_send_wr = 2 * kDepth,
                      .max_recv_wr = kDepth,
                      .max_send_sge = 1,
                      .max_recv_sge = 1,
                      .max_inline_data = kSize};
    attributes.qp_type = IBV_QPT_UD;
    if (rdma_create_qp(id, nullptr, &attributes) != 0) fail("queue pair");
    region = rdma_reg_msgs(id, buffers.data(), sizeof(buffers));
    if (region == nullptr) fail("memory region");
    for (std::uint32_t slot = 0; slot < kDepth; ++slot) receive(slot);
    if (ibv_req_notify_cq(id->recv_cq, 0) != 0) fail("notify");
  }
  // Becomes readable when a datagram comes.
  [[nodiscard]] pollfd source() const {
    return {.fd = id->recv_cq_channel->fd, .events = POLLIN, .revents = 0};
  }
  // Its source is readable. Datagrams must be looked for after that.
  void take_event() const {
    ibv_cq* queue = nullptr;
    void* context = nullptr;
    if (ibv_get_cq_event(id->recv_cq_channel, &queue, &context) != 0) fail("completion event");
    ibv_ack_cq_events(queue, 1);
    if (ibv_req_notify_cq(queue, 0) != 0) fail("notify");
  }
  void receive(std::uint32_t slot) {
    if (rdma_post_recv(id, reinterpret_cast<void*>(std::uintptr_t{slot}), buffers[slot].data(),
                       buffers[slot].size(), region) != 0) {
      fail("receive");
    }
  }
  void send(const std::uint8_t* data, ibv_ah* to, std::uint32_t qpn) const {
    ibv_sge piece{.addr = reinterpret_cast<std::uintptr_t>(data), .length = kSize, .lkey = 0};
    ibv_send_wr request{};
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    request.wr.ud = {.ah = to, .remote_qpn = qpn, .remote_qkey = kQKey};
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(id->qp, &request, &bad) != 0) fail("send");
  }
  // Takes what was sent; none of it may have failed.
  void take_sent() const {
    ibv_wc completion;
    while (ibv_poll_cq(id->send_cq, 1, &completion) > 0) {
      if (completion.status != IBV_WC_SUCCESS) fail(ibv_wc_status_str(completion.status));
    }
  }
  // Takes a datagram; false if there is none.
  bool take(ibv_wc& completion) const {
    if (ibv_poll_cq(id->recv_cq, 1, &completion) <= 0) return false;
    if (completion.status != IBV_WC_SUCCESS) fail(ibv_wc_status_str(completion.status));
    return true;
  }
  [[nodiscard]] const std::uint8_t* data(const ibv_wc& completion) const {
    return buffers[completion.wr_id].data() + kHeader;
  }
};

// --- the server

void echo(Endpoint& endpoint) {
  ibv_wc completion;
  while (endpoint.take(completion)) {
    auto* header = reinterpret_cast<ibv_grh*>(endpoint.buffers[completion.wr_id].data());
    ibv_ah* to = ibv_create_ah_from_wc(endpoint.id->pd, &completion, header, 1);
    if (to == nullptr) fail("address handle");
    endpoint.send(endpoint.data(completion), to, completion.src_qp);
    endpoint.take_sent();
    ibv_destroy_ah(to);
    endpoint.receive(static_cast<std::uint32_t>(completion.wr_id));
  }
  endpoint.take_sent();
}

void handle_event(std::vector<std::unique_ptr<Endpoint>>& endpoints, rdma_event_channel* channel) {
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(channel, &event) != 0) fail("event");
  rdma_cm_id* id = event->id;
  const bool is_request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
  rdma_ack_cm_event(event);
  if (!is_request) return;
  endpoints.push_back(std::make_unique<Endpoint>());
  endpoints.back()->id = id;
  endpoints.back()->open();
  rdma_conn_param answer{};
  answer.qp_num = id->qp->qp_num;
  if (rdma_accept(id, &answer) != 0) fail("accept");
}

int serve(rdma_event_channel* channel, sockaddr* address) {
  std::signal(SIGTERM, [](int) { is_over = 1; });
  rdma_cm_id* listener = nullptr;
  if (rdma_create_id(channel, &listener, nullptr, RDMA_PS_UDP) != 0 ||
      rdma_bind_addr(listener, address) != 0 || rdma_listen(listener, 0) != 0) {
    fail("listen");
  }
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  while (is_over == 0) {
    std::vector<pollfd> sources;
    for (const auto& endpoint : endpoints) sources.push_back(endpoint->source());
    sources.push_back({.fd = channel->fd, .events = POLLIN, .revents = 0});
    if (poll(sources.data(), sources.size(), 1000) <= 0) continue;
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
      if (sources[i].revents != 0) endpoints[i]->take_event();
      echo(*endpoints[i]);
    }
    if (sources.back().revents != 0) handle_event(endpoints, channel);
  }
  return 0;
}

// --- the client

rdma_ud_param expect(rdma_event_channel* channel, rdma_cm_event_type wanted) {
  pollfd source{.fd = channel->fd, .events = POLLIN, .revents = 0};
  if (poll(&source, 1, kPatience) != 1) fail("no event");
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(channel, &event) != 0) fail("event");
  if (event->event != wanted) fail(rdma_event_str(event->event));
  const rdma_ud_param found = event->param.ud;
  rdma_ack_cm_event(event);
  return found;
}

// Sends until the echo of this round comes, and checks it.
void exchange(Endpoint& endpoint, std::uint32_t qpn, std::uint32_t round) {
  std::array<std::uint8_t, kSize> data{};
  std::memcpy(data.data(), &round, sizeof(round));
  for (std::uint32_t i = sizeof(round); i < kSize; ++i) {
    data[i] = static_cast<std::uint8_t>(endpoint.id->qp->qp_num * 13 + round * 7 + i);
  }
  const auto deadline = Clock::now() + std::chrono::milliseconds(kPatience);
  auto sent = Clock::time_point::min();
  while (true) {
    if (Clock::now() > deadline) fail("no echo");
    if (sent == Clock::time_point::min() ||
        Clock::now() > sent + std::chrono::milliseconds(kLost)) {
      endpoint.send(data.data(), endpoint.peer, qpn);
      sent = Clock::now();
    }
    endpoint.take_sent();
    ibv_wc completion;
    if (!endpoint.take(completion)) {
      pollfd source = endpoint.source();
      if (poll(&source, 1, kLost) > 0) endpoint.take_event();
      continue;
    }
    std::uint32_t echoed = 0;
    std::memcpy(&echoed, endpoint.data(completion), sizeof(echoed));
    const bool right = std::memcmp(endpoint.data(completion), data.data(), kSize) == 0;
    if (echoed > round || (echoed == round && !right)) fail("wrong echo");
    endpoint.receive(static_cast<std::uint32_t>(completion.wr_id));
    if (echoed == round) return;  // else an old one, of a datagram that was sent twice
  }
}

int call(rdma_event_channel* channel, sockaddr* address, int seconds) {
  Endpoint endpoint;
  if (rdma_create_id(channel, &endpoint.id, nullptr, RDMA_PS_UDP) != 0) fail("identifier");
  if (rdma_resolve_addr(endpoint.id, nullptr, address, 2000) != 0) fail("resolve address");
  expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
  if (rdma_resolve_route(endpoint.id, 2000) != 0) fail("resolve route");
  expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
  endpoint.open();
  rdma_conn_param wish{};
  if (rdma_connect(endpoint.id, &wish) != 0) fail("connect");
  rdma_ud_param found = expect(channel, RDMA_CM_EVENT_ESTABLISHED);
  endpoint.peer = ibv_create_ah(endpoint.id->pd, &found.ah_attr);
  if (endpoint.peer == nullptr) fail("address handle");
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  for (std::uint32_t round = 0; Clock::now() < end; ++round) {
    exchange(endpoint, found.qp_num, round);
    poll(nullptr, 0, kPause);
  }
  std::puts("all echoes right");
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) return 2;
  rdma_addrinfo hints{};
  hints.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST;
  hints.ai_port_space = RDMA_PS_UDP;
  rdma_addrinfo* found = nullptr;
  if (rdma_getaddrinfo(arguments[2], arguments[3], &hints, &found) != 0) fail("address");
  rdma_event_channel* channel = rdma_create_event_channel();
  if (channel == nullptr) fail("channel");
  if (std::string_view(arguments[1]) == "server") return serve(channel, found->ai_src_addr);
  return count == 5 ? call(channel, found->ai_src_addr, std::atoi(arguments[4])) : 2;
}
