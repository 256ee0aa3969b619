// Requests that depend on each other, posted at once: a WRITE, a READ of what it wrote, a fenced
// SEND of what the READ brought, and atomic operations on one word with a READ behind.
#include "tests/compat/checker/check.h"
#include "tests/compat/checker/session.h"

namespace checker {
namespace {

constexpr std::size_t kBytes = 3001;
constexpr std::uint64_t kWord = 0x00000000FFFFFFFE;  // the additions carry
const Pieces kSource{{1, 1000}, {1003, kBytes - 1000}};
const Pieces kReadBack{{5001, kBytes}};
const Pieces kFound[] = {{{9001, 8}}, {{9011, 8}}, {{9021, 8}}};
const Pieces kEnd{{9031, 8}};
const Pieces kWritten{{2003, kBytes}};  // at the passive end, as the next two
const Pieces kReceived{{6007, 7}, {7001, kBytes}};
const Pieces kCounter{{16000, 8}};

std::vector<std::uint8_t> data() { return pattern(77, kBytes); }

}  // namespace

void Session::run_chain(bool active) {
  if (!active) {
    small_->write(kCounter, bytes_of(kWord));
    qps_[0]->post_receive(5, small_->list(kReceived));
  }
  meet();
  if (active) act_chain();
  meet();
  if (active) return;
  const Done done = cq_->wait("chain, the receive");
  if (done.status != IBV_WC_SUCCESS || done.wr_id != 5 || done.byte_len != kBytes)
    fail("chain: the receive: %s, %u bytes", ibv_wc_status_str(done.status), done.byte_len);
  small_->expect(kWritten, data());
  small_->expect(kReceived, data());
  small_->expect(kCounter, bytes_of(kWord + 3));
  small_->check("chain, passive end");
}

void Session::act_chain() {
  small_->write(kSource, data());
  const auto request = [&](ibv_wr_opcode opcode, unsigned flags, const Pieces& local,
                           const Pieces& target) {
    return Request{.wr_id = 100U + opcode,
                   .opcode = opcode,
                   .flags = flags,
                   .list = small_->list(local),
                   .remote_address = remote_small_.address + target[0].offset,
                   .rkey = remote_small_.rkey,
                   .compare_add = 1};
  };
  std::vector<Request> requests{
      request(IBV_WR_RDMA_WRITE, 0, kSource, kWritten),
      request(IBV_WR_RDMA_READ, 0, kReadBack, kWritten),
      request(IBV_WR_SEND, IBV_SEND_FENCE | IBV_SEND_SOLICITED, kReadBack, kReceived)};
  for (const Pieces& found : kFound)
    requests.push_back(request(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, found, kCounter));
  requests.push_back(request(IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, kEnd, kCounter));
  qps_[0]->post(requests);
  const Done done = cq_->wait("chain");
  if (done.status != IBV_WC_SUCCESS || done.wr_id != requests.back().wr_id)
    fail("chain: %s", ibv_wc_status_str(done.status));
  small_->expect(kReadBack, data());
  for (std::uint64_t i = 0; i < 3; ++i) small_->expect(kFound[i], bytes_of(kWord + i));
  small_->expect(kEnd, bytes_of(kWord + 3));
  small_->check("chain, active end");
}

}  // namespace checker
