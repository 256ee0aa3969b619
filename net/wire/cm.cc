#include "net/wire/cm.h"

#include <algorithm>

namespace urxe::wire {
namespace {

constexpr std::uint8_t kClassVersion = 2;
constexpr std::uint8_t kMethodSend = 3;
constexpr std::uint8_t kCmaVersion = 0;

// `width` bits of a byte, the first of them `at` bits below the most significant one, as the tables
// of IBTA 12 count.
constexpr std::uint8_t bits(std::uint8_t byte, unsigned at, unsigned width) {
  return static_cast<std::uint8_t>(byte >> (8 - at - width) & ((1U << width) - 1));
}
constexpr std::uint8_t at_bits(std::uint8_t value, unsigned at, unsigned width) {
  return static_cast<std::uint8_t>((value & ((1U << width) - 1)) << (8 - at - width));
}
constexpr std::uint8_t both(std::uint8_t a, std::uint8_t b) {
  return static_cast<std::uint8_t>(a | b);
}

std::uint32_t load24(Bytes bytes, std::size_t at) { return load_be<std::uint32_t, 3>(bytes, at); }
void store24(MutableBytes bytes, std::size_t at, std::uint32_t value) {
  store_be<std::uint32_t, 3>(bytes, at, value);
}
CommId load_id(Bytes bytes, std::size_t at) { return CommId{load_be<std::uint32_t>(bytes, at)}; }

template <std::size_t Size>
void load_array(Bytes bytes, std::size_t at, std::array<std::uint8_t, Size>& array) {
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), Size, array.begin());
}
template <std::size_t Size>
void store_array(MutableBytes bytes, std::size_t at, const std::array<std::uint8_t, Size>& array) {
  std::copy(array.begin(), array.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
}

bool is_zero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace

std::string_view to_string(CmAttribute attribute) {
  static constexpr std::array<std::string_view, kCmAttributes> kNames{
      "REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"};
  const auto index =
      static_cast<std::size_t>(attribute) - static_cast<std::size_t>(CmAttribute::req);
  return index < kNames.size() ? kNames[index] : "?";
}

// --- REQ

CmPath CmPath::parse(Bytes bytes) {
  return {
      .local_lid = load_be<std::uint16_t>(bytes, 0),
      .remote_lid = load_be<std::uint16_t>(bytes, 2),
      .local_gid = IpAddress::from_bytes(bytes.subspan(4, IpAddress::kSize)),
      .remote_gid = IpAddress::from_bytes(bytes.subspan(20, IpAddress::kSize)),
      .flow_label = load24(bytes, 36) >> 4,
      .packet_rate = bits(bytes[39], 2, 6),
      .traffic_class = bytes[40],
      .hop_limit = bytes[41],
      .service_level = bits(bytes[42], 0, 4),
      .subnet_local = bits(bytes[42], 4, 1) != 0,
      .ack_timeout = bits(bytes[43], 0, 5),
  };
}

void CmPath::serialize(MutableBytes bytes) const {
  store_be(bytes, 0, local_lid);
  store_be(bytes, 2, remote_lid);
  store_array(bytes, 4, local_gid.bytes());
  store_array(bytes, 20, remote_gid.bytes());
  store24(bytes, 36, flow_label << 4);
  bytes[39] = at_bits(packet_rate, 2, 6);
  bytes[40] = traffic_class;
  bytes[41] = hop_limit;
  bytes[42] = both(at_bits(service_level, 0, 4), at_bits(subnet_local ? 1 : 0, 4, 1));
  bytes[43] = at_bits(ack_timeout, 0, 5);
}

CmReq CmReq::parse(Bytes data) {
  CmReq req;
  req.local_id = load_id(data, 0);
  req.vendor_id = load24(data, 5);
  req.service = {load_be<std::uint64_t>(data, 8)};
  req.local_guid = load_be<std::uint64_t>(data, 16);
  req.local_qkey = QKey{load_be<std::uint32_t>(data, 28)};
  req.local_qpn = Qpn{load24(data, 32)};
  req.responder_resources = data[35];
  req.initiator_depth = data[39];
  req.remote_response_timeout = bits(data[43], 0, 5);
  req.transport = static_cast<CmTransport>(bits(data[43], 5, 2));
  req.flow_control = bits(data[43], 7, 1) != 0;
  req.starting_psn = Psn{load24(data, 44)};
  req.local_response_timeout = bits(data[47], 0, 5);
  req.retry_count = bits(data[47], 5, 3);
  req.pkey = PKey{load_be<std::uint16_t>(data, 48)};
  req.path_mtu = bits(data[50], 0, 4);
  req.rnr_retry_count = bits(data[50], 5, 3);
  req.max_cm_retries = bits(data[51], 0, 4);
  req.srq = bits(data[51], 4, 1) != 0;
  req.extended_transport = bits(data[51], 5, 3);
  req.primary = CmPath::parse(data.subspan(52, kCmPathSize));
  req.has_alternate = !is_zero(data.subspan(96, kCmPathSize));
  load_array(data, 140, req.private_data);
  return req;
}

void CmReq::serialize(MutableBytes data) const {
  store_be(data, 0, local_id.value());
  store24(data, 5, vendor_id);
  store_be(data, 8, service.value);
  store_be(data, 16, local_guid);
  store_be(data, 28, local_qkey.value());
  store24(data, 32, local_qpn.value());
  data[35] = responder_resources;
  data[39] = initiator_depth;
  data[43] = both(at_bits(remote_response_timeout, 0, 5),
                  both(at_bits(static_cast<std::uint8_t>(transport), 5, 2),
                       at_bits(flow_control ? 1 : 0, 7, 1)));
  store24(data, 44, starting_psn.value());
  data[47] = both(at_bits(local_response_timeout, 0, 5), at_bits(retry_count, 5, 3));
  store_be(data, 48, pkey.value());
  data[50] = both(at_bits(path_mtu, 0, 4), at_bits(rnr_retry_count, 5, 3));
  data[51] = both(at_bits(max_cm_retries, 0, 4),
                  both(at_bits(srq ? 1 : 0, 4, 1), at_bits(extended_transport, 5, 3)));
  primary.serialize(data.subspan(52, kCmPathSize));
  store_array(data, 140, private_data);
}

// --- answers to a REQ

CmMra CmMra::parse(Bytes data) {
  CmMra mra;
  mra.local_id = load_id(data, 0);
  mra.remote_id = load_id(data, 4);
  mra.subject = static_cast<CmSubject>(bits(data[8], 0, 2));
  mra.service_timeout = bits(data[9], 0, 5);
  load_array(data, 10, mra.private_data);
  return mra;
}

void CmMra::serialize(MutableBytes data) const {
  store_be(data, 0, local_id.value());
  store_be(data, 4, remote_id.value());
  data[8] = at_bits(static_cast<std::uint8_t>(subject), 0, 2);
  data[9] = at_bits(service_timeout, 0, 5);
  store_array(data, 10, private_data);
}

CmRej CmRej::parse(Bytes data) {
  CmRej rej;
  rej.local_id = load_id(data, 0);
  rej.remote_id = load_id(data, 4);
  rej.subject = static_cast<CmSubject>(bits(data[8], 0, 2));
  rej.info_length = bits(data[9], 0, 7);
  rej.reason = static_cast<RejectReason>(load_be<std::uint16_t>(data, 10));
  load_array(data, 12, rej.info);
  load_array(data, 84, rej.private_data);
  return rej;
}

void CmRej::serialize(MutableBytes data) const {
  store_be(data, 0, local_id.value());
  store_be(data, 4, remote_id.value());
  data[8] = at_bits(static_cast<std::uint8_t>(subject), 0, 2);
  data[9] = at_bits(info_length, 0, 7);
  store_be(data, 10, static_cast<std::uint16_t>(reason));
  store_array(data, 12, info);
  store_array(data, 84, private_data);
}

CmRep CmRep::parse(Bytes data) {
  CmRep rep;
  rep.local_id = load_id(data, 0);
  rep.remote_id = load_id(data, 4);
  rep.local_qkey = QKey{load_be<std::uint32_t>(data, 8)};
  rep.local_qpn = Qpn{load24(data, 12)};
  rep.vendor_id = std::uint32_t{data[15]} << 16 | std::uint32_t{data[19]} << 8 | data[23];
  rep.starting_psn = Psn{load24(data, 20)};
  rep.responder_resources = data[24];
  rep.initiator_depth = data[25];
  rep.target_ack_delay = bits(data[26], 0, 5);
  rep.failover_accepted = bits(data[26], 5, 2);
  rep.flow_control = bits(data[26], 7, 1) != 0;
  rep.rnr_retry_count = bits(data[27], 0, 3);
  rep.srq = bits(data[27], 3, 1) != 0;
  rep.local_guid = load_be<std::uint64_t>(data, 28);
  load_array(data, 36, rep.private_data);
  return rep;
}

void CmRep::serialize(MutableBytes data) const {
  store_be(data, 0, local_id.value());
  store_be(data, 4, remote_id.value());
  store_be(data, 8, local_qkey.value());
  store24(data, 12, local_qpn.value());
  data[15] = static_cast<std::uint8_t>(vendor_id >> 16);
  data[19] = static_cast<std::uint8_t>(vendor_id >> 8);
  store24(data, 20, starting_psn.value());
  data[23] = static_cast<std::uint8_t>(vendor_id);
  data[24] = responder_resources;
  data[25] = initiator_depth;
  data[26] = both(at_bits(target_ack_delay, 0, 5),
                  both(at_bits(failover_accepted, 5, 2), at_bits(flow_control ? 1 : 0, 7, 1)));
  data[27] = both(at_bits(rnr_retry_count, 0, 3), at_bits(srq ? 1 : 0, 3, 1));
  store_be(data, 28, local_guid);
  store_array(data, 36, private_data);
}

CmRtu CmRtu::parse(Bytes data) {
  CmRtu rtu;
  rtu.local_id = load_id(data, 0);
  rtu.remote_id = load_id(data, 4);
  load_array(data, 8, rtu.private_data);
  return rtu;
}

void CmRtu::serialize(MutableBytes data) const {
  store_be(data, 0, local_id.value());
  store_be(data, 4, remote_id.value());
  store_array(data, 8, private_data);
}

// --- release

CmDreq CmDreq::parse(Bytes data) {
  CmDreq dreq;
  dreq.local_id = load_id(data, 0);
  dreq.remote_id = load_id(data, 4);
  dreq.remote_qpn = Qpn{load24(data, 8)};
  load_array(data, 12, dreq.private_data);
  return dreq;
}

void CmDreq::serialize(MutableBytes data) const {
  store_be(data, 0, local_id.value());
  store_be(data, 4, remote_id.value());
  store24(data, 8, remote_qpn.value());
  store_array(data, 12, private_data);
}

CmDrep CmDrep::parse(Bytes data) {
  CmDrep drep;
  drep.local_id = load_id(data, 0);
  drep.remote_id = load_id(data, 4);
  load_array(data, 8, drep.private_data);
  return drep;
}

void CmDrep::serialize(MutableBytes data) const {
  store_be(data, 0, local_id.value());
  store_be(data, 4, remote_id.value());
  store_array(data, 8, private_data);
}

// --- service id resolution

CmSidrReq CmSidrReq::parse(Bytes data) {
  CmSidrReq req;
  req.request_id = load_id(data, 0);
  req.pkey = PKey{load_be<std::uint16_t>(data, 4)};
  req.service = {load_be<std::uint64_t>(data, 8)};
  load_array(data, 16, req.private_data);
  return req;
}

void CmSidrReq::serialize(MutableBytes data) const {
  store_be(data, 0, request_id.value());
  store_be(data, 4, pkey.value());
  store_be(data, 8, service.value);
  store_array(data, 16, private_data);
}

CmSidrRep CmSidrRep::parse(Bytes data) {
  CmSidrRep rep;
  rep.request_id = load_id(data, 0);
  rep.status = static_cast<SidrStatus>(data[4]);
  rep.info_length = data[5];
  rep.qpn = Qpn{load24(data, 8)};
  rep.service = {load_be<std::uint64_t>(data, 12)};
  rep.qkey = QKey{load_be<std::uint32_t>(data, 20)};
  load_array(data, 24, rep.info);
  load_array(data, 96, rep.private_data);
  return rep;
}

void CmSidrRep::serialize(MutableBytes data) const {
  store_be(data, 0, request_id.value());
  data[4] = static_cast<std::uint8_t>(status);
  data[5] = info_length;
  store24(data, 8, qpn.value());
  store_be(data, 12, service.value);
  store_be(data, 20, qkey.value());
  store_array(data, 24, info);
  store_array(data, 96, private_data);
}

// --- any message

CmAttribute CmMessage::attribute() const {
  return std::visit([](const auto& message) { return message.kAttribute; }, body);
}

namespace {

// Nothing for messages about alternate paths.
std::optional<CmBody> parse_body(CmAttribute attribute, Bytes data) {
  switch (attribute) {
    case CmAttribute::req:
      return CmReq::parse(data);
    case CmAttribute::mra:
      return CmMra::parse(data);
    case CmAttribute::rej:
      return CmRej::parse(data);
    case CmAttribute::rep:
      return CmRep::parse(data);
    case CmAttribute::rtu:
      return CmRtu::parse(data);
    case CmAttribute::dreq:
      return CmDreq::parse(data);
    case CmAttribute::drep:
      return CmDrep::parse(data);
    case CmAttribute::sidr_req:
      return CmSidrReq::parse(data);
    case CmAttribute::sidr_rep:
      return CmSidrRep::parse(data);
    case CmAttribute::lap:
    case CmAttribute::apr:
      break;
  }
  return std::nullopt;
}

}  // namespace

tl::expected<CmMessage, CmParseError> parse_cm(Bytes mad) {
  if (mad.size() != kMadSize) return tl::unexpected(CmParseError::wrong_size);
  const MadHeader header = MadHeader::parse(mad);
  if (header.base_version != 1 || header.management_class != kCommunicationManagement ||
      header.class_version != kClassVersion || header.method != kMethodSend) {
    return tl::unexpected(CmParseError::not_cm);
  }
  const auto body = parse_body(static_cast<CmAttribute>(header.attribute),
                               mad.subspan(kMadHeaderSize, kMadDataSize));
  if (!body) return tl::unexpected(CmParseError::unknown_attribute);
  return CmMessage{.transaction = header.transaction,
                   .attribute_modifier = header.attribute_modifier,
                   .body = *body};
}

void serialize_cm(const CmMessage& message, MutableBytes mad) {
  std::fill_n(mad.begin(), kMadSize, std::uint8_t{0});
  MadHeader{.management_class = kCommunicationManagement,
            .class_version = kClassVersion,
            .method = kMethodSend,
            .transaction = message.transaction,
            .attribute = static_cast<std::uint16_t>(message.attribute()),
            .attribute_modifier = message.attribute_modifier}
      .serialize(mad);
  const MutableBytes data = mad.subspan(kMadHeaderSize, kMadDataSize);
  std::visit([&](const auto& body) { body.serialize(data); }, message.body);
}

// --- IP addresses in private data

std::optional<IpCmHeader> IpCmHeader::parse(Bytes bytes) {
  if (bytes.size() < kIpCmHeaderSize || bytes[0] != kCmaVersion) return std::nullopt;
  const auto address = [&](std::size_t at) {
    return bits(bytes[1], 0, 4) == 4 ? IpAddress::from_v4(load_be<std::uint32_t>(bytes, at + 12))
                                     : IpAddress::from_bytes(bytes.subspan(at, IpAddress::kSize));
  };
  if (bits(bytes[1], 0, 4) != 4 && bits(bytes[1], 0, 4) != 6) return std::nullopt;
  return IpCmHeader{.source_port = load_be<std::uint16_t>(bytes, 2),
                    .source = address(4),
                    .destination = address(20)};
}

void IpCmHeader::serialize(MutableBytes bytes) const {
  std::fill_n(bytes.begin(), kIpCmHeaderSize, std::uint8_t{0});
  bytes[0] = kCmaVersion;
  bytes[1] = at_bits(destination.is_v4() ? 4 : 6, 0, 4);
  store_be(bytes, 2, source_port);
  if (destination.is_v4()) {
    store_be(bytes, 16, source.v4());
    store_be(bytes, 32, destination.v4());
  } else {
    store_array(bytes, 4, source.bytes());
    store_array(bytes, 20, destination.bytes());
  }
}

bool has_ip_header(ServiceId service) {
  switch (static_cast<PortSpace>(service.value >> 16)) {
    case PortSpace::ipoib:
    case PortSpace::tcp:
    case PortSpace::udp:
    case PortSpace::ib:
      return service.value >> 32 == 0;
  }
  return false;
}

}  // namespace urxe::wire
