// The messages of communication management (IBTA 12.6, 12.11): how a connection is made and ended,
// and how a UD service is found. Each is one MAD on queue pair 1.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include <tl/expected.hpp>

#include "net/wire/address.h"
#include "net/wire/bytes.h"
#include "net/wire/mad.h"
#include "net/wire/numbers.h"

namespace urxe::wire {

// One end's name of a communication. 0 is nobody's.
using CommId = Number<struct CommIdTag, std::uint32_t, 32>;
using Guid = std::uint64_t;

// What a listener listens on. For IP port spaces it holds the port (IBTA annex A11).
struct ServiceId {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(const ServiceId&, const ServiceId&) = default;
};

// IBTA 12.11, table 99; the order is that of cm_tx_msgs under sysfs.
enum class CmAttribute : std::uint16_t {
  req = 0x10,
  mra = 0x11,
  rej = 0x12,
  rep = 0x13,
  rtu = 0x14,
  dreq = 0x15,
  drep = 0x16,
  sidr_req = 0x17,
  sidr_rep = 0x18,
  lap = 0x19,  // alternate paths, which RoCE does not have: neither built nor taken
  apr = 0x1A,
};
inline constexpr std::size_t kCmAttributes = 11;
[[nodiscard]] std::string_view to_string(CmAttribute attribute);

// Which message a MRA or REJ is about.
enum class CmSubject : std::uint8_t { req = 0, rep = 1, other = 2 };

// Transport service type of a REQ.
enum class CmTransport : std::uint8_t { rc = 0, uc = 1, rd = 2, extended = 3 };

// Why a REJ (IBTA 12.6.7.2, table 109).
enum class RejectReason : std::uint16_t {
  no_qp = 1,
  no_eec = 2,
  no_resources = 3,
  timeout = 4,
  unsupported = 5,
  invalid_comm_id = 6,
  invalid_comm_instance = 7,
  invalid_service_id = 8,
  invalid_transport_type = 9,
  stale_connection = 10,
  invalid_gid = 12,
  invalid_mtu = 26,
  consumer_defined = 28,
  invalid_class_version = 31,
  vendor_option_not_supported = 35,
};

// What a SIDR_REP says (IBTA 12.11.1, table 121).
enum class SidrStatus : std::uint8_t {
  success = 0,
  unsupported = 1,
  rejected = 2,
  no_qp = 3,
  redirected = 4,
  unsupported_version = 5,
};

// How both ends reach each other, as the sender of a REQ sees it.
//
//  +-------------------------------+-------------------------------+
//  |           Local LID           |          Remote LID           |
//  +-------------------------------+-------------------------------+
//  |                      Local GID (128 bits)                     |
//  +---------------------------------------------------------------+
//  |                     Remote GID (128 bits)                     |
//  +---------------------------------------+-----------+-----------+
//  |            Flow label (20)            |resv (6)   | Rate (6)  |
//  +---------------+---------------+-------+-+-----+---+-----+-----+
//  | Traffic class |   Hop limit   | SL (4)|S| resv|ACK TO (5)|resv|
//  +---------------+---------------+-------+-+-----+----------+----+
struct CmPath {
  std::uint16_t local_lid = 0;
  std::uint16_t remote_lid = 0;
  IpAddress local_gid;
  IpAddress remote_gid;
  std::uint32_t flow_label = 0;
  std::uint8_t packet_rate = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t service_level = 0;
  bool subnet_local = false;
  std::uint8_t ack_timeout = 0;  // 4.096 us * 2^n

  static CmPath parse(Bytes bytes);
  void serialize(MutableBytes bytes) const;
  friend bool operator==(const CmPath&, const CmPath&) = default;
};
inline constexpr std::size_t kCmPathSize = 44;

// Request for communication. Of the alternate path only whether there is one.
struct CmReq {
  static constexpr CmAttribute kAttribute = CmAttribute::req;
  CommId local_id;
  std::uint32_t vendor_id = 0;  // 24 bits
  ServiceId service;
  Guid local_guid = 0;
  QKey local_qkey;
  Qpn local_qpn;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t remote_response_timeout = 0;  // 4.096 us * 2^n, 5 bits
  CmTransport transport = CmTransport::rc;
  bool flow_control = false;
  Psn starting_psn;
  std::uint8_t local_response_timeout = 0;
  std::uint8_t retry_count = 0;  // 3 bits
  PKey pkey = kDefaultPKey;
  std::uint8_t path_mtu = 0;         // ib_mtu
  std::uint8_t rnr_retry_count = 0;  // 3 bits
  std::uint8_t max_cm_retries = 0;   // 4 bits
  bool srq = false;
  std::uint8_t extended_transport = 0;  // 3 bits
  CmPath primary;
  bool has_alternate = false;
  std::array<std::uint8_t, 92> private_data{};

  static CmReq parse(Bytes data);
  void serialize(MutableBytes data) const;
  friend bool operator==(const CmReq&, const CmReq&) = default;
};

// Message receipt acknowledgement: "wait, I am busy".
struct CmMra {
  static constexpr CmAttribute kAttribute = CmAttribute::mra;
  CommId local_id;
  CommId remote_id;
  CmSubject subject = CmSubject::req;
  std::uint8_t service_timeout = 0;  // 4.096 us * 2^n, 5 bits
  std::array<std::uint8_t, 222> private_data{};

  static CmMra parse(Bytes data);
  void serialize(MutableBytes data) const;
  friend bool operator==(const CmMra&, const CmMra&) = default;
};

struct CmRej {
  static constexpr CmAttribute kAttribute = CmAttribute::rej;
  CommId local_id;
  CommId remote_id;
  CmSubject subject = CmSubject::req;
  std::uint8_t info_length = 0;  // of info, 7 bits
  RejectReason reason = RejectReason::consumer_defined;
  std::array<std::uint8_t, 72> info{};
  std::array<std::uint8_t, 148> private_data{};

