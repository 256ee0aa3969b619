#include "tests/unit/verbs/qp_world.h"

#include <algorithm>

#include "emulator/work.h"
#include "tests/support/transition_rules.h"

namespace urxe::test {

using namespace emulator;

namespace {

constexpr std::uint32_t kFlushAccess = 1U << 8;  // IB_ACCESS_FLUSH_GLOBAL
constexpr std::uint32_t kEveryAccess =
    IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE | IB_UVERBS_ACCESS_REMOTE_READ |
    IB_UVERBS_ACCESS_REMOTE_ATOMIC | IB_UVERBS_ACCESS_MW_BIND | kFlushAccess;
constexpr std::uint32_t kSignaledFlag = 1U << 1;
constexpr std::uint32_t kNonsense = 200;  // is no opcode
constexpr std::uint32_t kSize = 8;        // bytes of every message
constexpr int kReceives = 4;

AttributeMask needed(QpState from, QpState to, QpType type) {
  static const auto kRules = transition_rules();
  const auto found = std::find_if(kRules.begin(), kRules.end(), [&](const TransitionRule& rule) {
    return rule.from == from && rule.to == to && rule.type == type;
  });
  return found->must | kAttrState;
}

}  // namespace

QpWorld::QpWorld(QpType type, QpState state) : type_(type) {
  client_.open_context();
  pd_ = client_.pd();
  client_.mr(pd_, memory_.data(), memory_.size(), kEveryAccess, &key_);
  subject_ = make_end();
  peer_ = make_end();
  connect(peer_, subject_, QpState::ready_to_send);
  for (int i = 0; i < kReceives; ++i) post_receive(peer_);
  bring(state);
}

QpWorld::End QpWorld::make_end() {
  End end;
  end.cq = client_.cq(1, -1, 64);
  end.completions = client_.map(end.cq.mapping);
  ib_uverbs_create_qp wanted = UverbsClient::usual_qp();
  wanted.qp_type = static_cast<std::uint8_t>(type_);
  end.qp = client_.qp(pd_, end.cq.handle, 2, wanted);
  end.sends = client_.map(end.qp.mappings.sq_mi);
  end.receives = client_.map(end.qp.mappings.rq_mi);
  make_window(end);
  return end;
}

void QpWorld::make_window(End& end) {
  ib_uverbs_alloc_mw request{};
  request.pd_handle = pd_;
  request.mw_type = 2;
  ib_uverbs_alloc_mw_resp response{};
  REQUIRE(client_.run(IB_USER_VERBS_CMD_ALLOC_MW, request, &response) == 0);
  end.window = response.rkey;
}

void QpWorld::replace_subject() {
  ib_uverbs_destroy_qp request{};
  request.qp_handle = subject_.qp.handle;
  ib_uverbs_destroy_qp_resp response{};
  REQUIRE(client_.run(IB_USER_VERBS_CMD_DESTROY_QP, request, &response) == 0);
  ib_uverbs_create_qp wanted = UverbsClient::usual_qp();
  wanted.qp_type = static_cast<std::uint8_t>(type_);
  subject_.qp = client_.qp(pd_, subject_.cq.handle, 2, wanted);
  subject_.sends = client_.map(subject_.qp.mappings.sq_mi);
  subject_.receives = client_.map(subject_.qp.mappings.rq_mi);
}

// --- states

ib_uverbs_modify_qp QpWorld::attributes(std::uint32_t peer_qpn) const {
  ib_uverbs_modify_qp attributes{};
  attributes.port_num = 1;
  attributes.qp_access_flags = kEveryAccess;
  attributes.path_mtu = 3;
  attributes.dest_qp_num = peer_qpn;
  attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 2;
  attributes.min_rnr_timer = 1;
  attributes.timeout = 10;
  attributes.retry_cnt = attributes.rnr_retry = 1;
  attributes.qkey = kQKey;
  for (auto* path : {&attributes.dest, &attributes.alt_dest}) {
    path->is_global = 1;
    path->port_num = 1;
    std::copy_n(kFirstGid.bytes().data(), sizeof(path->dgid), path->dgid);
  }
  attributes.alt_port_num = 1;
  return attributes;
}

int QpWorld::modify(AttributeMask mask, QpState to) {
  ib_uverbs_modify_qp wanted = attributes(peer_.qp.qpn);
  wanted.qp_state = static_cast<std::uint8_t>(to);
  wanted.cur_qp_state = static_cast<std::uint8_t>(state());
  return client_.modify(subject_.qp.handle, mask.bits(), wanted);
}

void QpWorld::connect(const End& end, const End& to, QpState last) {
  ib_uverbs_modify_qp wanted = attributes(to.qp.qpn);
  for (int next = 1; next <= static_cast<int>(last); ++next) {
    const auto from = static_cast<QpState>(next - 1);
    wanted.qp_state = static_cast<std::uint8_t>(next);
    const AttributeMask mask = needed(from, static_cast<QpState>(next), type_);
    REQUIRE(client_.modify(end.qp.handle, mask.bits(), wanted) == 0);
  }
}

bool QpWorld::bring(QpState wanted) {
  if (wanted == QpState::send_queue_error && type_ == QpType::rc) return false;
  connect(subject_, peer_, std::min(wanted, QpState::ready_to_send));
  if (wanted == QpState::send_queue_drain || wanted == QpState::error) {
    REQUIRE(modify(kAttrState, wanted) == 0);
  }
  if (wanted == QpState::send_queue_error) {
    post(subject_, peer_, kNonsense);
    client_.file().drive();
    while (poll_cq(subject_.completions)) continue;
  }
  REQUIRE(state() == wanted);
  return true;
}

QpState QpWorld::state() {
  return static_cast<QpState>(client_.query_qp(subject_.qp.handle).qp_state);
}

// --- work

void QpWorld::fill(rxe_send_wqe& wqe, std::uint32_t opcode, const End& from, const End& to) const {
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
  rxe_send_wr& wr = wqe.wr;
  switch (static_cast<WorkOpcode>(opcode)) {
    case WorkOpcode::compare_swap:
    case WorkOpcode::fetch_add:
      wr.wr.atomic = {.remote_addr = address, .compare_add = 0, .swap = 0, .rkey = key_};
      break;
    case WorkOpcode::local_invalidate:
      wr.ex.invalidate_rkey = from.window;
      break;
    case WorkOpcode::bind_window:
      wr.wr.mw = {.addr = address,
                  .length = memory_.size(),
                  .mr_lkey = key_,
                  .mw_rkey = from.window,
                  .rkey = from.window + 1,
                  .access = IB_UVERBS_ACCESS_REMOTE_READ};
      break;
    case WorkOpcode::flush: {
      const verbs::abi::FlushTarget target{
          .remote_address = address, .length = 0, .rkey = key_, .placement = 1, .selectivity = 0};
      std::memcpy(&wr.wr, &target, sizeof(target));
      break;
    }
    case WorkOpcode::send_with_invalidate:
      wr.ex.invalidate_rkey = to.window;
      break;
    default:
      wr.wr.rdma = {.remote_addr = address, .rkey = key_, .reserved = 0};
  }
  if (type_ != QpType::ud) return;
  auto& ud = wr.wr.ud;
  ud = {};
  ud.remote_qpn = to.qp.qpn;
  ud.remote_qkey = kQKey;
  ud.av.port_num = 1;
  std::copy_n(kFirstGid.bytes().data(), sizeof(ud.av.grh.dgid), ud.av.grh.dgid.raw);
}

int QpWorld::put(End& end, const rxe_send_wqe& wqe) {
  auto* const place = slot<rxe_send_wqe>(end.sends, end.sends->producer_index);
  std::memcpy(place, &wqe, sizeof(wqe));
  fill_list(*place, {memory_.data() + 1024, kSize, key_});
  advance(end.sends->producer_index);
  return static_cast<int>(client_.ring(end.qp.handle));
}

int QpWorld::post(End& from, End& to, std::uint32_t opcode) {
  rxe_send_wqe wqe{};
  wqe.wr.wr_id = kRequest;
  wqe.wr.opcode = opcode;
  wqe.wr.send_flags = kSignaledFlag;
  fill(wqe, opcode, from, to);
  return put(from, wqe);
}

void QpWorld::bind(End& end) {
  rxe_send_wqe wqe{};
  wqe.wr.opcode = static_cast<std::uint32_t>(WorkOpcode::bind_window);
  fill(wqe, wqe.wr.opcode, end, end);
  put(end, wqe);
  client_.file().drive();
  ++end.window;
}

void QpWorld::post_receive(End& end) {
  test::post_receive(end.receives, kRequest, {memory_.data() + 2048, 64, key_});
}

std::optional<CompletionStatus> QpWorld::outcome(End& end) {
  client_.file().drive();
  while (const auto completion = poll_cq(end.completions)) {
    if (completion->wr_id == kRequest) return static_cast<CompletionStatus>(completion->status);
  }
  return std::nullopt;
}

}  // namespace urxe::test
