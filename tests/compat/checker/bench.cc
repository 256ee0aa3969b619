#include "tests/compat/checker/bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/compat/checker/check.h"

namespace checker {

std::string Verdicts::new_sentence() {
  if (log_.empty()) return "(no log)";
  // The other end may be explained a little later, by another thread.
  for (int i = 0; i < 250; ++i) {
    std::ifstream file(log_);
    std::stringstream content;
    content << file.rdbuf();
    const std::string all = content.str();
    if (all.size() > read_ && all.back() == '\n') {
      const std::string sentence = all.substr(read_, all.find('\n', read_) - read_);
      read_ = all.size();
      return sentence;
    }
    if (!wants_sentence_) return "";
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return "";
}

void Verdicts::judge(const char* name, const std::string& outcome, bool good) {
  const std::string sentence = new_sentence();
  const bool explained = !wants_sentence_ || !sentence.empty();
  if (!good || !explained) ++failures_;
  std::printf("%s %s: %s%s\n    %s\n", good && explained ? "ok    " : "FAILED", name,
              outcome.c_str(), explained ? "" : ", and no sentence explains it", sentence.c_str());
  std::fflush(stdout);
  wants_sentence_ = true;
}

void Verdicts::refused(const char* name, int error, std::initializer_list<int> expected) {
  const bool good = std::find(expected.begin(), expected.end(), error) != expected.end();
  std::string outcome = error == 0 ? "success" : std::strerror(error);
  if (!good) outcome += std::string(" instead of ") + std::strerror(*expected.begin());
  judge(name, outcome, good);
}

void Verdicts::ended(const char* name, const Done& done,
                     std::initializer_list<ibv_wc_status> expected) {
  const bool good = std::find(expected.begin(), expected.end(), done.status) != expected.end();
  std::string outcome = ibv_wc_status_str(done.status);
  if (!good) outcome += std::string(" instead of ") + ibv_wc_status_str(*expected.begin());
  judge(name, outcome, good);
}

void Verdicts::holds(const char* name, bool is_so) {
  wants_sentence_ = false;
  holds_and_is_told(name, is_so);
}

void Verdicts::holds_and_is_told(const char* name, bool is_so) {
  judge(name, is_so ? "yes" : "no", is_so);
}

ibv_qp* try_queue_pair(const Device& device, CompletionQueue& cq) {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = cq.get();
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {.max_send_wr = 16,
                    .max_recv_wr = 16,
                    .max_send_sge = 4,
                    .max_recv_sge = 4,
                    .max_inline_data = 0};
  return ibv_create_qp(device.pd(), &attributes);
}

ibv_qp* new_queue_pair(const Device& device, CompletionQueue& cq) {
  return exists(try_queue_pair(device, cq), "ibv_create_qp");
}

Step to_init(unsigned access) {
  Step step{{}, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS};
  step.attributes.qp_state = IBV_QPS_INIT;
  step.attributes.port_num = 1;
  step.attributes.qp_access_flags = access;
  return step;
}

Step to_rtr(const Device& device, const Options& options, std::uint32_t peer, ibv_mtu mtu) {
  Step step{{},
            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER};
  ibv_qp_attr& attributes = step.attributes;
  attributes.qp_state = IBV_QPS_RTR;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.grh.dgid = device.gid();
  attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(options.gid_index);
  attributes.ah_attr.grh.hop_limit = 1;
  attributes.ah_attr.port_num = 1;
  attributes.path_mtu = mtu;
  attributes.dest_qp_num = peer;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = 1;
  return step;
}

Step to_rts(const PairSettings& settings) {
  Step step{{},
            IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                IBV_QP_MAX_QP_RD_ATOMIC};
  step.attributes.qp_state = IBV_QPS_RTS;
  step.attributes.timeout = settings.timeout;
  step.attributes.retry_cnt = settings.retry_count;
  step.attributes.rnr_retry = settings.rnr_retry;
  step.attributes.max_rd_atomic = 1;
  return step;
}

LocalPair::LocalPair(const Device& device, const Options& options, const PairSettings& settings)
    : active_cq_(device, 64, false, false),
      passive_cq_(device, 64, false, false),
      active_(new_queue_pair(device, active_cq_)),
      passive_(new_queue_pair(device, passive_cq_)) {
  for (Step step : {to_init(0), to_rtr(device, options, passive_->qp_num, settings.active_mtu),
                    to_rts(settings)})
    succeeds(ibv_modify_qp(active_, &step.attributes, step.mask), "ibv_modify_qp, active");
  for (Step step :
       {to_init(settings.passive_access),
        to_rtr(device, options, active_->qp_num, settings.passive_mtu), to_rts(settings)})
    succeeds(ibv_modify_qp(passive_, &step.attributes, step.mask), "ibv_modify_qp, passive");
}

LocalPair::~LocalPair() {
  succeeds(ibv_destroy_qp(active_), "ibv_destroy_qp");
  destroy_passive();
}

void LocalPair::destroy_passive() {
  if (passive_ != nullptr) succeeds(ibv_destroy_qp(passive_), "ibv_destroy_qp");
  passive_ = nullptr;
}

void LocalPair::post(const Request& request) {
  ibv_send_wr wr{};
  wr.sg_list = const_cast<ibv_sge*>(request.list.data());
  wr.num_sge = static_cast<int>(request.list.size());
  wr.opcode = request.opcode;
  wr.send_flags = request.flags;
  if (request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    wr.wr.atomic = {.remote_addr = request.remote_address,
                    .compare_add = request.compare_add,
                    .swap = 0,
                    .rkey = request.rkey};
  } else {
    wr.wr.rdma = {.remote_addr = request.remote_address, .rkey = request.rkey};
  }
  ibv_send_wr* bad = nullptr;
  succeeds(ibv_post_send(active_, &wr, &bad), "ibv_post_send");
}

void LocalPair::post_receive(std::vector<ibv_sge> list) {
  ibv_recv_wr wr{};
  wr.sg_list = list.data();
  wr.num_sge = static_cast<int>(list.size());
  ibv_recv_wr* bad = nullptr;
  succeeds(ibv_post_recv(passive_, &wr, &bad), "ibv_post_recv");
}

}  // namespace checker