  static CmRej parse(Bytes data);
  void serialize(MutableBytes data) const;
  friend bool operator==(const CmRej&, const CmRej&) = default;
};

struct CmRep {
  static constexpr CmAttribute kAttribute = CmAttribute::rep;
  CommId local_id;
  CommId remote_id;
  QKey local_qkey;
  Qpn local_qpn;
  std::uint32_t vendor_id = 0;  // 24 bits, one byte in each of three words
  Psn starting_psn;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t target_ack_delay = 0;   // 5 bits
  std::uint8_t failover_accepted = 0;  // 2 bits
  bool flow_control = false;
  std::uint8_t rnr_retry_count = 0;  // 3 bits
  bool srq = false;
  Guid local_guid = 0;
  std::array<std::uint8_t, 196> private_data{};

  static CmRep parse(Bytes data);
  void serialize(MutableBytes data) const;
  friend bool operator==(const CmRep&, const CmRep&) = default;
};

// Ready to use.
struct CmRtu {
  static constexpr CmAttribute kAttribute = CmAttribute::rtu;
  CommId local_id;
  CommId remote_id;
  std::array<std::uint8_t, 224> private_data{};

  static CmRtu parse(Bytes data);
  void serialize(MutableBytes data) const;
  friend bool operator==(const CmRtu&, const CmRtu&) = default;
};

// Request for communication release.
struct CmDreq {
  static constexpr CmAttribute kAttribute = CmAttribute::dreq;
  CommId local_id;
  CommId remote_id;
  Qpn remote_qpn;
  std::array<std::uint8_t, 220> private_data{};

  static CmDreq parse(Bytes data);
  void serialize(MutableBytes data) const;
  friend bool operator==(const CmDreq&, const CmDreq&) = default;
};

struct CmDrep {
  static constexpr CmAttribute kAttribute = CmAttribute::drep;
  CommId local_id;
  CommId remote_id;
  std::array<std::uint8_t, 224> private_data{};

  static CmDrep parse(Bytes data);
  void serialize(MutableBytes data) const;
  friend bool operator==(const CmDrep&, const CmDrep&) = default;
};

// Service id resolution request: which queue pair serves this?
struct CmSidrReq {
  static constexpr CmAttribute kAttribute = CmAttribute::sidr_req;
  CommId request_id;
  PKey pkey = kDefaultPKey;
  ServiceId service;
  std::array<std::uint8_t, 216> private_data{};

  static CmSidrReq parse(Bytes data);
  void serialize(MutableBytes data) const;
  friend bool operator==(const CmSidrReq&, const CmSidrReq&) = default;
};

struct CmSidrRep {
  static constexpr CmAttribute kAttribute = CmAttribute::sidr_rep;
  CommId request_id;
  SidrStatus status = SidrStatus::success;
  std::uint8_t info_length = 0;
  Qpn qpn;
  ServiceId service;
  QKey qkey;
  std::array<std::uint8_t, 72> info{};
  std::array<std::uint8_t, 136> private_data{};

  static CmSidrRep parse(Bytes data);
  void serialize(MutableBytes data) const;
  friend bool operator==(const CmSidrRep&, const CmSidrRep&) = default;
};

using CmBody =
    std::variant<CmReq, CmMra, CmRej, CmRep, CmRtu, CmDreq, CmDrep, CmSidrReq, CmSidrRep>;

struct CmMessage {
  std::uint64_t transaction = 0;
  std::uint32_t attribute_modifier = 0;  // of REQ, REP, SIDR_REP: enhanced connection establishment
  CmBody body;

  [[nodiscard]] CmAttribute attribute() const;
  friend bool operator==(const CmMessage&, const CmMessage&) = default;
};

enum class CmParseError : std::uint8_t {
  wrong_size,         // less than a MAD, or more
  not_cm,             // another class, version or method
  unknown_attribute,  // no message that there is, or one about alternate paths
};

[[nodiscard]] tl::expected<CmMessage, CmParseError> parse_cm(Bytes mad);
// `mad` has kMadSize bytes.
void serialize_cm(const CmMessage& message, MutableBytes mad);

// The first bytes of private data in a REQ or SIDR_REQ for an IP port space (IBTA annex A11.6): who
// asks whom, as the programs name each other.
//
//  +---------------+-------+-------+-------------------------------+
//  | CMA version 0 |IP ver.|resv   |          Source port          |
//  +---------------+-------+-------+-------------------------------+
//  |                  Source address (128 bits)                    |
//  +---------------------------------------------------------------+
//  |                Destination address (128 bits)                 |
//  +---------------------------------------------------------------+
struct IpCmHeader {
  std::uint16_t source_port = 0;
  IpAddress source;
  IpAddress destination;

  // Nothing, if it is of another version, or mixes IPv4 and IPv6.
  static std::optional<IpCmHeader> parse(Bytes bytes);
  void serialize(MutableBytes bytes) const;
  friend bool operator==(const IpCmHeader&, const IpCmHeader&) = default;
};
inline constexpr std::size_t kIpCmHeaderSize = 36;

// The port spaces of IBTA annex A11 and of rdma_cm: the upper part of a service id.
enum class PortSpace : std::uint16_t { ipoib = 0x0002, tcp = 0x0106, udp = 0x0111, ib = 0x013F };

[[nodiscard]] constexpr ServiceId service_id(PortSpace space, std::uint16_t port) {
  return {static_cast<std::uint64_t>(space) << 16 | port};
}
// Whether the private data of requests to this service begin with an IpCmHeader.
[[nodiscard]] bool has_ip_header(ServiceId service);

}  // namespace urxe::wire
