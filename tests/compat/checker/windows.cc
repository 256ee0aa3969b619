// Memory windows of both types, bound in every way, used by the peer, and ended by their owner.
// What the peer then sends to them is refused, over UC in silence.
#include "tests/compat/checker/check.h"
#include "tests/compat/checker/session.h"

namespace checker {
namespace {

constexpr std::size_t kStart = 12289;
constexpr std::size_t kLength = 2100;
const Pieces kSource{{31, kLength}};
const Pieces kReadBack{{5003, kLength}};
const Pieces kWindow{{kStart, kLength}};

constexpr std::uint64_t kBindId = 11;
constexpr std::uint64_t kEndId = 12;

void expect_done(const Done& done, ibv_wc_opcode opcode, const char* what) {
  if (done.status != IBV_WC_SUCCESS || done.opcode != opcode)
    fail("%s: %s, opcode %d instead of %d", what, ibv_wc_status_str(done.status), done.opcode,
         opcode);
}

}  // namespace

struct Session::Way {
  ibv_mw_type type;
  bool ends;  // or the peer leaves its bounds
  std::uint64_t seed;
  const char* name;
};

void Session::run_windows(bool active) {
  constexpr Way kWays[] = {
      {IBV_MW_TYPE_1, true, 101, "a window of type 1"},
      {IBV_MW_TYPE_2, true, 102, "a window of type 2"},
      {IBV_MW_TYPE_2, false, 103, "the bounds of a window"},
  };
  for (const Way& way : kWays) {
    // Over RC the queue pairs will be in error in the end.
    QueuePair qp(device_, options_, *cq_, nullptr);
    qp.connect(channel_.exchange(qp.address()));
    ibv_mw* window = active ? nullptr : exists(ibv_alloc_mw(device_.pd(), way.type), way.name);
    meet();
    if (active)
      use_lent_window(qp, way);
    else
      lend_window(qp, window, way);
    meet();
    if (active) continue;
    small_->check(text("%s, in the end", way.name));
    succeeds(ibv_dealloc_mw(window), "ibv_dealloc_mw");
  }
}

void Session::use_lent_window(QueuePair& qp, const Way& way) {
  const bool reliable = options_.transport == IBV_QPT_RC;
  const std::uint32_t rkey = channel_.exchange(0U);
  small_->write(kSource, pattern(way.seed, kLength));
  Request write{.opcode = IBV_WR_RDMA_WRITE,
                .list = small_->list(kSource),
                .remote_address = remote_small_.address + kStart,
                .rkey = rkey};
  Request send{.list = {}};
  qp.post({write, send});
  expect_done(cq_->wait(way.name), IBV_WC_RDMA_WRITE, way.name);
  expect_done(cq_->wait(way.name), IBV_WC_SEND, way.name);
  if (reliable) {
    Request read = write;
    read.opcode = IBV_WR_RDMA_READ;
    read.list = small_->list(kReadBack);
    qp.post({read});
    expect_done(cq_->wait("READ through a window"), IBV_WC_RDMA_READ, "READ through a window");
    small_->expect(kReadBack, pattern(way.seed, kLength));
  }
  small_->check(text("%s, active end", way.name));
  meet();
  meet();  // in between the window ended, if it does
  small_->write(kSource, pattern(way.seed + 100, kLength));
  if (!way.ends) ++write.remote_address;
  qp.post({write});
  const Done refused = cq_->wait("WRITE to what was a window");
  const bool right = reliable ? refused.status == IBV_WC_REM_ACCESS_ERR ||
                                    (options_.lossy && refused.status == IBV_WC_RETRY_EXC_ERR)
                              : refused.status == IBV_WC_SUCCESS;
  if (!right) fail("after %s: %s", way.name, ibv_wc_status_str(refused.status));
  if (reliable) return;
  qp.post({send});
  expect_done(cq_->wait("SEND after it"), IBV_WC_SEND, "SEND after it");
}

// The key of the window from now on. Length 0 unbinds one of type 1.
std::uint32_t Session::bind(QueuePair& qp, ibv_mw* window, std::size_t length) {
  unsigned access = IBV_ACCESS_REMOTE_WRITE;
  if (options_.transport == IBV_QPT_RC) access |= IBV_ACCESS_REMOTE_READ;
  const ibv_mw_bind_info where{.mr = small_->region(),
                               .addr = small_->address(kStart),
                               .length = length,
                               .mw_access_flags = access};
  std::uint32_t key = ibv_inc_rkey(window->rkey);
  if (window->type == IBV_MW_TYPE_1) {
    ibv_mw_bind request{.wr_id = kBindId, .send_flags = IBV_SEND_SIGNALED, .bind_info = where};
    succeeds(ibv_bind_mw(qp.get(), window, &request), "ibv_bind_mw");
    key = window->rkey;
  } else {
    Request request{
        .wr_id = kBindId, .opcode = IBV_WR_BIND_MW, .list = {}, .rkey = key, .window = window};
    request.bind = where;
    qp.post({request});
  }
  expect_done(cq_->wait("BIND_MW"), IBV_WC_BIND_MW, "BIND_MW");
  return key;
}

void Session::end_window(QueuePair& qp, ibv_mw* window, std::uint32_t key) {
  if (window->type == IBV_MW_TYPE_1) {
    (void)bind(qp, window, 0);
    return;
  }
  qp.post({{.wr_id = kEndId, .opcode = IBV_WR_LOCAL_INV, .list = {}, .imm_data = key}});
  expect_done(cq_->wait("LOCAL_INV"), IBV_WC_LOCAL_INV, "LOCAL_INV");
}

void Session::lend_window(QueuePair& qp, ibv_mw* window, const Way& way) {
  const bool reliable = options_.transport == IBV_QPT_RC;
  qp.post_receive(1, {});
  if (!reliable) qp.post_receive(2, {});
  const std::uint32_t key = bind(qp, window, kLength);
  (void)channel_.exchange(key);
  expect_done(cq_->wait(way.name), IBV_WC_RECV, way.name);
  small_->expect(kWindow, pattern(way.seed, kLength));
  small_->check(text("%s, passive end", way.name));
  meet();
  if (way.ends) end_window(qp, window, key);
  meet();
  if (!reliable) expect_done(cq_->wait(way.name), IBV_WC_RECV, way.name);
}

}  // namespace checker
