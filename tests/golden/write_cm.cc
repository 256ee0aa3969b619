// Writes CM messages with every field distinct: a line for each, `name=value` pairs in the words of
// tshark's dissector, then `hex=` and the IP packet.
#include <algorithm>
#include <array>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "net/random.h"
#include "net/wire/cm.h"
#include "tests/support/frames.h"
#include "tests/support/hex.h"

namespace {

using namespace urxe;
using namespace urxe::wire;

using Fields = std::vector<std::pair<std::string, std::uint64_t>>;

constexpr int kRounds = 8;

class Writer {
 public:
  explicit Writer(std::uint64_t seed) : random_(seed) {}

  void write_all() {
    write_req();
    write_rep();
    write_rej();
    write_release();
  }

 private:
  template <typename T>
  T draw(unsigned bits) {
    return static_cast<T>(random_.next() >> (64 - bits));
  }
  template <typename Number>
  Number number(unsigned bits) {
    return Number{static_cast<std::uint32_t>(random_.next() >> (64 - bits))};
  }
  template <typename Array>
  void fill(Array& array) {
    std::generate(array.begin(), array.end(), [&] { return draw<std::uint8_t>(8); });
  }

  // Without flow label and packet rate, which tshark 4.0 takes from other bits of the word than
  // IBTA's table and Linux do; cm_test.cc checks the flow label.
  void write_path(CmPath& path, Fields& fields) {
    path.local_lid = draw<std::uint16_t>(16);
    path.remote_lid = draw<std::uint16_t>(16);
    path.local_gid = IpAddress::from_v4(draw<std::uint32_t>(32));
    path.remote_gid = IpAddress::from_v4(draw<std::uint32_t>(32));
    path.flow_label = draw<std::uint32_t>(20);
    path.packet_rate = draw<std::uint8_t>(6);
    path.traffic_class = draw<std::uint8_t>(8);
    path.hop_limit = draw<std::uint8_t>(8);
    path.service_level = draw<std::uint8_t>(4);
    path.subnet_local = draw<int>(1) != 0;
    path.ack_timeout = draw<std::uint8_t>(5);
    const std::string prefix = "infiniband.cm.req.prim_";
    fields.insert(fields.end(), {{prefix + "locallid", path.local_lid},
                                 {prefix + "remotelid", path.remote_lid},
                                 {prefix + "tfcclass", path.traffic_class},
                                 {prefix + "hoplim", path.hop_limit},
                                 {prefix + "sl", path.service_level},
                                 {prefix + "subnetlocal", path.subnet_local ? 1 : 0},
                                 {prefix + "localacktout", path.ack_timeout}});
  }

  void write_req() {
    CmReq req;
    req.local_id = number<CommId>(32);
    req.service = service_id(PortSpace::tcp, draw<std::uint16_t>(16));
    req.local_guid = random_.next();
    req.local_qkey = number<QKey>(32);
    req.local_qpn = number<Qpn>(24);
    req.responder_resources = draw<std::uint8_t>(8);
    req.initiator_depth = draw<std::uint8_t>(8);
    req.remote_response_timeout = draw<std::uint8_t>(5);
    req.transport = static_cast<CmTransport>(draw<int>(2));
    req.flow_control = draw<int>(1) != 0;
    req.starting_psn = number<Psn>(24);
    req.local_response_timeout = draw<std::uint8_t>(5);
    req.retry_count = draw<std::uint8_t>(3);
    req.pkey = PKey{draw<std::uint16_t>(16)};
    req.path_mtu = draw<std::uint8_t>(4);
    req.rnr_retry_count = draw<std::uint8_t>(3);
    req.max_cm_retries = draw<std::uint8_t>(4);
    req.srq = draw<int>(1) != 0;
    req.extended_transport = draw<std::uint8_t>(3);
    const std::string prefix = "infiniband.cm.req";
    Fields fields{{prefix, req.local_id.value()},
                  {prefix + ".localcaguid", req.local_guid},
                  {prefix + ".localqkey", req.local_qkey.value()},
                  {prefix + ".localqpn", req.local_qpn.value()},
                  {prefix + ".responderres", req.responder_resources},
                  {prefix + ".initdepth", req.initiator_depth},
                  {prefix + ".remoteresptout", req.remote_response_timeout},
                  {prefix + ".transpsvctype", static_cast<std::uint64_t>(req.transport)},
                  {prefix + ".e2eflowctrl", req.flow_control ? 1 : 0},
                  {prefix + ".startpsn", req.starting_psn.value()},
                  {prefix + ".localresptout", req.local_response_timeout},
                  {prefix + ".retrcount", req.retry_count},
                  {prefix + ".pkey", req.pkey.value()},
                  {prefix + ".pppmtu", req.path_mtu},
                  {prefix + ".rnrretrcount", req.rnr_retry_count},
                  {prefix + ".maxcmretr", req.max_cm_retries},
                  {prefix + ".srq", req.srq ? 1 : 0},
                  {prefix + ".ext_transport", req.extended_transport}};
    write_path(req.primary, fields);
    const IpCmHeader header{.source_port = draw<std::uint16_t>(16),
                            .source = req.primary.local_gid,
                            .destination = req.primary.remote_gid};
    header.serialize(req.private_data);
    fields.emplace_back("infiniband.cm.req.ip_cm.sport", header.source_port);
    fields.emplace_back("infiniband.cm.req.ip_cm.ipv", 4);
    write(req, std::move(fields));
  }

