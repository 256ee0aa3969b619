// Every verb in every state of every type of queue pair: what it returns, and what becomes of it.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "tests/support/golden_text.h"
#include "tests/support/transition_rules.h"
#include "tests/unit/verbs/qp_world.h"

namespace urxe::test {
namespace {

using namespace emulator;

constexpr std::uint32_t kOpcodes = 17;  // beyond the last that is known

std::string error_name(int result) { return result == 0 ? "ok" : strerrorname_np(-result); }

// Names by what came of them, in the order in which they came up.
class Groups {
 public:
  void add(const std::string& outcome, std::string_view name) {
    const bool is_new = names_.find(outcome) == names_.end();
    if (is_new) order_.push_back(outcome);
    names_[outcome].append(" ").append(name);
  }
  // The last names of all, in the place of those with this outcome.
  void rename(const std::string& outcome, const std::string& name) {
    const auto found = std::find(order_.begin(), order_.end(), outcome);
    if (found == order_.end()) return;
    order_.erase(found);
    order_.push_back(outcome);
    names_[outcome] = " " + name;
  }
  [[nodiscard]] std::string text(std::string_view before, std::string_view after) const {
    std::string all;
    for (const std::string& outcome : order_) {
      all += fmt::format("{}{}: {}{}", before, names_.at(outcome), outcome, after);
    }
    return all;
  }

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::string> names_;
};

// --- MODIFY_QP

// Tries attributes on fresh queue pairs, and notes where ib_core would decide otherwise.
class Modifier {
 public:
  Modifier(QpType type, QpState from, std::vector<std::string>& differences)
      : type_(type), from_(from), world_(type, from), differences_(differences) {}

  std::string try_all(const TransitionRule& rule, bool with_state) {
    const AttributeMask base = rule.must | (with_state ? kAttrState : AttributeMask{});
    const std::string text = error_name(attempt(rule, base, "nothing more"));
    Groups without;
    Groups with;
    for (const NamedAttribute& one : named_attributes()) {
      if (rule.must.has(one.bit)) {
        without.add(error_name(attempt(rule, base.without(one.bit), one.name)), one.name);
      } else {
        with.add(error_name(attempt(rule, base | one.bit, one.name)), one.name);
      }
    }
    with.rename("EINVAL", "any other");
    return text + without.text("; without", "") + with.text("; with", "");
  }

 private:
  int attempt(const TransitionRule& rule, AttributeMask mask, std::string_view about) {
    if (world_.state() != from_) {
      world_.replace_subject();
      world_.bring(from_);
    }
    const int result = world_.modify(mask, rule.to);
    const bool rules_allow = rule.allowed && rule.must.without(mask).empty() &&
                             mask.without(rule.must | rule.may | kAttrState).empty();
    if (rules_allow != (result == 0)) {
      differences_.push_back(fmt::format("{} {} to {}, {}: {}, where ib_core says {}",
                                         to_string(type_), state_name(from_),
                                         mask.has(kAttrState) ? state_name(rule.to) : "nothing",
                                         about, error_name(result), rules_allow ? "ok" : "EINVAL"));
    }
    const QpState expected = result == 0 && mask.has(kAttrState) ? rule.to : from_;
    CHECK(world_.state() == expected);
    return result;
  }

