// Every field of every message of communication management with wrong values in turn, sent to an
// end with a connection in every state, beside another connection that has nothing to do with it.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "tests/support/golden_text.h"
#include "tests/unit/emulator/cm_fields.h"
#include "tests/unit/emulator/cm_scenes.h"

namespace urxe::test {
namespace {

using emulator::CmState;
using wire::CmAttribute;
using wire::CommId;
using Bytes = std::vector<std::uint8_t>;

const wire::IpAddress kStranger = wire::IpAddress::from_v4(0x0A090909);

std::string name_of(CmState state) {
  static constexpr std::array kNames{"idle",
                                     "REQ sent",
                                     "MRA(REQ) received",
                                     "REQ received",
                                     "REP sent",
                                     "MRA(REP) received",
                                     "REP received",
                                     "established",
                                     "DREQ sent",
                                     "DREQ received",
                                     "time wait",
                                     "SIDR_REQ sent",
                                     "SIDR_REQ received"};
  return kNames.at(static_cast<std::size_t>(state));
}

std::string name_of(emulator::CmEventKind kind) {
  static constexpr std::array kNames{
      "request_received",     "reply_received",  "established",          "rejected",
      "disconnect_requested", "disconnected",    "request_timed_out",    "reply_timed_out",
      "disconnect_timed_out", "time_wait_ended", "resolution_requested", "resolved",
      "resolution_timed_out"};
  return kNames.at(static_cast<std::size_t>(kind));
}

// --- the messages

struct Kind {
  const char* name;
  CmAttribute attribute;
  wire::CmSubject subject{};  // of MRA and REJ
  wire::RejectReason reason = wire::RejectReason::consumer_defined;
};

constexpr std::array kKinds{
    Kind{"REQ", CmAttribute::req},
    Kind{"REP", CmAttribute::rep},
    Kind{"RTU", CmAttribute::rtu},
    Kind{"REJ about a REQ", CmAttribute::rej, wire::CmSubject::req},
    Kind{"REJ about a REP", CmAttribute::rej, wire::CmSubject::rep},
    Kind{"REJ about something else", CmAttribute::rej, wire::CmSubject::other},
    Kind{"REJ for a timeout", CmAttribute::rej, wire::CmSubject::req, wire::RejectReason::timeout},
    Kind{"MRA about a REQ", CmAttribute::mra, wire::CmSubject::req},
    Kind{"MRA about a REP", CmAttribute::mra, wire::CmSubject::rep},
    Kind{"DREQ", CmAttribute::dreq},
    Kind{"DREP", CmAttribute::drep},
    Kind{"SIDR_REQ", CmAttribute::sidr_req},
    Kind{"SIDR_REP", CmAttribute::sidr_rep},
};

wire::CmReq req_of(Scene& scene, wire::Qpn qpn) {
  wire::CmReq req{
      .local_id = scene.peer(), .service = kTestService, .local_guid = scene_options().node_guid};
  req.local_qpn = qpn;
  req.responder_resources = req.initiator_depth = 4;
  req.remote_response_timeout = req.local_response_timeout = 20;
  req.retry_count = req.rnr_retry_count = 7;
  req.max_cm_retries = 15;
  req.path_mtu = 3;
  req.primary.local_gid = scene.world.pair().node(1 - scene.node).address;
  req.primary.remote_gid = scene.world.pair().node(scene.node).address;
  req.primary.local_lid = req.primary.remote_lid = 0xFFFF;
  req.primary.ack_timeout = 19;
  const auto data = scene.world.ip_header(1 - scene.node, scene.node);
  std::copy(data.begin(), data.end(), req.private_data.begin());
  return req;
}

wire::CmRej rej_of(const Kind& kind, CommId from, CommId to) {
  wire::CmRej rej{
      .local_id = from, .remote_id = to, .subject = kind.subject, .reason = kind.reason};
  if (kind.reason == wire::RejectReason::timeout) {
    wire::store_be(wire::MutableBytes(rej.info), 0, scene_options().node_guid);
  }
  return rej;
}

// As the subject's peer would send it.
wire::CmBody body_of(const Kind& kind, Scene& scene) {
  const CommId from = scene.peer();
  const CommId to = scene.subject();
  const wire::Qpn qpn{scene.node == 0 ? kServerQpn : kClientQpn};
  switch (kind.attribute) {
    case CmAttribute::req:
      return req_of(scene, qpn);
    case CmAttribute::rep:
      return wire::CmRep{.local_id = from,
                         .remote_id = to,
                         .local_qpn = qpn,
                         .responder_resources = 4,
                         .initiator_depth = 4,
                         .target_ack_delay = 15,
                         .rnr_retry_count = 7,
                         .local_guid = scene_options().node_guid};
    case CmAttribute::mra:
      return wire::CmMra{
          .local_id = from, .remote_id = to, .subject = kind.subject, .service_timeout = 24};
    case CmAttribute::rej:
      return rej_of(kind, from, to);
    case CmAttribute::rtu:
      return wire::CmRtu{.local_id = from, .remote_id = to};
    case CmAttribute::dreq:
      return wire::CmDreq{.local_id = from,
                          .remote_id = to,
                          .remote_qpn = wire::Qpn{scene.node == 0 ? kClientQpn : kServerQpn}};
    case CmAttribute::drep:
      return wire::CmDrep{.local_id = from, .remote_id = to};
    case CmAttribute::sidr_req: {
      wire::CmSidrReq req{.request_id = from, .service = kUdService};
      const auto data = scene.world.ip_header(1 - scene.node, scene.node, req.private_data.size());
      std::copy(data.begin(), data.end(), req.private_data.begin());
      return req;
    }
    default:
      return wire::CmSidrRep{.request_id = to, .qpn = qpn, .service = kUdService};
  }
}

struct Attempt {
  Bytes mad;
  wire::Path path;
  wire::QKey qkey = wire::kGsiQKey;
  wire::PKey pkey = wire::kDefaultPKey;
};

struct Spoiled {
  std::string value;
  std::function<void(Attempt&)> spoil;
};

Attempt attempt_of(const Kind& kind, Scene& scene) {
  Attempt attempt{.mad = Bytes(wire::kMadSize),
                  .path = {.source = scene.world.pair().node(1 - scene.node).address,
                           .destination = scene.world.pair().node(scene.node).address,
                           .source_port = 0xC000}};
  wire::serialize_cm({.transaction = 0x1234, .body = body_of(kind, scene)}, attempt.mad);
  return attempt;
}

// As the packet's receiver gets it, behind the check of its ICRC.
void deliver(Scene& scene, const Attempt& attempt) {
  wire::Packet packet;
  packet.info = &wire::info(wire::Opcode::ud_send_only);
  packet.bth.opcode = static_cast<std::uint8_t>(wire::Opcode::ud_send_only);
  packet.bth.destination = wire::kGsiQpn;
  packet.bth.pkey = attempt.pkey;
  packet.bth.pad_count = wire::pad_count(attempt.mad.size());
  packet.deth = {.qkey = attempt.qkey, .source = wire::kGsiQpn};
  Bytes bytes(wire::kMaxHeaderSize);
  bytes.resize(wire::write_headers(packet, bytes));
  bytes.insert(bytes.end(), attempt.mad.begin(), attempt.mad.end());
  bytes.resize(bytes.size() + packet.bth.pad_count + wire::kIcrcSize);
  scene.world.pair()
      .node(scene.node)
      .device.handle_packet(scene.world.now(),
                            {.path = attempt.path, .bytes = bytes, .icrc_is_right = true});
}

// --- the values

std::uint64_t ones(unsigned width) { return width >= 64 ? ~0ULL : (1ULL << width) - 1; }

std::vector<std::pair<std::string, std::uint64_t>> numbers(const MadField& field,
                                                           const Scene& scene, std::uint64_t now) {
  std::vector<std::pair<std::string, std::uint64_t>> values;
  if (field.kind == FieldKind::choice) {
    for (std::uint64_t i = 0; i <= ones(field.width); ++i)
      values.emplace_back(std::to_string(i), i);
  }
  if (field.kind == FieldKind::reason) {
    for (std::uint64_t i = 0; i <= 36; ++i) values.emplace_back(std::to_string(i), i);
  }
  if (field.kind == FieldKind::id) {
    values.emplace_back("ours", scene.subject().value());
    values.emplace_back("its", scene.peer().value());
    values.emplace_back("other's", scene.bystander().value());
    values.emplace_back("other's peer's", scene.bystanders_peer().value());
  }
  if (field.kind == FieldKind::qpn) {
    const bool client = scene.node == 0;
    values.emplace_back("ours", client ? kClientQpn : kServerQpn);
    values.emplace_back("its", client ? kServerQpn : kClientQpn);
    values.emplace_back("other's", client ? kOtherClientQpn : kOtherServerQpn);
    values.emplace_back("other's peer's", client ? kOtherServerQpn : kOtherClientQpn);
  }
  if (field.kind != FieldKind::choice) {
    values.emplace_back("0", 0);
    values.emplace_back("ones", ones(field.width));
    values.emplace_back("+1", now + 1 & ones(field.width));
    values.emplace_back("-1", now - 1 & ones(field.width));
  }
  return values;
}

// Each value once, and none that is right.
std::vector<Spoiled> wrong_values(const MadField& field, const Scene& scene, const Bytes& right) {
  std::vector<Spoiled> spoiled;
  if (field.kind == FieldKind::address) {
    const auto put = [&field](const wire::IpAddress& address) {
      return [at = field.byte, bytes = address.bytes()](Attempt& attempt) {
        std::copy(bytes.begin(), bytes.end(),
                  attempt.mad.begin() + static_cast<std::ptrdiff_t>(at));
      };
    };
    spoiled.push_back({"0", put({})});
    spoiled.push_back({"stranger's", put(kStranger)});
    return spoiled;
  }
  std::set<std::uint64_t> seen{load_field(right, field)};
  for (const auto& [name, value] : numbers(field, scene, *seen.begin())) {
    if (!seen.insert(value).second) continue;
    spoiled.push_back({name, [field, value = value](Attempt& attempt) {
                         store_field(attempt.mad, field, value);
                       }});
  }
  return spoiled;
}

using Trial = std::pair<std::string, std::vector<Spoiled>>;

void put_ids(Attempt& attempt, std::uint64_t first, std::uint64_t second) {
  store_field(attempt.mad, kFirstId, first);
  store_field(attempt.mad, kSecondId, second);
}

// Both ids wrong, in ways that make sense.
Trial id_trials(const Scene& scene) {
  const auto swap_ids = [](Attempt& attempt) {
    put_ids(attempt, load_field(attempt.mad, kSecondId), load_field(attempt.mad, kFirstId));
  };
  const auto take_others = [first = scene.bystanders_peer().value(),
                            second = scene.bystander().value()](Attempt& attempt) {
    put_ids(attempt, first, second);
  };
  const auto forge_others = [take_others](Attempt& attempt) {
    take_others(attempt);
    attempt.path.source = kStranger;
  };
  return {"both ids",
          {{"swapped", swap_ids},
           {"other's", take_others},
           {"other's, from stranger", forge_others},
           {"0", [](Attempt& attempt) { put_ids(attempt, 0, 0); }}}};
}

bool has_two_ids(CmAttribute attribute) {
  return attribute != CmAttribute::req && attribute != CmAttribute::sidr_req &&
         attribute != CmAttribute::sidr_rep;
}

// What is not a field of the MAD.
std::vector<Trial> other_trials() {
  std::vector<Spoiled> lengths;
  for (const std::size_t size : {0, 1, 23, 24, 25, 32, 100, 252, 255, 257, 260, 1024}) {
    lengths.push_back(
        {std::to_string(size), [size](Attempt& attempt) { attempt.mad.resize(size); }});
  }
  return {
      {"length", lengths},
      {"from", {{"stranger", [](Attempt& attempt) { attempt.path.source = kStranger; }}}},
      {"to", {{"stranger", [](Attempt& attempt) { attempt.path.destination = kStranger; }}}},
      {"Q_Key of the packet", {{"0", [](Attempt& attempt) { attempt.qkey = {}; }}}},
      {"P_Key of the packet",
       {{"0", [](Attempt& attempt) { attempt.pkey = {}; }},
        {"limited", [](Attempt& attempt) { attempt.pkey = wire::PKey{0x7FFF}; }}}},
  };
}

// --- what comes of it

// All that a connection is, but for what counts questions about its peer's life.
std::string picture(const emulator::Connection* connection) {
  if (connection == nullptr) return "none";
  const auto& c = *connection;
  return fmt::format("{} {:x} {:x} {} {} {:x} {:x} {:x} {:x} {:x} {} {} {} {} {} {} {} {} {} {} {}",
                     static_cast<int>(c.state), c.remote_id.value(), c.remote_guid, c.released,
                     c.listener.value(), c.service.value, c.transaction, c.local_qpn.value(),
                     c.remote_qpn.value(), c.receive_psn.value(), c.send_psn.value(), c.path_mtu,
                     c.responder_resources, c.initiator_depth, c.retry_count, c.rnr_retry_count,
                     c.ack_timeout, c.pending ? c.pending->timeout.count() : -1,
                     c.pending ? c.pending->retries_left : 0,
                     c.deadline().time_since_epoch().count(), c.unanswered_probes);
}

std::string state_of(const emulator::Connection* connection) {
  return connection == nullptr ? "gone" : name_of(connection->state);
}

// Whether a message is about a connection, as far as its sender and its numbers say. From the
// bytes, by the rules of IBTA 12.10.4 and 12.9.8.3.1.
bool is_about(const Attempt& attempt, const emulator::Connection& c) {
  if (attempt.path.source != c.path.destination || attempt.mad.size() < wire::kMadSize)
    return false;
  const auto word = [&](std::size_t at) {
    return static_cast<std::uint32_t>(load_field(attempt.mad, {"", at, 0, 32}));
  };
  const auto guid_at = [&](std::size_t at) {
    return load_field(attempt.mad, {"", at, 0, 64}) == c.remote_guid;
  };
  const auto qpn_at = [&](std::size_t at) { return word(at) >> 8 == c.remote_qpn.value(); };
  const bool names_it = word(28) == c.id.value();
  const bool names_both = names_it && word(24) == c.remote_id.value();
  const bool about_req = attempt.mad[32] >> 6 == 0;
  const bool unknown_peer = c.remote_id == CommId{};
  switch (static_cast<CmAttribute>(load_field(attempt.mad, {"", 16, 0, 16}))) {
    case CmAttribute::req:
      return guid_at(40) && (word(24) == c.remote_id.value() || qpn_at(56));
    case CmAttribute::rep:
      return names_both || (names_it && unknown_peer) || (guid_at(52) && qpn_at(36));
    case CmAttribute::rej:
      if (load_field(attempt.mad, {"", 34, 0, 16}) == 4) {
        return guid_at(36) && word(24) == c.remote_id.value();
      }
      [[fallthrough]];
    case CmAttribute::mra:
      return about_req ? names_it && unknown_peer : names_both;
    case CmAttribute::dreq:
      return names_both && word(32) >> 8 == c.local_qpn.value();
    case CmAttribute::sidr_rep:
      return word(24) == c.id.value();
    default:
      return names_both;
  }
}

std::string counted(const emulator::Counters& before, const emulator::Counters& after) {
  if (after.qkey_violations > before.qkey_violations) return " wrong Q_Key";
  return after.pkey_violations > before.pkey_violations ? " wrong P_Key" : "";
}

std::string counted(const emulator::CmCounters& before, const emulator::CmCounters& after) {
  std::string text;
  if (after.malformed > before.malformed) text += " malformed";
  if (after.overflows > before.overflows) text += " overflow";
  for (std::size_t i = 0; i < before.received.size(); ++i) {
    if (after.received_again[i] > before.received_again[i]) text += " repeated";
  }
  return text;
}

std::string described(const wire::CmMessage& message) {
  std::string text{wire::to_string(message.attribute())};
  if (const auto* rej = std::get_if<wire::CmRej>(&message.body)) {
    text += fmt::format("({})", static_cast<int>(rej->reason));
  }
  if (const auto* rep = std::get_if<wire::CmSidrRep>(&message.body)) {
    text += fmt::format("({})", static_cast<int>(rep->status));
  }
  return text;
}

std::string changed(const Attempt& attempt, const char* who, const emulator::Connection& before,
                    const std::string& picture_before, const emulator::Connection* after) {
  if (picture(after) == picture_before) return "";
  INFO(who << " changed");
  CHECK(is_about(attempt, before));
  if (after != nullptr && after->state == before.state) return fmt::format(" {}:touched", who);
  return fmt::format(" {}:{}", who, state_of(after));
}

// Everything is given up, and nothing may be left.
void finish(Scene& scene) {
  scene.world.fate = nullptr;
  for (const int node : {0, 1}) {
    scene.world.cm(node).release_all(scene.world.now());
    scene.world.run(200s);
  }
  CHECK(scene.world.remembered() == 0);
}

struct Copied {
  emulator::Connection value;
  std::string picture;
};

std::optional<Copied> copy_of(const emulator::Connection* connection) {
  if (connection == nullptr) return std::nullopt;
  return Copied{*connection, picture(connection)};
}

std::string outcome_of(const Stage& stage, const Kind& kind,
                       const std::function<void(Attempt&)>& spoil) {
  Scene scene(stage.node);
  stage.prepare(scene);
  emulator::ConnectionManager& cm = scene.world.cm(stage.node);
  scene.world.events(stage.node);
  Attempt attempt = attempt_of(kind, scene);
  if (spoil) spoil(attempt);
  const auto subject = copy_of(scene.find(scene.subject()));
  const auto bystander = copy_of(scene.find(scene.bystander()));
  const std::size_t connections = cm.connections();
  const emulator::CmCounters before = cm.counters();
  const emulator::Device& device = scene.world.pair().node(stage.node).device;
  const emulator::Counters packets = device.counters();
  std::string sent;
  scene.world.fate = [&](int, const wire::CmMessage& message) {
    sent += " ->" + described(message);
    return 0;
  };
  deliver(scene, attempt);
  scene.world.pair().transmit();
  std::string text = counted(packets, device.counters()) + counted(before, cm.counters()) + sent;
  for (const auto& event : scene.world.events(stage.node)) {
    const bool is_new = event.id != scene.subject() && event.id != scene.bystander();
    text += fmt::format(" !{}{}", name_of(event.kind), is_new ? " (new)" : "");
  }
  if (cm.connections() > connections) text += fmt::format(" +{}", cm.connections() - connections);
  if (subject) {
    text +=
        changed(attempt, "subject", subject->value, subject->picture, scene.find(scene.subject()));
  }
  text += changed(attempt, "other", bystander->value, bystander->picture,
                  scene.find(scene.bystander()));
  finish(scene);
  return text.empty() ? " nothing" : text;
}

// --- the file

using Lines = std::vector<std::string>;

// Right first, then what differs from it: "malformed <- class=0,ones; method=+1".
Lines lines_of(const Stage& stage, const Kind& kind) {
  const std::string right = outcome_of(stage, kind, nullptr);
  Scene scene(stage.node);
  stage.prepare(scene);
  const Attempt attempt = attempt_of(kind, scene);
  std::vector<Trial> trials;
  for (const MadField& field : fields_of(kind.attribute)) {
    trials.emplace_back(field.name, wrong_values(field, scene, attempt.mad));
  }
  if (has_two_ids(kind.attribute)) trials.push_back(id_trials(scene));
  for (Trial& trial : other_trials()) trials.push_back(std::move(trial));
  std::map<std::string, std::string> by_outcome;
  for (const auto& [name, values] : trials) {
    std::map<std::string, std::string> places;
    for (const Spoiled& value : values) {
      INFO(stage.name << ", " << kind.name << ", " << name << "=" << value.value);
      const std::string outcome = outcome_of(stage, kind, value.spoil);
      if (outcome != right) places[outcome] += (places[outcome].empty() ? "" : ",") + value.value;
    }
    for (const auto& [outcome, which] : places) {
      std::string& line = by_outcome[outcome];
      line += fmt::format("{} {}={}", line.empty() ? "" : ";", name, which);
    }
  }
  Lines lines{right};
  for (const auto& [outcome, which] : by_outcome) {
    lines.push_back(fmt::format("{} <-{}", outcome, which));
  }
  return lines;
}

// Takes out the lines that all states have, but for those of right messages.
Lines take_common(std::vector<Lines>& all) {
  Lines common;
  for (std::size_t i = 1; i < all[0].size(); ++i) common.push_back(all[0][i]);
  for (const Lines& lines : all) {
    std::erase_if(common, [&](const std::string& line) {
      return std::find(lines.begin() + 1, lines.end(), line) == lines.end();
    });
  }
  for (Lines& lines : all) {
    lines.erase(std::remove_if(lines.begin() + 1, lines.end(),
                               [&](const std::string& line) {
                                 return std::find(common.begin(), common.end(), line) !=
                                        common.end();
                               }),
                lines.end());
  }
  return common;
}

// States in which the same comes of everything stand together.
std::string lines_of(const Kind& kind) {
  const std::vector<Stage> all_stages = stages();
  std::vector<Lines> all;
  for (const Stage& stage : all_stages) all.push_back(lines_of(stage, kind));
  std::string text = fmt::format("{}\n  in every state:\n", kind.name);
  for (const std::string& line : take_common(all)) text += fmt::format("     {}\n", line);
  std::set<Lines> seen;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!seen.insert(all[i]).second) continue;
    std::string names;
    for (std::size_t j = i; j < all.size(); ++j) {
      if (all[j] == all[i]) names += (j == i ? "" : "; ") + std::string(all_stages[j].name);
    }
    text += fmt::format("  {}:{}\n", names, all[i][0]);
    for (std::size_t k = 1; k < all[i].size(); ++k) text += fmt::format("     {}\n", all[i][k]);
  }
  return text + "\n";
}

TEST_CASE("every field of every CM message with every wrong value does what the golden file says") {
  std::string text;
  for (const Kind& kind : kKinds) text += lines_of(kind);
  check_golden_text("tests/golden/cm_sweep.txt", text);
}

}  // namespace
}  // namespace urxe::test