  void write_rep() {
    CmRep rep;
    rep.local_id = number<CommId>(32);
    rep.remote_id = number<CommId>(32);
    rep.local_qkey = number<QKey>(32);
    rep.local_qpn = number<Qpn>(24);
    rep.starting_psn = number<Psn>(24);
    rep.responder_resources = draw<std::uint8_t>(8);
    rep.initiator_depth = draw<std::uint8_t>(8);
    rep.target_ack_delay = draw<std::uint8_t>(5);
    rep.failover_accepted = draw<std::uint8_t>(2);
    rep.flow_control = draw<int>(1) != 0;
    rep.rnr_retry_count = draw<std::uint8_t>(3);
    rep.srq = draw<int>(1) != 0;
    rep.local_guid = random_.next();
    fill(rep.private_data);
    const std::string prefix = "infiniband.cm.rep";
    write(rep, {{prefix, rep.local_id.value()},
                {prefix + ".remotecommid", rep.remote_id.value()},
                {prefix + ".localqkey", rep.local_qkey.value()},
                {prefix + ".localqpn", rep.local_qpn.value()},
                {prefix + ".startpsn", rep.starting_psn.value()},
                {prefix + ".respres", rep.responder_resources},
                {prefix + ".initdepth", rep.initiator_depth},
                {prefix + ".tgtackdelay", rep.target_ack_delay},
                {prefix + ".failoveracc", rep.failover_accepted},
                {prefix + ".e2eflowctrl", rep.flow_control ? 1 : 0},
                {prefix + ".rnrretrcount", rep.rnr_retry_count},
                {prefix + ".srq", rep.srq ? 1 : 0},
                {prefix + ".localcaguid", rep.local_guid}});
  }

  void write_rej() {
    CmRej rej{.local_id = number<CommId>(32),
              .remote_id = number<CommId>(32),
              .subject = static_cast<CmSubject>(draw<int>(2)),
              .info_length = draw<std::uint8_t>(7),
              .reason = static_cast<RejectReason>(draw<int>(16))};
    fill(rej.info);
    fill(rej.private_data);
    const std::string prefix = "infiniband.cm.rej.";
    write(rej, {{prefix + "localcommid", rej.local_id.value()},
                {prefix + "remotecommid", rej.remote_id.value()},
                {prefix + "msgrej", static_cast<std::uint64_t>(rej.subject)},
                {prefix + "rejinfolen", rej.info_length},
                {prefix + "reason", static_cast<std::uint64_t>(rej.reason)}});
  }

  void write_release() {
    CmRtu rtu{.local_id = number<CommId>(32), .remote_id = number<CommId>(32)};
    fill(rtu.private_data);
    write(rtu, {{"infiniband.cm.rtu.localcommid", rtu.local_id.value()},
                {"infiniband.cm.rtu.remotecommid", rtu.remote_id.value()}});
    CmDreq dreq{.local_id = number<CommId>(32),
                .remote_id = number<CommId>(32),
                .remote_qpn = number<Qpn>(24)};
    fill(dreq.private_data);
    write(dreq, {{"infiniband.cm.dreq.localcommid", dreq.local_id.value()},
                 {"infiniband.cm.dreq.remotecommid", dreq.remote_id.value()},
                 {"infiniband.cm.req.remoteqpneecn", dreq.remote_qpn.value()}});
    CmDrep drep{.local_id = number<CommId>(32), .remote_id = number<CommId>(32)};
    fill(drep.private_data);
    write(drep, {{"infiniband.cm.drsp.localcommid", drep.local_id.value()},
                 {"infiniband.cm.drsp.remotecommid", drep.remote_id.value()}});
  }

  void write(const CmBody& body, Fields fields) {
    const CmMessage message{
        .transaction = random_.next(), .attribute_modifier = draw<std::uint32_t>(32), .body = body};
    fields.insert(fields.end(),
                  {{"infiniband.mad.transactionid", message.transaction},
                   {"infiniband.mad.attributeid", static_cast<std::uint64_t>(message.attribute())},
                   {"infiniband.mad.attributemodifier", message.attribute_modifier},
                   {"infiniband.mad.mgmtclass", 7},
                   {"infiniband.mad.classversion", 2},
                   {"infiniband.mad.method", 3}});
    std::array<std::uint8_t, kMadSize> mad;
    serialize_cm(message, mad);
    Packet packet = test::packet_of(Opcode::ud_send_only);
    packet.bth.destination = packet.deth.source = kGsiQpn;
    packet.deth.qkey = kGsiQKey;
    const Path path{.source = IpAddress::from_v4(0x0A000001),
                    .destination = IpAddress::from_v4(0x0A000002),
                    .source_port = 0xC000};
    std::string line;
    for (const auto& [name, value] : fields) line += fmt::format("{}={} ", name, value);
    std::cout << line << "hex=" << test::to_hex(test::build_frame(path, {}, packet, mad)) << '\n';
  }

  net::Random random_;
};

}  // namespace

int main() {
  for (int round = 0; round < kRounds; ++round) {
    Writer(static_cast<std::uint64_t>(round)).write_all();
  }
  return 0;
}
