#include "net/wire/cm.h"

#include <algorithm>
#include <array>
#include <vector>

#include <catch2/catch.hpp>

namespace urxe::wire {
namespace {

template <typename Array>
void fill(Array& array, std::uint8_t first) {
  for (auto& byte : array) byte = first++;
}

// A field that is not written leaves the dirt that was in the buffer.
CmMessage there_and_back(const CmMessage& message) {
  std::array<std::uint8_t, kMadSize> mad;
  mad.fill(0xEE);
  serialize_cm(message, mad);
  const auto parsed = parse_cm(mad);
  REQUIRE(parsed);
  return *parsed;
}

template <typename Body>
void check_there_and_back(const Body& body) {
  const CmMessage message{.transaction = 0x0123456789ABCDEF, .attribute_modifier = 7, .body = body};
  CHECK(there_and_back(message) == message);
}

CmReq full_req() {
  CmReq req;
  req.local_id = CommId{0x11223344};
  req.vendor_id = 0xABCDEF;
  req.service = service_id(PortSpace::tcp, 7174);
  req.local_guid = 0x505400FFFE880002;
  req.local_qkey = QKey{0x80010000};
  req.local_qpn = Qpn{0x456789};
  req.responder_resources = 3;
  req.initiator_depth = 4;
  req.remote_response_timeout = 20;
  req.transport = CmTransport::uc;
  req.flow_control = true;
  req.starting_psn = Psn{0xFEDCBA};
  req.local_response_timeout = 21;
  req.retry_count = 5;
  req.path_mtu = 5;
  req.rnr_retry_count = 6;
  req.max_cm_retries = 15;
  req.srq = true;
  req.extended_transport = 1;
  req.primary = {.local_lid = 0xFFFF,
                 .remote_lid = 0xFFFE,
                 .local_gid = IpAddress::from_v4(0x0A580002),
                 .remote_gid = IpAddress::from_v4(0x0A580003),
                 .flow_label = 0xABCDE,
                 .packet_rate = 0x2A,
                 .traffic_class = 0x68,
                 .hop_limit = 64,
                 .service_level = 9,
                 .subnet_local = true,
                 .ack_timeout = 19};
  fill(req.private_data, 1);
  return req;
}

TEST_CASE("a CM message that was written is read the same, every field of it") {
  check_there_and_back(full_req());
  CmMra mra{CommId{1}, CommId{2}, CmSubject::rep, 24, {}};
  fill(mra.private_data, 2);
  check_there_and_back(mra);
  CmRej rej{CommId{3}, CommId{4}, CmSubject::other, 8, RejectReason::stale_connection, {}, {}};
  fill(rej.info, 3);
  fill(rej.private_data, 4);
  check_there_and_back(rej);
  CmRep rep;
  rep.local_id = CommId{5};
  rep.remote_id = CommId{6};
  rep.local_qkey = QKey{0x12345678};
  rep.local_qpn = Qpn{0x112233};
  rep.vendor_id = 0x665544;
  rep.starting_psn = Psn{0x778899};
  rep.responder_resources = 16;
  rep.initiator_depth = 17;
  rep.target_ack_delay = 15;
  rep.failover_accepted = 2;
  rep.flow_control = true;
  rep.rnr_retry_count = 7;
  rep.srq = true;
  rep.local_guid = 0x0102030405060708;
  fill(rep.private_data, 5);
  check_there_and_back(rep);
  CmRtu rtu{CommId{7}, CommId{8}, {}};
  fill(rtu.private_data, 6);
  check_there_and_back(rtu);
  CmDreq dreq{CommId{9}, CommId{10}, Qpn{0xABCDEF}, {}};
  fill(dreq.private_data, 7);
  check_there_and_back(dreq);
  CmDrep drep{CommId{11}, CommId{12}, {}};
  fill(drep.private_data, 8);
  check_there_and_back(drep);
  CmSidrReq sidr_req{CommId{13}, PKey{0x8001}, service_id(PortSpace::udp, 4000), {}};
  fill(sidr_req.private_data, 9);
  check_there_and_back(sidr_req);
  CmSidrRep sidr_rep{.request_id = CommId{14},
                     .status = SidrStatus::redirected,
                     .info_length = 5,
                     .qpn = Qpn{0x998877},
                     .service = service_id(PortSpace::udp, 4001),
                     .qkey = QKey{0x01234567}};
  fill(sidr_rep.info, 10);
  fill(sidr_rep.private_data, 11);
  check_there_and_back(sidr_rep);
}

TEST_CASE("every flag of a REQ has a bit of its own") {
  const CmMessage plain{.body = CmReq{}};
  std::array<std::uint8_t, kMadSize> zero{};
  serialize_cm(plain, zero);
  const auto differing_bits = [&](const CmReq& req) {
    std::array<std::uint8_t, kMadSize> mad{};
    serialize_cm({.body = req}, mad);
    int bits = 0;
    for (std::size_t i = 0; i < mad.size(); ++i) {
      bits += std::popcount(static_cast<std::uint8_t>(mad[i] ^ zero[i]));
    }
    return bits;
  };
  CmReq req;
  req.flow_control = true;
  CHECK(differing_bits(req) == 1);
  req.srq = true;
  CHECK(differing_bits(req) == 2);
  req.primary.subnet_local = true;
  CHECK(differing_bits(req) == 3);
  req.retry_count = 7;
  req.rnr_retry_count = 7;
  CHECK(differing_bits(req) == 9);
  req.local_response_timeout = req.remote_response_timeout = 31;
  CHECK(differing_bits(req) == 19);
}

TEST_CASE("what is no CM message is refused, and told apart") {
  std::array<std::uint8_t, kMadSize> mad{};
  serialize_cm({.body = CmRtu{}}, mad);
  CHECK(parse_cm(Bytes(mad).first(kMadSize - 1)).error() == CmParseError::wrong_size);
  std::array<std::uint8_t, kMadSize + 4> longer{};
  std::copy(mad.begin(), mad.end(), longer.begin());
  CHECK(parse_cm(longer).error() == CmParseError::wrong_size);
  for (const std::size_t at : {0, 1, 2, 3}) {
    auto other = mad;
    other[at] ^= 0x10;
    CHECK(parse_cm(other).error() == CmParseError::not_cm);
  }
  for (const int attribute : {0x0F, 0x19, 0x1A, 0x1B}) {
    auto other = mad;
    other[17] = static_cast<std::uint8_t>(attribute);
    CHECK(parse_cm(other).error() == CmParseError::unknown_attribute);
  }
}

TEST_CASE("an IP header in private data has its addresses where the field has them") {
  const IpCmHeader v4{.source_port = 0x1234,
                      .source = IpAddress::from_v4(0x0A580002),
                      .destination = IpAddress::from_v4(0x0A580003)};
  std::array<std::uint8_t, kIpCmHeaderSize> bytes;
  bytes.fill(0xEE);
  v4.serialize(bytes);
  CHECK(bytes[0] == 0);
  CHECK(bytes[1] == 0x40);
  CHECK(load_be<std::uint32_t>(bytes, 16) == 0x0A580002);
  CHECK(load_be<std::uint32_t>(bytes, 32) == 0x0A580003);
  CHECK(std::count(bytes.begin(), bytes.end(), 0xEE) == 0);
  CHECK(IpCmHeader::parse(bytes) == v4);
  const IpCmHeader v6{.source_port = 1,
                      .source = *IpAddress::parse("2001:db8::1"),
                      .destination = *IpAddress::parse("2001:db8::2")};
  v6.serialize(bytes);
  CHECK(bytes[1] == 0x60);
  CHECK(IpCmHeader::parse(bytes) == v6);
}

TEST_CASE("an IP header of another version, or cut off, is refused") {
  std::array<std::uint8_t, kIpCmHeaderSize> bytes{};
  CHECK_FALSE(IpCmHeader::parse(bytes));  // IP version 0
  bytes[1] = 0x50;
  CHECK_FALSE(IpCmHeader::parse(bytes));
  bytes[1] = 0x40;
  CHECK(IpCmHeader::parse(bytes));
  CHECK_FALSE(IpCmHeader::parse(Bytes(bytes).first(kIpCmHeaderSize - 1)));
  bytes[0] = 1;
  CHECK_FALSE(IpCmHeader::parse(bytes));
}

TEST_CASE("only the IP port spaces carry an IP header") {
  CHECK(has_ip_header(service_id(PortSpace::tcp, 1)));
  CHECK(has_ip_header(service_id(PortSpace::udp, 0xFFFF)));
  CHECK(has_ip_header(service_id(PortSpace::ib, 0)));
  CHECK_FALSE(has_ip_header({0}));
  CHECK_FALSE(has_ip_header({0x0000000101060001}));
  CHECK_FALSE(has_ip_header({0x0000000001070001}));
  CHECK(service_id(PortSpace::tcp, 7174).value == 0x0000000001061C06);
}

}  // namespace
}  // namespace urxe::wire