  QpType type_;
  QpState from_;
  QpWorld world_;
  std::vector<std::string>& differences_;
};

std::string modifications(QpType type, QpState from, std::vector<std::string>& differences) {
  static const auto kRules = transition_rules();
  Modifier modifier(type, from, differences);
  Groups groups;
  for (const TransitionRule& rule : kRules) {
    if (rule.type != type || rule.from != from) continue;
    if (rule.to == from) groups.add(modifier.try_all(rule, false), "nothing");
    groups.add(modifier.try_all(rule, true), state_name(rule.to));
  }
  return groups.text("  modify to", "\n");
}

// --- work

std::string status_name(std::optional<CompletionStatus> status) {
  return status ? std::string(to_string(*status)) : "no completion";
}

std::string request_outcome(QpType type, QpState state, std::uint32_t opcode) {
  QpWorld world(type, state);
  const auto work = static_cast<WorkOpcode>(opcode);
  if (work == WorkOpcode::send_with_invalidate) world.bind(world.peer());
  const bool binds = type != QpType::ud && state == QpState::ready_to_send;
  if (work == WorkOpcode::local_invalidate && binds) {
    world.bind(world.subject());
  }
  const QpState before = world.state();
  const int posted = world.post(world.subject(), world.peer(), opcode);
  std::string text = posted == 0 ? status_name(world.outcome(world.subject())) : error_name(posted);
  if (posted != 0) CHECK_FALSE(world.outcome(world.subject()));
  if (world.state() != before) text += fmt::format(", then {}", state_name(world.state()));
  return text;
}

std::string opcode_name(std::uint32_t opcode) {
  const std::string_view name = to_string(static_cast<WorkOpcode>(opcode));
  return name == "?" ? fmt::format("{}", opcode) : std::string(name);
}

std::string requests(QpType type, QpState state) {
  Groups groups;
  for (std::uint32_t opcode = 0; opcode < kOpcodes; ++opcode) {
    groups.add(request_outcome(type, state, opcode), opcode_name(opcode));
  }
  return groups.text("  post", "\n");
}

// What the peer's request meets.
std::string visits(QpType type, QpState state) {
  Groups groups;
  for (const WorkOpcode opcode :
       {WorkOpcode::send, WorkOpcode::rdma_write, WorkOpcode::rdma_read, WorkOpcode::fetch_add}) {
    QpWorld world(type, state);
    world.post_receive(world.subject());
    world.post(world.peer(), world.subject(), static_cast<std::uint32_t>(opcode));
    const auto at_peer = world.outcome(world.peer());
    const auto here = world.outcome(world.subject());
    groups.add(fmt::format("{} at the peer, receive: {}", status_name(at_peer), status_name(here)),
               to_string(opcode));
  }
  return groups.text("  the peer's", "\n");
}

// --- the rest

template <typename Request, typename Response>
int destroy(UverbsClient& client, std::uint32_t command, std::uint32_t Request::*field,
            std::uint32_t handle) {
  Request request{};
  request.*field = handle;
  Response response{};
  return client.run(command, request, &response);
}

std::string others(QpType type, QpState state) {
  QpWorld world(type, state);
  UverbsClient& client = world.client();
  const QpWorld::End& end = world.subject();
  struct {
    std::uint8_t gid[16] = {0xFF, 0x0E};
    std::uint32_t qp_handle = 0;
    std::uint16_t mlid = 0xC000;
    std::uint16_t reserved = 0;
  } group;
  group.qp_handle = end.qp.handle;
  const int attached = client.run(IB_USER_VERBS_CMD_ATTACH_MCAST, group);
  const int detached = client.run(IB_USER_VERBS_CMD_DETACH_MCAST, group);
  const int cq = destroy<ib_uverbs_destroy_cq, ib_uverbs_destroy_cq_resp>(
      client, IB_USER_VERBS_CMD_DESTROY_CQ, &ib_uverbs_destroy_cq::cq_handle, end.cq.handle);
  ib_uverbs_dealloc_pd domain{};
  domain.pd_handle = world.pd();
  const int pd = client.run(IB_USER_VERBS_CMD_DEALLOC_PD, domain);
  const int qp = destroy<ib_uverbs_destroy_qp, ib_uverbs_destroy_qp_resp>(
      client, IB_USER_VERBS_CMD_DESTROY_QP, &ib_uverbs_destroy_qp::qp_handle, end.qp.handle);
  return fmt::format(
      "  attach_mcast: {}; detach_mcast: {}; destroy its CQ: {}; free its PD: {}; destroy: {}\n",
      error_name(attached), error_name(detached), error_name(cq), error_name(pd), error_name(qp));
}

std::string matrix() {
  std::string text;
  std::vector<std::string> differences;
  for (const QpType type : {QpType::rc, QpType::uc, QpType::ud}) {
    for (int number = 0; number < kQpStates; ++number) {
      const auto state = static_cast<QpState>(number);
      if (type == QpType::rc && state == QpState::send_queue_error) continue;
      text += fmt::format("{} in {}\n", to_string(type), state_name(state));
      text += modifications(type, state, differences) + requests(type, state) +
              visits(type, state) + others(type, state) + "\n";
    }
  }
  text += "differences from ib_core\n";
  for (const std::string& difference : differences) text += "  " + difference + "\n";
  return text;
}

TEST_CASE("every verb does in every state of every queue pair what the golden file says") {
  check_golden_text("tests/golden/qp_matrix.txt", matrix());
}

}  // namespace
}  // namespace urxe::test
