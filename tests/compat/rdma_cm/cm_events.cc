// Says what rdma_cm tells it, event by event, on librdmacm alone.
//   cm_events server ADDRESS PORT   listens there, accepts what comes, until it gets SIGTERM
//   cm_events client ADDRESS PORT   connects, and waits for what comes; ends with the connection
// A line is the identifier's name, the event, its status, and the milliseconds since the command
// that it answers, or since the start.
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <poll.h>
#include <rdma/rdma_cma.h>

namespace {

using Clock = std::chrono::steady_clock;
Clock::time_point asked_at = Clock::now();
volatile std::sig_atomic_t is_over = 0;

void check(int result, const char* what) {
  if (result == 0) return;
  std::perror(what);
  std::_Exit(1);
}

void create_queue_pair(rdma_cm_id* id) {
  ibv_qp_init_attr attributes{};
  attributes.cap = {.max_send_wr = 1,
                    .max_recv_wr = 1,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = 0};
  attributes.qp_type = IBV_QPT_RC;
  check(rdma_create_qp(id, nullptr, &attributes), "queue pair");
}

// Copies the next event and gives it back; false if none came in a second.
bool next(rdma_event_channel* channel, rdma_cm_event& copy) {
  pollfd source{.fd = channel->fd, .events = POLLIN, .revents = 0};
  if (poll(&source, 1, 1000) <= 0) return false;
  rdma_cm_event* event = nullptr;
  check(rdma_get_cm_event(channel, &event), "event");
  copy = *event;
  check(rdma_ack_cm_event(event), "acknowledgement");
  const auto taken = Clock::now() - asked_at;
  const rdma_cm_id* named = copy.listen_id != nullptr ? copy.listen_id : copy.id;
  std::printf(
      "%s: %s %d after %ld ms\n", static_cast<const char*>(named->context),
      rdma_event_str(copy.event), copy.status,
      static_cast<long>(std::chrono::duration_cast<std::chrono::milliseconds>(taken).count()));
  std::fflush(stdout);
  return true;
}

bool ends(rdma_cm_event_type type) {
  switch (type) {
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return true;
    default:
      return false;
  }
}

void destroy(rdma_cm_id* id) {
  if (rdma_disconnect(id) != 0) std::printf("disconnect: %s\n", std::strerror(errno));
  if (id->qp != nullptr) rdma_destroy_qp(id);
  check(rdma_destroy_id(id), "destroy");
  std::puts("destroyed");
  std::fflush(stdout);
}

rdma_cm_id* listen_at(rdma_event_channel* channel, sockaddr* address, char* name) {
  rdma_cm_id* listener = nullptr;
  check(rdma_create_id(channel, &listener, name, RDMA_PS_TCP), "identifier");
  check(rdma_bind_addr(listener, address), "bind");
  check(rdma_listen(listener, 4), "listen");
  return listener;
}

int serve(rdma_event_channel* channel, sockaddr* address) {
  std::signal(SIGTERM, [](int) { is_over = 1; });
  char listens[] = "listener";
  char again[] = "next listener";
  char connected[] = "connection";
  listen_at(channel, address, listens);
  std::puts("listening");
  std::fflush(stdout);
  while (is_over == 0) {
    rdma_cm_event event{};
    if (!next(channel, event)) continue;
    if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
      event.id->context = connected;
      create_queue_pair(event.id);
      rdma_conn_param parameters{};
      check(rdma_accept(event.id, &parameters), "accept");
    } else if (ends(event.event)) {
      // A device that is removed on request is there again at once.
      if (event.id->context == listens) listen_at(channel, address, again);
      destroy(event.id);
    }
  }
  return 0;
}

int call(rdma_event_channel* channel, sockaddr* address) {
  rdma_cm_id* id = nullptr;
  char name[] = "client";
  check(rdma_create_id(channel, &id, name, RDMA_PS_TCP), "identifier");
  check(rdma_resolve_addr(id, nullptr, address, 2000), "resolve address");
  while (true) {
    rdma_cm_event event{};
    if (!next(channel, event)) continue;
    if (event.event == RDMA_CM_EVENT_ADDR_RESOLVED) {
      check(rdma_resolve_route(id, 2000), "resolve route");
    } else if (event.event == RDMA_CM_EVENT_ROUTE_RESOLVED) {
      create_queue_pair(id);
      rdma_conn_param parameters{};
      parameters.retry_count = 7;
      asked_at = Clock::now();
      check(rdma_connect(id, &parameters), "connect");
    } else if (ends(event.event)) {
      destroy(id);
      return 0;
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  rdma_addrinfo hints{};
  hints.ai_flags = RAI_NUMERICHOST | RAI_PASSIVE;
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* found = nullptr;
  check(rdma_getaddrinfo(arguments[2], arguments[3], &hints, &found), "address");
  rdma_event_channel* channel = rdma_create_event_channel();
  if (channel == nullptr) return 1;
  const bool serves = std::string_view(arguments[1]) == "server";
  return serves ? serve(channel, found->ai_src_addr) : call(channel, found->ai_src_addr);
}
