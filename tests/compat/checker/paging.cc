// On-demand paging: pages that a program takes away while its region covers them. What needs them
// ends in error, at both ends where both have a part; when they are back everything works again.
#include <cstring>

#include <sys/mman.h>

#include "tests/compat/checker/check.h"
#include "tests/compat/checker/session.h"

namespace checker {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kBytes = 64;
const Pieces kHere{{641, kBytes}};  // at the active end
const Pieces kWord{{648, 8}};
const Pieces kGone{{kPage, kBytes}};  // the second page's beginning
constexpr int kPagedAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC |
                             IBV_ACCESS_ON_DEMAND;

void protect(const Memory& pages, int protection) {
  succeeds(mprotect(reinterpret_cast<void*>(pages.address(kPage)), kPage, protection), "mprotect");
}

}  // namespace

struct Session::Visit {
  ibv_wr_opcode opcode;
  bool implicit;  // the key is that of a region that is the whole address space
  std::uint64_t seed;

  [[nodiscard]] bool is_atomic() const { return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD; }
  [[nodiscard]] std::string name() const {
    return text("opcode %d on pages that are gone, %s region", opcode,
                implicit ? "an implicit" : "a");
  }
};

void Session::run_paging(bool active) {
  std::uint64_t seed = 300;
  for (const bool implicit : {false, true}) {
    for (const ibv_wr_opcode opcode :
         {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND}) {
      const Visit visit{opcode, implicit, ++seed};
      if (active) {
        visit_pages(visit);
        continue;
      }
      Memory pages(device_.pd(), 4 * kPage, kPagedAccess);
      ibv_mr* all = nullptr;
      if (implicit)
        all = exists(ibv_reg_mr(device_.pd(), nullptr, SIZE_MAX, kPagedAccess), "an implicit one");
      lend_pages(visit, pages, implicit ? all->lkey : pages.rkey());
      if (implicit) succeeds(ibv_dereg_mr(all), "ibv_dereg_mr");
    }
  }
}

// First while the page is gone, then, with other queue pairs, when it is back.
void Session::visit_pages(const Visit& visit) {
  const Remote there = channel_.exchange(Remote{});
  for (const bool gone : {true, false}) {
    QueuePair qp(device_, options_, *cq_, nullptr);
    qp.connect(channel_.exchange(qp.address()));
    const Pieces& local = visit.is_atomic() ? kWord : kHere;
    small_->write(local, pattern(visit.seed, total(local)));
    meet();
    qp.post({{.opcode = visit.opcode,
              .list = small_->list(local),
              .remote_address = there.address,
              .rkey = there.rkey,
              .compare_add = 1}});
    const Done done = cq_->wait(visit.name());
    const ibv_wc_status refusal =
        visit.opcode == IBV_WR_SEND ? IBV_WC_REM_OP_ERR : IBV_WC_REM_ACCESS_ERR;
    const bool given_up = gone && options_.lossy && done.status == IBV_WC_RETRY_EXC_ERR;
    if (!given_up && done.status != (gone ? refusal : IBV_WC_SUCCESS))
      fail("%s%s: %s", visit.name().c_str(), gone ? "" : ", and back",
           ibv_wc_status_str(done.status));
    if (!gone && visit.opcode == IBV_WR_RDMA_READ)
      small_->expect(local, pattern(visit.seed + 50, kBytes));
    if (!gone && visit.is_atomic()) small_->expect(local, pattern(visit.seed + 50, 8));
    small_->check(visit.name() + ", active end");
    meet();
  }
}

void Session::lend_pages(const Visit& visit, Memory& pages, std::uint32_t key) {
  (void)channel_.exchange(Remote{pages.address(kPage), key, 0});
  pages.write(kGone, pattern(visit.seed + 50, kBytes));
  for (const bool gone : {true, false}) {
    QueuePair qp(device_, options_, *cq_, nullptr);
    qp.connect(channel_.exchange(qp.address()));
    if (visit.opcode == IBV_WR_SEND)
      qp.post_receive(1, {{.addr = pages.address(kPage), .length = kBytes, .lkey = key}});
    if (gone) protect(pages, PROT_NONE);
    meet();
    if (visit.opcode == IBV_WR_SEND) {
      const Done done = cq_->wait(visit.name());
      if (done.status != (gone ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS))
        fail("%s%s, the receive: %s", visit.name().c_str(), gone ? "" : ", and back",
             ibv_wc_status_str(done.status));
    }
    meet();
    if (gone) {
      protect(pages, PROT_READ | PROT_WRITE);
      pages.check(visit.name() + ", passive end");
    }
  }
  if (visit.opcode == IBV_WR_RDMA_WRITE || visit.opcode == IBV_WR_SEND)
    pages.expect(kGone, pattern(visit.seed, kBytes));
  if (visit.is_atomic()) {
    std::uint64_t word = 0;
    std::memcpy(&word, pattern(visit.seed + 50, sizeof word).data(), sizeof word);
    pages.expect(kGone, bytes_of(word + 1));
  }
  pages.check(visit.name() + ", and back, passive end");
}

}  // namespace checker
