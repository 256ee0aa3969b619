#include "tools/urxe/packets.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/urxe/capture_file.h"

namespace urxe::tools {
namespace {

// What is kept of a packet for the table.
struct Row {
  std::chrono::nanoseconds time;
  std::string source;
  std::string destination;
  std::string opcode;
  std::uint32_t qpn = 0;
  std::uint32_t psn = 0;
  std::string note;  // AckReq, or what an acknowledgement says
  std::size_t payload = 0;
  bool is_response = false;
  bool icrc_is_right = false;
  bool valid = false;
};

// A direction of a connection: packets from one address to a queue pair at another.
using Flow = std::tuple<std::string, std::string, std::uint32_t>;

Flow flow_of(const Row& row) { return {row.source, row.destination, row.qpn}; }

std::string syndrome_text(const wire::Packet& packet) {
  const wire::Syndrome syndrome = packet.aeth.syndrome;
  switch (syndrome.kind()) {
    case wire::Syndrome::Kind::ack:
      return fmt::format("ACK msn={}", packet.aeth.msn.value());
    case wire::Syndrome::Kind::rnr_nak:
      return fmt::format("RNR NAK {} us", wire::rnr_delay(syndrome.value()).count());
    case wire::Syndrome::Kind::nak:
      break;
    case wire::Syndrome::Kind::reserved:
      return "reserved syndrome";
  }
  switch (static_cast<wire::NakCode>(syndrome.value())) {
    case wire::NakCode::psn_sequence_error:
      return "NAK PSN sequence error";
    case wire::NakCode::invalid_request:
      return "NAK invalid request";
    case wire::NakCode::remote_access_error:
      return "NAK remote access error";
    case wire::NakCode::remote_operational_error:
      return "NAK remote operational error";
    case wire::NakCode::invalid_rd_request:
      return "NAK invalid RD request";
  }
  return fmt::format("NAK {}", syndrome.value());
}

Row row_of(const CapturedPacket& captured) {
  Row row{.time = captured.time,
          .source = captured.frame.path.source.to_string(),
          .destination = captured.frame.path.destination.to_string(),
          .icrc_is_right = captured.icrc_is_right};
  if (!captured.packet) {
    row.opcode = fmt::format("({})", to_string(captured.packet.error()));
    return row;
  }
  const wire::Packet& packet = *captured.packet;
  row.valid = true;
  row.opcode = packet.info->name;
  row.qpn = packet.bth.destination.value();
  row.psn = packet.bth.psn.value();
  row.payload = packet.payload.size();
  row.is_response = packet.info->is_response();
  if (packet.info->has(wire::Header::aeth)) {
    row.note = syndrome_text(packet);
  } else if (packet.bth.ack_request) {
    row.note = "AckReq";
  }
  return row;
}

// Which flow answers which. The BTH names only the receiver, so the two directions of a connection
// are matched by a response that has the PSN of a request the other way.
class Connections {
 public:
  void add(const Row& row) {
    if (!row.valid) return;
    const Flow flow = flow_of(row);
    if (!row.is_response) {
      last_request_[{row.source, row.destination, row.psn}] = flow;
      return;
    }
    const auto request = last_request_.find({row.destination, row.source, row.psn});
    if (request == last_request_.end() || peer_.contains(flow)) return;
    peer_[flow] = request->second;
    peer_[request->second] = flow;
    if (!first_) first_ = request->second;
  }
  // The flows of the connection that `flow` is one direction of.
  [[nodiscard]] std::vector<Flow> both(const Flow& flow) const {
    const auto peer = peer_.find(flow);
    return peer == peer_.end() ? std::vector<Flow>{flow} : std::vector<Flow>{flow, peer->second};
  }
  [[nodiscard]] const std::optional<Flow>& first() const { return first_; }

