// Every command with every field wrong in turn, and cut off at every length, by both front ends.
#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "tests/support/golden_text.h"
#include "tests/unit/verbs/sweep.h"
#include "tests/unit/verbs/uverbs_setup.h"
#include "verbs/uverbs/command_table.h"

namespace urxe::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kAddress = sizeof(std::uint64_t);

template <typename Request>
Bytes bytes_of(const Request& request) {
  Bytes bytes(sizeof(request));
  std::memcpy(bytes.data(), &request, sizeof(request));
  return bytes;
}

// One object of every kind.
struct World {
  explicit World(Front front, bool is_open = true) : client(setup.node, front) {
    if (!is_open) return;
    client.open_context();
    pd = client.pd();
    region = client.mr(pd, memory.data(), memory.size(), IB_UVERBS_ACCESS_LOCAL_WRITE);
    cq = client.cq(1).handle;
    srq = client.srq(pd, 2).handle;
    ib_uverbs_create_qp wanted = UverbsClient::usual_qp();
    wanted.qp_type = IB_UVERBS_QPT_UD;
    qp = client.qp(pd, cq, 3, wanted).handle;
    ib_uverbs_alloc_mw window_request{};
    window_request.pd_handle = pd;
    window_request.mw_type = 1;
    ib_uverbs_alloc_mw_resp window_response{};
    REQUIRE(client.run(IB_USER_VERBS_CMD_ALLOC_MW, window_request, &window_response) == 0);
    window = window_response.mw_handle;
    ib_uverbs_create_ah_resp ah_response{};
    REQUIRE(client.run(IB_USER_VERBS_CMD_CREATE_AH, address_handle(), &ah_response) == 0);
    ah = ah_response.ah_handle;
  }
  [[nodiscard]] ib_uverbs_create_ah address_handle() const {
    ib_uverbs_create_ah request{};
    request.pd_handle = pd;
    request.attr.port_num = 1;
    request.attr.is_global = 1;
    std::copy_n(kFirstGid.bytes().data(), sizeof(request.attr.grh.dgid), request.attr.grh.dgid);
    return request;
  }
  [[nodiscard]] std::uint64_t address() const {
    return reinterpret_cast<std::uintptr_t>(memory.data());
  }

  UverbsSetup setup;
  UverbsClient client;
  alignas(4096) std::array<std::uint8_t, 8192> memory{};
  std::uint32_t pd = 0, region = 0, cq = 0, srq = 0, qp = 0, window = 0, ah = 0;
};

struct Case {
  std::uint32_t command;
  std::function<Bytes(const World&)> request;  // that is taken
  bool before_context = false;
  // Bytes of the request that say where memory is: what is mapped there differs from run to run.
  std::size_t memory_from = 0;
  std::size_t memory_to = 0;
};

template <typename Request>
Case on_handle(std::uint32_t command, std::uint32_t Request::*field, std::uint32_t World::*handle) {
  return {.command = command, .request = [=](const World& world) {
            Request request{};
            request.*field = world.*handle;
            return bytes_of(request);
          }};
}

Bytes create_qp(const World& world) {
  ib_uverbs_create_qp request = UverbsClient::usual_qp();
  request.pd_handle = world.pd;
  request.send_cq_handle = request.recv_cq_handle = world.cq;
  return bytes_of(request);
}

Bytes create_qp_extended(const World& world) {
  ib_uverbs_ex_create_qp request{};
  request.pd_handle = world.pd;
  request.send_cq_handle = request.recv_cq_handle = world.cq;
  request.max_send_wr = request.max_recv_wr = request.max_send_sge = request.max_recv_sge = 1;
  request.qp_type = IB_UVERBS_QPT_RC;
  return bytes_of(request);
}

ib_uverbs_modify_qp modify_qp(const World& world) {
  ib_uverbs_modify_qp request{};
  request.qp_handle = world.qp;
  request.attr_mask = 0x71;  // STATE, PKEY_INDEX, PORT, QKEY
  request.qp_state = 1;
  request.port_num = 1;
  return request;
}

Bytes multicast(const World& world) {
  struct {
    std::uint8_t gid[16] = {0xFF, 0x0E};
    std::uint32_t qp_handle = 0;
    std::uint16_t mlid = 0xC000;
    std::uint16_t reserved = 0;
  } request;
  request.qp_handle = world.qp;
  return bytes_of(request);
}

Bytes register_mr(const World& world) {
  ib_uverbs_reg_mr request{};
  request.start = request.hca_va = world.address();
  request.length = world.memory.size();
  request.pd_handle = world.pd;
  request.access_flags = IB_UVERBS_ACCESS_LOCAL_WRITE;
  return bytes_of(request);
}

