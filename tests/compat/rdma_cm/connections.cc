// Connections by the dozen, on librdmacm alone.
//   connections server ADDRESS PORT            echoes what comes, on any number of connections,
//                                              says when one ends, until it gets SIGTERM
//   connections client ADDRESS PORT COUNT ROUNDS SECONDS
//     makes COUNT connections; on each of them sends and checks the echo, ROUNDS times or, if that
//     is 0, for SECONDS; ends them. With 0 rounds and 0 seconds it waits for the server's end of
//     the first.
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

constexpr std::uint32_t kSize = 64;
constexpr std::uint32_t kDepth = 4;
constexpr int kMostCompletions = 16384;
constexpr int kPatience = 60'000;  // milliseconds
constexpr int kPause = 50;         // milliseconds; the others want to run, too

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::_Exit(1);  // the peer is to see how that looks
}

volatile std::sig_atomic_t is_over = 0;

struct Connection {
  rdma_cm_id* id = nullptr;
  ibv_mr* region = nullptr;
  std::array<std::array<std::uint8_t, kSize>, kDepth> buffers{};
};

// The completion queue that all connections of this process share.
struct Completions {
  ibv_comp_channel* channel = nullptr;
  ibv_cq* queue = nullptr;

  void open(ibv_context* verbs) {
    if (queue != nullptr) return;
    channel = ibv_create_comp_channel(verbs);
    queue = ibv_create_cq(verbs, kMostCompletions, nullptr, channel, 0);
    if (queue == nullptr || ibv_req_notify_cq(queue, 0) != 0) fail("completion queue");
  }
  // The channel is readable. Completions must be looked for after that.
  void take_event() const {
    ibv_cq* completed = nullptr;
    void* context = nullptr;
    if (ibv_get_cq_event(channel, &completed, &context) != 0) fail("completion event");
    ibv_ack_cq_events(completed, 1);
    if (ibv_req_notify_cq(completed, 0) != 0) fail("notify");
  }
};
Completions completions;

void post_receive(Connection& connection, std::uint32_t slot) {
  auto* buffer = connection.buffers[slot].data();
  if (rdma_post_recv(connection.id, reinterpret_cast<void*>(std::uintptr_t{slot}), buffer, kSize,
                     connection.region) != 0) {
    fail("receive");
  }
}

void set_up(Connection& connection) {
  completions.open(connection.id->verbs);
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = completions.queue;
  attributes.cap = {.max_send_wr = 2 * kDepth,
                    .max_recv_wr = kDepth,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = kSize};
  attributes.qp_type = IBV_QPT_RC;
  if (rdma_create_qp(connection.id, nullptr, &attributes) != 0) fail("queue pair");
  connection.id->context = &connection;
  connection.region = rdma_reg_msgs(connection.id, connection.buffers.data(), kSize * kDepth);
  if (connection.region == nullptr) fail("memory region");
  for (std::uint32_t slot = 0; slot < kDepth; ++slot) post_receive(connection, slot);
}

void tear_down(Connection& connection) {
  rdma_destroy_qp(connection.id);
  rdma_dereg_mr(connection.region);
  if (rdma_destroy_id(connection.id) != 0) fail("destroy");
}

void send(Connection& connection, const std::uint8_t* data) {
  if (rdma_post_send(connection.id, nullptr, const_cast<std::uint8_t*>(data), kSize, nullptr,
                     IBV_SEND_INLINE) != 0) {
    fail("send");
  }
}

rdma_conn_param parameters() {
  rdma_conn_param result{};
  result.retry_count = 7;
  result.rnr_retry_count = 7;
  return result;
}

sockaddr_storage address_of(const char* address, const char* port) {
  rdma_addrinfo hints{};
  hints.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST;
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* found = nullptr;
  if (rdma_getaddrinfo(address, port, &hints, &found) != 0) fail("address");
  sockaddr_storage result{};
  std::memcpy(&result, found->ai_src_addr, found->ai_src_len);
  rdma_freeaddrinfo(found);
  return result;
}

// --- the server

using Table = std::vector<std::unique_ptr<Connection>>;

Connection* find(const Table& table, std::uint32_t qpn) {
  for (const auto& connection : table) {
    if (connection->id->qp->qp_num == qpn) return connection.get();
  }
  return nullptr;
}

void handle_event(Table& table, rdma_event_channel* channel) {
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(channel, &event) != 0) fail("event");
  rdma_cm_id* id = event->id;
  const rdma_cm_event_type type = event->event;
  rdma_ack_cm_event(event);
  if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
    table.push_back(std::make_unique<Connection>());
    table.back()->id = id;
    set_up(*table.back());
    auto answer = parameters();
    if (rdma_accept(id, &answer) != 0) fail("accept");
  } else if (type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_UNREACHABLE ||
             type == RDMA_CM_EVENT_REJECTED) {
    auto* connection = static_cast<Connection*>(id->context);
    rdma_disconnect(id);
    tear_down(*connection);
    std::erase_if(table, [&](const auto& entry) { return entry.get() == connection; });
    std::puts("a connection ended");
  }
}