 private:
  std::map<std::tuple<std::string, std::string, std::uint32_t>, Flow> last_request_;
  std::map<Flow, Flow> peer_;
  std::optional<Flow> first_;
};

std::vector<Row> select(std::vector<Row> rows, const Connections& connections,
                        const PacketsOptions& options) {
  if (!options.qpn && !options.first_connection) return rows;
  std::vector<Flow> wanted;
  if (options.qpn) {
    for (const Row& row : rows) {
      if (row.valid && row.qpn == *options.qpn) {
        wanted = connections.both(flow_of(row));
        break;
      }
    }
  } else if (connections.first()) {
    wanted = connections.both(*connections.first());
  }
  std::erase_if(rows, [&wanted](const Row& row) {
    return !row.valid || std::find(wanted.begin(), wanted.end(), flow_of(row)) == wanted.end();
  });
  return rows;
}

// Short names for addresses, in the order in which they appear: IPv6 ones are too long for a table.
class ShortNames {
 public:
  explicit ShortNames(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      add(row.source);
      add(row.destination);
    }
  }
  [[nodiscard]] std::string of(const std::string& address) const {
    const auto found = std::find(addresses_.begin(), addresses_.end(), address);
    const auto index = static_cast<std::size_t>(found - addresses_.begin());
    constexpr std::size_t kLetters = 26;
    if (addresses_.size() > kLetters) return fmt::format("#{}", index + 1);
    return std::string(1, static_cast<char>('A' + index));
  }
  void print() const {
    for (const std::string& address : addresses_) fmt::print("{} = {}\n", of(address), address);
  }

 private:
  void add(const std::string& address) {
    if (std::find(addresses_.begin(), addresses_.end(), address) == addresses_.end()) {
      addresses_.push_back(address);
    }
  }
  std::vector<std::string> addresses_;
};

void print_table(std::vector<Row> rows, std::size_t shown) {
  if (rows.empty()) return;
  const std::size_t more = rows.size() - shown;
  rows.resize(shown);
  const ShortNames names(rows);
  names.print();
  fmt::print("{:>12}  {:<10} {:<28} {:>8} {:>8} {:>7}  {:<20} {}\n", "time/us", "direction",
             "opcode", "dest QP", "PSN", "payload", "AckReq or syndrome", "ICRC");
  for (const Row& row : rows) {
    const double microseconds = static_cast<double>((row.time - rows.front().time).count()) / 1000;
    fmt::print("{:>12.3f}  {:<10} {:<28} {:>8} {:>8} {:>7}  {:<20} {}\n", microseconds,
               names.of(row.source) + " -> " + names.of(row.destination), row.opcode,
               fmt::format("{:#x}", row.qpn), fmt::format("{:#x}", row.psn), row.payload, row.note,
               row.icrc_is_right ? "right" : "WRONG");
  }
  if (more > 0) fmt::print("... and {} more\n", more);
}

void print_json(const std::vector<Row>& rows, std::size_t shown) {
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < shown; ++i) {
    const Row& row = rows[i];
    all.push_back({{"time_ns", row.time.count()},
                   {"source", row.source},
                   {"destination", row.destination},
                   {"opcode", row.opcode},
                   {"destination_qp", row.qpn},
                   {"psn", row.psn},
                   {"payload", row.payload},
                   {"note", row.note},
                   {"icrc_right", row.icrc_is_right}});
  }
  fmt::print("{}\n", all.dump(2));
}

}  // namespace

int show_packets(const PacketsOptions& options) {
  std::vector<Row> rows;
  Connections connections;
  std::size_t wrong = 0;
  const auto totals = read_capture(options.file, [&](const CapturedPacket& captured) {
    rows.push_back(row_of(captured));
    connections.add(rows.back());
    if (!rows.back().icrc_is_right) ++wrong;
  });
  if (!totals) {
    fmt::print(stderr, "urxe: {}\n", totals.error());
    return 1;
  }
  rows = select(std::move(rows), connections, options);
  const std::size_t shown =
      options.limit == 0 ? rows.size() : std::min<std::size_t>(rows.size(), options.limit);
  if (options.json) {
    print_json(rows, shown);
  } else {
    print_table(rows, shown);
    fmt::print("{}: {} frames, {} RoCEv2 packets, ICRC right in {}, wrong in {}\n", options.file,
               totals->frames, totals->roce, totals->roce - wrong, wrong);
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace urxe::tools