Bytes reregister_mr(const World& world) {
  ib_uverbs_rereg_mr request{};
  request.mr_handle = world.region;
  request.flags = 7;
  request.start = request.hca_va = world.address();
  request.length = world.memory.size();
  request.pd_handle = world.pd;
  request.access_flags = IB_UVERBS_ACCESS_LOCAL_WRITE;
  return bytes_of(request);
}

std::vector<Case> memory_cases() {
  return {
      {IB_USER_VERBS_CMD_GET_CONTEXT,
       [](const World&) { return bytes_of(ib_uverbs_get_context{}); }, true},
      {IB_USER_VERBS_CMD_QUERY_DEVICE,
       [](const World&) { return bytes_of(ib_uverbs_query_device{}); }},
      {IB_USER_VERBS_CMD_QUERY_PORT,
       [](const World&) {
         ib_uverbs_query_port request{};
         request.port_num = 1;
         return bytes_of(request);
       }},
      {IB_USER_VERBS_CMD_ALLOC_PD, [](const World&) { return bytes_of(ib_uverbs_alloc_pd{}); }},
      {IB_USER_VERBS_CMD_REG_MR, register_mr, false, offsetof(ib_uverbs_reg_mr, start),
       offsetof(ib_uverbs_reg_mr, hca_va)},
      {IB_USER_VERBS_CMD_REREG_MR, reregister_mr, false, offsetof(ib_uverbs_rereg_mr, start),
       offsetof(ib_uverbs_rereg_mr, hca_va)},
      on_handle(IB_USER_VERBS_CMD_DEREG_MR, &ib_uverbs_dereg_mr::mr_handle, &World::region),
      {IB_USER_VERBS_CMD_ALLOC_MW,
       [](const World& world) {
         ib_uverbs_alloc_mw request{};
         request.pd_handle = world.pd;
         request.mw_type = 2;
         return bytes_of(request);
       }},
      on_handle(IB_USER_VERBS_CMD_DEALLOC_MW, &ib_uverbs_dealloc_mw::mw_handle, &World::window),
      {IB_USER_VERBS_CMD_CREATE_AH,
       [](const World& world) { return bytes_of(world.address_handle()); }},
      on_handle(IB_USER_VERBS_CMD_DESTROY_AH, &ib_uverbs_destroy_ah::ah_handle, &World::ah),
  };
}

std::vector<Case> queue_cases() {
  return {
      {IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL,
       [](const World&) { return bytes_of(ib_uverbs_create_comp_channel{}); }},
      {IB_USER_VERBS_CMD_CREATE_CQ,
       [](const World&) {
         ib_uverbs_create_cq request{};
         request.cqe = 8;
         request.comp_channel = -1;
         return bytes_of(request);
       }},
      {IB_USER_VERBS_CMD_RESIZE_CQ,
       [](const World& world) {
         ib_uverbs_resize_cq request{};
         request.cq_handle = world.cq;
         request.cqe = 100;
         return bytes_of(request);
       }},
      on_handle(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, &ib_uverbs_req_notify_cq::cq_handle, &World::cq),
      {IB_USER_VERBS_CMD_CREATE_SRQ,
       [](const World& world) {
         ib_uverbs_create_srq request{};
         request.pd_handle = world.pd;
         request.max_wr = request.max_sge = 2;
         return bytes_of(request);
       }},
      {IB_USER_VERBS_CMD_MODIFY_SRQ,
       [](const World& world) {
         ib_uverbs_modify_srq request{};
         request.srq_handle = world.srq;
         request.attr_mask = 2;  // LIMIT
         request.srq_limit = 1;
         return bytes_of(request);
       }},
      on_handle(IB_USER_VERBS_CMD_QUERY_SRQ, &ib_uverbs_query_srq::srq_handle, &World::srq),
      on_handle(IB_USER_VERBS_CMD_DESTROY_SRQ, &ib_uverbs_destroy_srq::srq_handle, &World::srq),
      {IB_USER_VERBS_CMD_CREATE_QP, create_qp},
      on_handle(IB_USER_VERBS_CMD_QUERY_QP, &ib_uverbs_query_qp::qp_handle, &World::qp),
      {IB_USER_VERBS_CMD_MODIFY_QP, [](const World& world) { return bytes_of(modify_qp(world)); }},
      on_handle(IB_USER_VERBS_CMD_DESTROY_QP, &ib_uverbs_destroy_qp::qp_handle, &World::qp),
      {IB_USER_VERBS_CMD_ATTACH_MCAST, multicast},
  };
}