void echo_all(const Table& table) {
  ibv_wc completion;
  while (ibv_poll_cq(completions.queue, 1, &completion) > 0) {
    if (completion.status != IBV_WC_SUCCESS || completion.opcode != IBV_WC_RECV) continue;
    Connection* connection = find(table, completion.qp_num);
    if (connection == nullptr) continue;
    const auto slot = static_cast<std::uint32_t>(completion.wr_id);
    send(*connection, connection->buffers[slot].data());
    post_receive(*connection, slot);
  }
}

int serve(sockaddr_storage address) {
  std::signal(SIGTERM, [](int) { is_over = 1; });
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* listener = nullptr;
  if (channel == nullptr || rdma_create_id(channel, &listener, nullptr, RDMA_PS_TCP) != 0 ||
      rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&address)) != 0 ||
      rdma_listen(listener, 0) != 0) {
    fail("listen");
  }
  Table table;
  while (is_over == 0) {
    std::array<pollfd, 2> sources{{{.fd = channel->fd, .events = POLLIN, .revents = 0},
                                   {.fd = -1, .events = POLLIN, .revents = 0}}};
    if (completions.channel != nullptr) sources[1].fd = completions.channel->fd;
    if (poll(sources.data(), sources.size(), 1000) <= 0) continue;
    if ((sources[0].revents & POLLIN) != 0) handle_event(table, channel);
    if ((sources[1].revents & POLLIN) != 0) completions.take_event();
    if (completions.queue != nullptr) echo_all(table);
    std::fflush(stdout);
  }
  return 0;
}

// --- the client

void expect(rdma_event_channel* channel, rdma_cm_event_type wanted) {
  pollfd source{.fd = channel->fd, .events = POLLIN, .revents = 0};
  if (poll(&source, 1, kPatience) != 1) fail("no event");
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(channel, &event) != 0) fail("event");
  if (event->event != wanted) {
    std::printf("%s (%d) instead of %s\n", rdma_event_str(event->event), event->status,
                rdma_event_str(wanted));
    std::fflush(stdout);
    std::_Exit(1);
  }
  rdma_ack_cm_event(event);
}

std::unique_ptr<Connection> connect(rdma_event_channel* channel, sockaddr_storage& address) {
  auto connection = std::make_unique<Connection>();
  auto* to = reinterpret_cast<sockaddr*>(&address);
  if (rdma_create_id(channel, &connection->id, nullptr, RDMA_PS_TCP) != 0) fail("identifier");
  if (rdma_resolve_addr(connection->id, nullptr, to, 2000) != 0) fail("resolve address");
  expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
  if (rdma_resolve_route(connection->id, 2000) != 0) fail("resolve route");
  expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
  set_up(*connection);
  auto wish = parameters();
  if (rdma_connect(connection->id, &wish) != 0) fail("connect");
  expect(channel, RDMA_CM_EVENT_ESTABLISHED);
  return connection;
}

void check_echo(Connection& connection, std::uint32_t round) {
  std::array<std::uint8_t, kSize> data{};
  for (std::uint32_t i = 0; i < kSize; ++i) {
    data[i] = static_cast<std::uint8_t>(connection.id->qp->qp_num * 13 + round * 7 + i);
  }
  send(connection, data.data());
  ibv_wc completion{};
  while (completion.opcode != IBV_WC_RECV) {
    if (ibv_poll_cq(completions.queue, 1, &completion) == 0) {
      pollfd source{.fd = completions.channel->fd, .events = POLLIN, .revents = 0};
      if (poll(&source, 1, kPatience) != 1) fail("no echo");
      completions.take_event();
    } else if (completion.status != IBV_WC_SUCCESS) {
      std::printf("%s\n", ibv_wc_status_str(completion.status));
      fail("completion");
    }
  }
  const auto slot = static_cast<std::uint32_t>(completion.wr_id);
  if (connection.buffers[slot] != data) fail("wrong echo");
  post_receive(connection, slot);
}

int call(sockaddr_storage address, int count, std::uint32_t rounds, int seconds) {
  using Clock = std::chrono::steady_clock;
  rdma_event_channel* channel = rdma_create_event_channel();
  if (channel == nullptr) fail("channel");
  const auto start = Clock::now();
  Table table;
  for (int i = 0; i < count; ++i) table.push_back(connect(channel, address));
  const std::chrono::duration<double> taken = Clock::now() - start;
  std::printf("%d connections, %.0f per second\n", count, count / taken.count());
  std::fflush(stdout);
  if (rounds == 0 && seconds == 0) {
    expect(channel, RDMA_CM_EVENT_DISCONNECTED);
    std::puts("the connection ended");
    return 0;
  }
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  for (std::uint32_t round = 0; round < rounds || (rounds == 0 && Clock::now() < end); ++round) {
    for (const auto& connection : table) check_echo(*connection, round);
    if (rounds != 0) continue;
    poll(nullptr, 0, kPause);
  }
  for (const auto& connection : table) {
    if (rdma_disconnect(connection->id) != 0) fail("disconnect");
    expect(channel, RDMA_CM_EVENT_DISCONNECTED);
    tear_down(*connection);
  }
  std::puts("all echoes right");
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) return 2;
  const auto address = address_of(arguments[2], arguments[3]);
  if (std::string_view(arguments[1]) == "server") return serve(address);
  if (count != 7) return 2;
  return call(address, std::atoi(arguments[4]), static_cast<std::uint32_t>(std::atoi(arguments[5])),
              std::atoi(arguments[6]));
}
