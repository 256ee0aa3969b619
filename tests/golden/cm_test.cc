// CM messages of Linux's rdma_cm, as captured: understood, and written back byte by byte.
#include "net/wire/cm.h"

#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "net/wire/frame.h"
#include "net/wire/packet.h"
#include "tests/support/files.h"
#include "tests/support/hex.h"
#include "tests/support/pcap_file.h"

namespace urxe::golden {
namespace {

using wire::CmAttribute;

struct Captured {
  wire::CmMessage message;
  std::vector<std::uint8_t> bytes;
};

std::vector<Captured> messages_of(const std::string& name) {
  const auto frames = test::read_pcap(test::source_dir() / "tests/golden/captures" / name);
  REQUIRE(frames);
  std::vector<Captured> messages;
  for (const auto& ethernet : *frames) {
    const auto frame = wire::parse_frame(test::ethernet_payload(ethernet));
    if (!frame) continue;
    const auto packet = wire::parse_packet(frame->roce);
    if (!packet || packet->bth.destination != wire::kGsiQpn) continue;
    CHECK(packet->deth.qkey == wire::kGsiQKey);
    CHECK(packet->deth.source == wire::kGsiQpn);
    const auto message = wire::parse_cm(packet->payload);
    REQUIRE(message);
    messages.push_back({*message, {packet->payload.begin(), packet->payload.end()}});
  }
  return messages;
}

TEST_CASE("every CM message that Linux sent is written back byte by byte") {
  std::map<CmAttribute, int> seen;
  for (const char* name : {"rping.pcap", "ucmatose.pcap", "udaddy_sidr.pcap", "cm_reject.pcap"}) {
    for (const Captured& captured : messages_of(name)) {
      INFO(name << ": " << wire::to_string(captured.message.attribute()));
      ++seen[captured.message.attribute()];
      std::vector<std::uint8_t> written(wire::kMadSize, 0xEE);
      wire::serialize_cm(captured.message, written);
      CHECK(test::to_hex(written) == test::to_hex(captured.bytes));
    }
  }
  const std::map<CmAttribute, int> kExpected{
      {CmAttribute::req, 4},      {CmAttribute::rep, 3},     {CmAttribute::rtu, 3},
      {CmAttribute::dreq, 3},     {CmAttribute::drep, 3},    {CmAttribute::rej, 1},
      {CmAttribute::sidr_req, 2}, {CmAttribute::sidr_rep, 2}};
  CHECK(seen == kExpected);
}

TEST_CASE("rping's REQ says what rping and Linux put there") {
  const auto messages = messages_of("rping.pcap");
  const auto& req = std::get<wire::CmReq>(messages.at(0).message.body);
  CHECK(req.service == wire::service_id(wire::PortSpace::tcp, 7174));
  CHECK(req.transport == wire::CmTransport::rc);
  CHECK(req.retry_count == 7);
  CHECK(req.remote_response_timeout == 20);
  CHECK(req.local_response_timeout == 20);
  CHECK(req.max_cm_retries == 15);
  CHECK(req.pkey == wire::kDefaultPKey);
  CHECK(req.path_mtu == 5);
  CHECK(req.primary.local_gid == *wire::IpAddress::parse("10.88.0.2"));
  CHECK(req.primary.remote_gid == *wire::IpAddress::parse("10.88.0.3"));
  CHECK_FALSE(req.has_alternate);
  const auto header = wire::IpCmHeader::parse(req.private_data);
  REQUIRE(header);
  // Linux's cma_get_roce_udp_flow_label.
  CHECK(req.primary.flow_label == ((header->source_port * 31U + 7174) & 0xFFFFF));
  CHECK(header->source == *wire::IpAddress::parse("10.88.0.2"));
  CHECK(header->destination == *wire::IpAddress::parse("10.88.0.3"));
  const auto& rep = std::get<wire::CmRep>(messages.at(1).message.body);
  CHECK(rep.remote_id == req.local_id);
  const auto& rtu = std::get<wire::CmRtu>(messages.at(2).message.body);
  CHECK(rtu.remote_id == rep.local_id);
  const auto& dreq = std::get<wire::CmDreq>(messages.at(3).message.body);
  CHECK(dreq.remote_id == rep.local_id);
  CHECK(dreq.remote_qpn == rep.local_qpn);
}

TEST_CASE("Linux rejects a port without listener with reason 8") {
  const auto messages = messages_of("cm_reject.pcap");
  const auto& req = std::get<wire::CmReq>(messages.at(0).message.body);
  const auto& rej = std::get<wire::CmRej>(messages.at(1).message.body);
  CHECK(rej.reason == wire::RejectReason::invalid_service_id);
  CHECK(rej.subject == wire::CmSubject::req);
  CHECK(rej.remote_id == req.local_id);
}

}  // namespace
}  // namespace urxe::golden
