#include "tests/unit/emulator/cm_fields.h"

namespace urxe::test {
namespace {

using Fields = std::vector<MadField>;
using enum FieldKind;

Fields header_fields() {
  return {{"base version", 0, 0, 8},  {"class", 1, 0, 8},
          {"class version", 2, 0, 8}, {"method", 3, 0, 8},
          {"status", 4, 0, 16},       {"class specific", 6, 0, 16},
          {"transaction", 8, 0, 64},  {"attribute", 16, 0, 16},
          {"reserved", 18, 0, 16},    {"attribute modifier", 20, 0, 32}};
}

Fields req_fields() {
  return {kFirstId,
          {"vendor id", 29, 0, 24},
          {"service", 32, 0, 64},
          {"CA GUID", 40, 0, 64},
          {"Q_Key", 52, 0, 32},
          {"QPN", 56, 0, 24, qpn},
          {"responder resources", 59, 0, 8},
          {"EECN", 60, 0, 24},
          {"initiator depth", 63, 0, 8},
          {"remote EECN", 64, 0, 24},
          {"remote response timeout", 67, 0, 5},
          {"transport", 67, 5, 2, choice},
          {"flow control", 67, 7, 1, choice},
          {"starting PSN", 68, 0, 24},
          {"local response timeout", 71, 0, 5},
          {"retry count", 71, 5, 3, choice},
          {"P_Key", 72, 0, 16},
          {"path MTU", 74, 0, 4, choice},
          {"RDC exists", 74, 4, 1, choice},
          {"RNR retry count", 74, 5, 3, choice},
          {"max CM retries", 75, 0, 4},
          {"SRQ", 75, 4, 1, choice},
          {"extended transport", 75, 5, 3, choice},
          {"primary local LID", 76, 0, 16},
          {"primary remote LID", 78, 0, 16},
          {"primary local GID", 80, 0, 128, address},
          {"primary remote GID", 96, 0, 128, address},
          {"primary flow label", 112, 0, 20},
          {"primary rate", 115, 2, 6},
          {"primary traffic class", 116, 0, 8},
          {"primary hop limit", 117, 0, 8},
          {"primary SL", 118, 0, 4},
          {"primary subnet local", 118, 4, 1, choice},
          {"primary ACK timeout", 119, 0, 5},
          {"alternate local LID", 120, 0, 16},
          {"alternate local GID", 124, 0, 128, address},
          {"alternate remote GID", 140, 0, 128, address},
          {"IP CM version", 164, 0, 8},
          {"IP version", 165, 0, 4, choice},
          {"IP source port", 166, 0, 16},
          {"IP source", 180, 0, 32},
          {"IP destination", 196, 0, 32}};
}

Fields rep_fields() {
  return {kFirstId,
          kSecondId,
          {"Q_Key", 32, 0, 32},
          {"QPN", 36, 0, 24, qpn},
          {"EECN", 40, 0, 24},
          {"starting PSN", 44, 0, 24},
          {"responder resources", 48, 0, 8},
          {"initiator depth", 49, 0, 8},
          {"ACK delay", 50, 0, 5},
          {"failover accepted", 50, 5, 2, choice},
          {"flow control", 50, 7, 1, choice},
          {"RNR retry count", 51, 0, 3, choice},
          {"SRQ", 51, 3, 1, choice},
          {"CA GUID", 52, 0, 64},
          {"private data", 60, 0, 64}};
}

Fields mra_fields() {
  return {kFirstId,
          kSecondId,
          {"message", 32, 0, 2, choice},
          {"service timeout", 33, 0, 5},
          {"private data", 34, 0, 64}};
}

Fields rej_fields() {
  return {kFirstId,
          kSecondId,
          {"message", 32, 0, 2, choice},
          {"info length", 33, 0, 7},
          {"reason", 34, 0, 16, reason},
          {"info", 36, 0, 64},
          {"private data", 108, 0, 64}};
}

Fields sidr_rep_fields() {
  return {{"request id", 24, 0, 32, id}, {"status", 28, 0, 8},        {"info length", 29, 0, 8},
          {"QPN", 32, 0, 24, qpn},       {"service", 36, 0, 64},      {"Q_Key", 44, 0, 32},
          {"info", 48, 0, 64},           {"private data", 120, 0, 64}};
}

Fields sidr_req_fields() {
  return {{"request id", 24, 0, 32, id},    {"P_Key", 28, 0, 16},
          {"service", 32, 0, 64},           {"IP CM version", 40, 0, 8},
          {"IP version", 41, 0, 4, choice}, {"IP source port", 42, 0, 16},
          {"IP source", 56, 0, 32},         {"IP destination", 72, 0, 32}};
}

Fields body_fields(wire::CmAttribute attribute) {
  switch (attribute) {
    case wire::CmAttribute::req:
      return req_fields();
    case wire::CmAttribute::rep:
      return rep_fields();
    case wire::CmAttribute::mra:
      return mra_fields();
    case wire::CmAttribute::rej:
      return rej_fields();
    case wire::CmAttribute::dreq:
      return {kFirstId, kSecondId, {"QPN", 32, 0, 24, qpn}, {"private data", 36, 0, 64}};
    case wire::CmAttribute::sidr_req:
      return sidr_req_fields();
    case wire::CmAttribute::sidr_rep:
      return sidr_rep_fields();
    default:
      return {kFirstId, kSecondId, {"private data", 32, 0, 64}};
  }
}

}  // namespace

std::vector<MadField> fields_of(wire::CmAttribute attribute) {
  Fields fields = header_fields();
  const Fields body = body_fields(attribute);
  fields.insert(fields.end(), body.begin(), body.end());
  return fields;
}

}  // namespace urxe::test