std::vector<Case> extended_cases() {
  constexpr std::uint32_t kExtended = IB_USER_VERBS_CMD_FLAG_EXTENDED;
  return {
      {IB_USER_VERBS_EX_CMD_QUERY_DEVICE | kExtended,
       [](const World&) { return bytes_of(ib_uverbs_ex_query_device{}); }},
      {IB_USER_VERBS_EX_CMD_CREATE_CQ | kExtended,
       [](const World&) {
         ib_uverbs_ex_create_cq request{};
         request.cqe = 8;
         request.comp_channel = -1;
         return bytes_of(request);
       }},
      {IB_USER_VERBS_EX_CMD_CREATE_QP | kExtended, create_qp_extended},
      {IB_USER_VERBS_EX_CMD_MODIFY_QP | kExtended,
       [](const World& world) {
         ib_uverbs_ex_modify_qp request{};
         request.base = modify_qp(world);
         return bytes_of(request);
       }},
  };
}

// All but DETACH_MCAST, which needs ATTACH_MCAST before, POST_SEND, which is a doorbell, and XRC's
// SRQ, which is refused whole.
std::vector<Case> cases() {
  std::vector<Case> all = memory_cases();
  for (const auto& more : {queue_cases(), extended_cases()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

// Runs a request in a world of its own, and again by the other front end: the results agree, and
// nothing outlives the file. 0 or a negative errno.
int attempt(const Case& test, const std::function<void(Bytes&)>& spoil) {
  const auto entry = verbs::uverbs::find_command(test.command);
  REQUIRE(entry);
  std::array<int, 2> results{};
  for (const Front front : {Front::write, Front::ioctl}) {
    World world(front, !test.before_context);
    Bytes request = test.request(world);
    spoil(request);
    std::array<std::byte, 64> out{};
    const std::array<std::byte, kAddress> nowhere{};
    UverbsClient::Driver driver;
    const bool creates = std::string_view((*entry)->name).starts_with("CREATE");
    const bool has_driver_data = (*entry)->has_driver_data || (creates && (*entry)->is_extended);
    if (has_driver_data && (*entry)->response_size > 0) driver.out = out;
    // By write() it would take the place of what is cut off.
    const bool is_whole = request.size() == test.request(world).size();
    if (has_driver_data && (*entry)->response_size == 0 && is_whole) driver.in = nowhere;
    results[front == Front::write ? 0 : 1] =
        world.client.run_bytes(test.command, request, (*entry)->response_size, driver);
    world.client.close_file();
    CHECK(world.setup.census() == kNothing);
  }
  CHECK(results[0] == results[1]);
  CHECK(results[0] <= 0);
  CHECK(results[0] > -kErrnos);
  return results[0];
}

std::string wrong_words(const Case& test, std::size_t first, std::size_t size) {
  std::string text;
  std::string indifferent;
  for (std::size_t at = first; at + kWord <= size; at += kWord) {
    if (at >= test.memory_from && at < test.memory_to) continue;
    std::map<std::string, std::string> outcomes;
    for (const std::uint32_t value : kWrong) {
      const int result = attempt(
          test, [&](Bytes& request) { std::memcpy(request.data() + at, &value, sizeof(value)); });
      outcomes[error_name(result)] += fmt::format(" {:x}", value);
    }
    if (outcomes.size() == 1 && outcomes.count("ok") == 1) {
      indifferent += fmt::format(" {}", at);
    } else {
      text += fmt::format("  {:3}: {}\n", at, by_outcome(outcomes));
    }
  }
  return text + (indifferent.empty() ? "" : "  may have any value:" + indifferent + "\n");
}

std::string wrong_lengths(const Case& test, std::size_t size, std::size_t step) {
  std::map<std::string, std::string> outcomes;
  for (std::size_t length = step; length < size; length += step) {
    const int result = attempt(test, [&](Bytes& request) { request.resize(length); });
    outcomes[error_name(result)] += fmt::format(" {}", length);
  }
  return outcomes.empty() ? "" : "  cut off at: " + by_outcome(outcomes) + "\n";
}

std::string sweep() {
  std::string text;
  for (const Case& test : cases()) {
    const auto entry = verbs::uverbs::find_command(test.command);
    REQUIRE(entry);
    INFO((*entry)->name);
    REQUIRE(attempt(test, [](Bytes&) {}) == 0);
    const std::size_t size = test.request(World(Front::write, !test.before_context)).size();
    const bool is_extended = (*entry)->is_extended;
    const std::size_t first = (*entry)->has_response && !is_extended ? kAddress : 0;
    text += fmt::format("{}{}\n", (*entry)->name, is_extended ? ", extended" : "");
    text += wrong_words(test, first, size);
    text += wrong_lengths(test, size, is_extended ? 2 * kWord : kWord) + "\n";
  }
  return text;
}

TEST_CASE("every command with every field wrong in turn gets the errno of the golden file") {
  check_golden_text("tests/golden/uverbs_sweep.txt", sweep());
}

}  // namespace
}  // namespace urxe::test
