// A memory window: WRITE through it, SEND_WITH_INV of its key, and the WRITE that then must fail.
#include "tests/compat/checker/check.h"
#include "tests/compat/checker/session.h"

namespace checker {
namespace {

constexpr std::size_t kStart = 4099;
constexpr std::size_t kLength = 2000;
const Pieces kSource{{21, kLength}};
const Pieces kWindow{{kStart, kLength}};

void expect_status(const Done& done, ibv_wc_status status, const char* what) {
  if (done.status != status)
    fail("%s: %s instead of %s", what, ibv_wc_status_str(done.status), ibv_wc_status_str(status));
}

}  // namespace

void Session::run_invalidation(bool active) {
  // The queue pairs will be in error in the end.
  QueuePair qp(device_, options_, *cq_, nullptr);
  qp.connect(channel_.exchange(qp.address()));
  meet();
  if (active)
    use_window(qp);
  else
    own_window(qp);
  meet();
}

void Session::use_window(QueuePair& qp) {
  const std::uint32_t rkey = channel_.exchange(0U);
  small_->write(kSource, pattern(4711, kLength));
  Request write{.opcode = IBV_WR_RDMA_WRITE,
                .list = small_->list(kSource),
                .remote_address = remote_small_.address + kStart,
                .rkey = rkey};
  qp.post({write});
  expect_status(cq_->wait("WRITE through a window"), IBV_WC_SUCCESS, "WRITE through a window");
  qp.post({{.opcode = IBV_WR_SEND_WITH_INV, .list = {}, .imm_data = rkey}});
  expect_status(cq_->wait("SEND_WITH_INV"), IBV_WC_SUCCESS, "SEND_WITH_INV");
  meet();
  qp.post({write});
  const Done refused = cq_->wait("WRITE after it");
  if (options_.lossy && refused.status == IBV_WC_RETRY_EXC_ERR) return;
  expect_status(refused, IBV_WC_REM_ACCESS_ERR, "WRITE after SEND_WITH_INV");
}

void Session::own_window(QueuePair& qp) {
  ibv_mw* window = exists(ibv_alloc_mw(device_.pd(), IBV_MW_TYPE_2), "ibv_alloc_mw");
  qp.post_receive(1, {});
  const std::uint32_t rkey = ibv_inc_rkey(window->rkey);
  Request bind{.opcode = IBV_WR_BIND_MW, .list = {}, .rkey = rkey, .window = window};
  bind.bind = {.mr = small_->region(),
               .addr = small_->address(kStart),
               .length = kLength,
               .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
  qp.post({bind});
  const Done bound = cq_->wait("BIND_MW");
  expect_status(bound, IBV_WC_SUCCESS, "BIND_MW");
  if (bound.opcode != IBV_WC_BIND_MW) fail("BIND_MW: opcode %d", bound.opcode);
  (void)channel_.exchange(rkey);

  const Done done = cq_->wait("the receive of SEND_WITH_INV");
  expect_status(done, IBV_WC_SUCCESS, "the receive of SEND_WITH_INV");
  if ((done.flags & IBV_WC_WITH_INV) == 0 || done.invalidated_rkey != rkey)
    fail("SEND_WITH_INV: flags 0x%x, key 0x%08x", done.flags, done.invalidated_rkey);
  small_->expect(kWindow, pattern(4711, kLength));
  small_->check("SEND_WITH_INV, passive end");
  meet();
  succeeds(ibv_dealloc_mw(window), "ibv_dealloc_mw");
}

}  // namespace checker
