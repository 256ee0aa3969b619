// Many requests at once: all queue pairs, all opcodes, few of them signalled.
#include "tests/compat/checker/check.h"
#include "tests/compat/checker/session.h"

namespace checker {
namespace {

constexpr unsigned kRequests = 24;  // of each queue pair
constexpr unsigned kSignalled = IBV_SEND_SIGNALED;
constexpr unsigned kFenced = IBV_SEND_FENCE;
constexpr std::uint64_t kAdded = 0x0102030405060708;

struct Item {
  ibv_wr_opcode opcode;
  bool signalled;
  bool fenced;
  Pieces local, target;
  std::uint64_t original;  // the word that an atomic operation finds
  std::vector<std::uint8_t> data;

  [[nodiscard]] bool is_atomic() const { return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD; }
  [[nodiscard]] bool comes_from_peer() const { return is_atomic() || opcode == IBV_WR_RDMA_READ; }
};

// Which queue pair's SEND comes first at a shared receive queue is open, so there are none there.
ibv_wr_opcode opcode_of(Dice& dice, bool shared_receive) {
  constexpr ibv_wr_opcode kOpcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                        IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND};
  return kOpcodes[dice.below(shared_receive ? 3 : 4)];
}

// The requests of one queue pair. Each has places of its own in both memories, so that their order
// does not matter for the data.
std::vector<Item> items_of(std::uint64_t seed, std::size_t index, const Options& options) {
  Dice dice(seed + index);
  std::vector<Item> items(kRequests);
  const std::size_t slot = kSmallMemory / options.queue_pairs / kRequests / 8 * 8;
  for (unsigned i = 0; i < kRequests; ++i) {
    Item& item = items[i];
    const std::size_t start = (index * kRequests + i) * slot;
    item.opcode = opcode_of(dice, options.shared_receive);
    item.signalled = i + 1 == kRequests || dice.below(3) == 0;
    item.fenced = dice.below(4) == 0;
    const std::size_t size = item.is_atomic() ? 8 : 1 + dice.below(slot - 4 * 68);
    const unsigned targets = item.opcode == IBV_WR_SEND ? 3 : 1;
    item.local = lay_out(dice, size, item.is_atomic() ? 1 : 3, start, start + slot);
    item.target = lay_out(dice, size, targets, start, start + slot);
    if (item.is_atomic()) item.target = {{start, 8}};
    item.original = seed * 31 + start;
    item.data = item.is_atomic() ? bytes_of(item.original) : pattern(seed * 31 + start, size);
  }
  return items;
}

}  // namespace

void Session::run_burst(std::uint64_t seed, bool active) {
  if (!active) prepare_burst(seed);
  meet();
  if (active) {
    for (std::size_t index = 0; index < qps_.size(); ++index) post_burst(seed, index);
    await_burst(seed);
    small_->check("burst, active end");
  }
  meet();
  if (!active) verify_burst(seed);
}

void Session::post_burst(std::uint64_t seed, std::size_t index) {
  std::vector<Request> requests;
  for (const Item& item : items_of(seed, index, options_)) {
    if (!item.comes_from_peer()) small_->write(item.local, item.data);
    requests.push_back({.wr_id = requests.size(),
                        .opcode = item.opcode,
                        .flags = (item.signalled ? kSignalled : 0) | (item.fenced ? kFenced : 0),
                        .list = small_->list(item.local),
                        .remote_address = remote_small_.address + item.target[0].offset,
                        .rkey = remote_small_.rkey,
                        .compare_add = kAdded});
  }
  qps_[index]->post(requests);
  for (const Item& item : items_of(seed, index, options_))
    if (item.comes_from_peer()) small_->expect(item.local, item.data);
}

// Each queue pair's signalled requests, in the order in which they were posted.
void Session::await_burst(std::uint64_t seed) {
  std::vector<std::vector<Item>> items;
  std::vector<std::size_t> next(qps_.size());
  for (std::size_t i = 0; i < qps_.size(); ++i) items.push_back(items_of(seed, i, options_));
  for (std::size_t open = qps_.size(); open > 0;) {
    const Done done = cq_->wait("burst");
    std::size_t i = 0;
    while (i < qps_.size() && qps_[i]->get()->qp_num != done.qp_num) ++i;
    if (i == qps_.size()) fail("burst: a completion of QP 0x%06x", done.qp_num);
    while (next[i] < kRequests && !items[i][next[i]].signalled) ++next[i];
    if (done.status != IBV_WC_SUCCESS || done.wr_id != next[i])
      fail("burst: %s, request %llu instead of %zu", ibv_wc_status_str(done.status),
           static_cast<unsigned long long>(done.wr_id), next[i]);
    if (++next[i] == kRequests) --open;
  }
}

void Session::prepare_burst(std::uint64_t seed) {
  for (std::size_t index = 0; index < qps_.size(); ++index) {
    for (const Item& item : items_of(seed, index, options_)) {
      if (item.comes_from_peer()) small_->write(item.target, item.data);
      if (item.opcode == IBV_WR_SEND)
        qps_[index]->post_receive(item.original, small_->list(item.target));
    }
  }
}

void Session::verify_burst(std::uint64_t seed) {
  std::size_t receives = 0;
  for (std::size_t index = 0; index < qps_.size(); ++index) {
    for (const Item& item : items_of(seed, index, options_)) {
      if (item.opcode == IBV_WR_SEND) ++receives;
      if (!item.comes_from_peer()) small_->expect(item.target, item.data);
      if (item.is_atomic()) small_->expect(item.target, bytes_of(item.original + kAdded));
    }
  }
  for (; receives > 0; --receives) {
    const Done done = cq_->wait("burst, a receive");
    if (done.status != IBV_WC_SUCCESS || done.opcode != IBV_WC_RECV)
      fail("burst: a receive: %s", ibv_wc_status_str(done.status));
  }
  small_->check("burst, passive end");
}

}  // namespace checker
