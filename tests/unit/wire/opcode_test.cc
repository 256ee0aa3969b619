#include "net/wire/opcode.h"

#include <map>
#include <set>
#include <string>

#include <catch2/catch.hpp>

namespace urxe::wire {
namespace {

// The table of the specification, typed a second time and in another notation. `headers` lists the
// extension headers in their order on the wire; `payload` is the rule.
struct Row {
  unsigned value;
  const char* name;
  const char* headers;
  const char* payload;
};

constexpr Row kRows[] = {
    {0x00, "RC SEND_FIRST", "", "mtu"},
    {0x01, "RC SEND_MIDDLE", "", "mtu"},
    {0x02, "RC SEND_LAST", "", "any"},
    {0x03, "RC SEND_LAST_IMM", "immdt", "any"},
    {0x04, "RC SEND_ONLY", "", "any"},
    {0x05, "RC SEND_ONLY_IMM", "immdt", "any"},
    {0x06, "RC RDMA_WRITE_FIRST", "reth", "mtu"},
    {0x07, "RC RDMA_WRITE_MIDDLE", "", "mtu"},
    {0x08, "RC RDMA_WRITE_LAST", "", "any"},
    {0x09, "RC RDMA_WRITE_LAST_IMM", "immdt", "any"},
    {0x0A, "RC RDMA_WRITE_ONLY", "reth", "any"},
    {0x0B, "RC RDMA_WRITE_ONLY_IMM", "reth immdt", "any"},
    {0x0C, "RC RDMA_READ_REQUEST", "reth", "none"},
    {0x0D, "RC RDMA_READ_RESPONSE_FIRST", "aeth", "mtu"},
    {0x0E, "RC RDMA_READ_RESPONSE_MIDDLE", "", "mtu"},
    {0x0F, "RC RDMA_READ_RESPONSE_LAST", "aeth", "any"},
    {0x10, "RC RDMA_READ_RESPONSE_ONLY", "aeth", "any"},
    {0x11, "RC ACKNOWLEDGE", "aeth", "none"},
    {0x12, "RC ATOMIC_ACKNOWLEDGE", "aeth atomicack", "none"},
    {0x13, "RC COMPARE_SWAP", "atomic", "none"},
    {0x14, "RC FETCH_ADD", "atomic", "none"},
    {0x16, "RC SEND_LAST_INV", "ieth", "any"},
    {0x17, "RC SEND_ONLY_INV", "ieth", "any"},
    {0x1C, "RC FLUSH", "feth reth", "none"},
    {0x1D, "RC ATOMIC_WRITE", "reth", "eight"},
    {0x20, "UC SEND_FIRST", "", "mtu"},
    {0x21, "UC SEND_MIDDLE", "", "mtu"},
    {0x22, "UC SEND_LAST", "", "any"},
    {0x23, "UC SEND_LAST_IMM", "immdt", "any"},
    {0x24, "UC SEND_ONLY", "", "any"},
    {0x25, "UC SEND_ONLY_IMM", "immdt", "any"},
    {0x26, "UC RDMA_WRITE_FIRST", "reth", "mtu"},
    {0x27, "UC RDMA_WRITE_MIDDLE", "", "mtu"},
    {0x28, "UC RDMA_WRITE_LAST", "", "any"},
    {0x29, "UC RDMA_WRITE_LAST_IMM", "immdt", "any"},
    {0x2A, "UC RDMA_WRITE_ONLY", "reth", "any"},
    {0x2B, "UC RDMA_WRITE_ONLY_IMM", "reth immdt", "any"},
    {0x64, "UD SEND_ONLY", "deth", "any"},
    {0x65, "UD SEND_ONLY_IMM", "deth immdt", "any"},
    {0x81, "CNP", "", "sixteen"},
};

const OpcodeInfo& row_of(const Row& row) {
  const OpcodeInfo* found = find_opcode(static_cast<std::uint8_t>(row.value));
  REQUIRE(found != nullptr);
  return *found;
}

std::string headers_of(const OpcodeInfo& info) {
  const std::pair<Header, const char*> kNames[] = {
      {Header::deth, "deth"},         {Header::feth, "feth"}, {Header::reth, "reth"},
      {Header::atomic_eth, "atomic"}, {Header::aeth, "aeth"}, {Header::atomic_ack_eth, "atomicack"},
      {Header::immediate, "immdt"},   {Header::ieth, "ieth"}};
  std::string text;
  for (const auto& [header, name] : kNames) {
    if (info.has(header)) text += (text.empty() ? "" : " ") + std::string(name);
  }
  return text;
}

std::size_t size_of_headers(const std::string& headers) {
  const std::map<std::string, std::size_t> kSizes{
      {"", 0},           {"deth", 8},        {"reth", 16},          {"atomic", 28},
      {"aeth", 4},       {"immdt", 4},       {"ieth", 4},           {"deth immdt", 12},
      {"feth reth", 20}, {"reth immdt", 20}, {"aeth atomicack", 12}};
  return kSizes.at(headers);
}

std::string rule_of(const OpcodeInfo& info) {
  switch (info.payload) {
    case PayloadRule::none:
      return "none";
    case PayloadRule::exact_mtu:
      return "mtu";
    case PayloadRule::up_to_mtu:
      return "any";
    case PayloadRule::eight:
      return "eight";
    case PayloadRule::reserved:
      return "sixteen";
  }
  return "";
}

bool name_has(const Row& row, const std::string& part) {
  return std::string(row.name).find(part) != std::string::npos;
}

TEST_CASE("every opcode of the specification is known by its number, and no other") {
  std::set<unsigned> expected;
  for (const Row& row : kRows) expected.insert(row.value);
  CHECK(expected.size() == all_opcodes().size());
  for (unsigned value = 0; value < 256; ++value) {
    INFO("opcode " << value);
    const OpcodeInfo* found = find_opcode(static_cast<std::uint8_t>(value));
    REQUIRE((found != nullptr) == expected.contains(value));
    if (found != nullptr) CHECK(static_cast<unsigned>(found->opcode) == value);
  }
}

TEST_CASE("every opcode has the name, headers and payload of the specification") {
  for (const Row& row : kRows) {
    INFO(row.name);
    const OpcodeInfo& info = row_of(row);
    CHECK(info.name == row.name);
    CHECK(headers_of(info) == row.headers);
    CHECK(rule_of(info) == row.payload);
    CHECK(info.header_size() == 12 + size_of_headers(row.headers));
    CHECK(info.header_size() <= kMaxHeaderSize);
    CHECK(&wire::info(info.opcode) == &info);
  }
}

TEST_CASE("service and place in the message follow from every opcode's name") {
  const std::map<std::string, Service> kServices{
      {"RC", Service::rc}, {"UC", Service::uc}, {"UD", Service::ud}, {"CN", Service::cnp}};
  for (const Row& row : kRows) {
    INFO(row.name);
    const OpcodeInfo& info = row_of(row);
    CHECK(info.service == kServices.at(std::string(row.name, 2)));
    CHECK(static_cast<unsigned>(info.service) == row.value >> 5);
    const Position position = name_has(row, "_FIRST")    ? Position::first
                              : name_has(row, "_MIDDLE") ? Position::middle
                              : name_has(row, "_LAST")   ? Position::last
                                                         : Position::only;
    CHECK(info.position == position);
    CHECK(info.starts_message() == (position == Position::first || position == Position::only));
    CHECK(info.ends_message() == (position == Position::last || position == Position::only));
  }
}

TEST_CASE("the operation follows from every opcode's name") {
  const std::pair<const char*, Operation> kOperations[] = {
      {"READ_REQUEST", Operation::rdma_read_request},
      {"READ_RESPONSE", Operation::rdma_read_response},
      {"ATOMIC_ACKNOWLEDGE", Operation::atomic_acknowledge},
      {"ATOMIC_WRITE", Operation::atomic_write},
      {"ACKNOWLEDGE", Operation::acknowledge},
      {"RDMA_WRITE", Operation::rdma_write},
      {"SEND", Operation::send},
      {"COMPARE_SWAP", Operation::compare_swap},
      {"FETCH_ADD", Operation::fetch_add},
      {"FLUSH", Operation::flush},
      {"CNP", Operation::congestion_notification}};
  for (const Row& row : kRows) {
    INFO(row.name);
    const auto* found = std::find_if(std::begin(kOperations), std::end(kOperations),
                                     [&](const auto& entry) { return name_has(row, entry.first); });
    REQUIRE(found != std::end(kOperations));
    const OpcodeInfo& info = row_of(row);
    CHECK(info.operation == found->second);
    CHECK(info.is_response() == (name_has(row, "RESPONSE") || name_has(row, "ACKNOWLEDGE")));
    CHECK(info.is_atomic() == (name_has(row, "COMPARE_SWAP") || name_has(row, "FETCH_ADD")));
  }
}

TEST_CASE("data_opcode finds every SEND and WRITE, and nothing else") {
  std::set<Opcode> found;
  for (const Service service : {Service::rc, Service::uc, Service::ud}) {
    for (const Operation operation : {Operation::send, Operation::rdma_write}) {
      for (const Position position :
           {Position::first, Position::middle, Position::last, Position::only}) {
        for (const Trailer trailer : {Trailer::none, Trailer::immediate, Trailer::invalidate}) {
          const auto opcode = data_opcode(service, operation, position, trailer);
          if (!opcode) continue;
          const OpcodeInfo& row = info(*opcode);
          INFO(row.name);
          CHECK(row.service == service);
          CHECK(row.operation == operation);
          CHECK(row.position == position);
          const bool ends = row.ends_message();
          CHECK(row.has(Header::immediate) == (ends && trailer == Trailer::immediate));
          CHECK(row.has(Header::ieth) == (ends && trailer == Trailer::invalidate));
          found.insert(*opcode);
        }
      }
    }
  }
  for (const OpcodeInfo& row : all_opcodes()) {
    const bool is_data = row.operation == Operation::send || row.operation == Operation::rdma_write;
    INFO(row.name);
    CHECK(found.contains(row.opcode) == is_data);
  }
}

TEST_CASE("data_opcode has nothing where the specification has nothing") {
  const auto last = Position::last;
  const auto only = Position::only;
  CHECK_FALSE(data_opcode(Service::uc, Operation::send, only, Trailer::invalidate));
  CHECK_FALSE(data_opcode(Service::rc, Operation::rdma_write, last, Trailer::invalidate));
  CHECK_FALSE(data_opcode(Service::ud, Operation::rdma_write, only, Trailer::none));
  CHECK_FALSE(data_opcode(Service::ud, Operation::send, last, Trailer::none));
  CHECK_FALSE(data_opcode(Service::rd, Operation::send, only, Trailer::none));
  CHECK_FALSE(data_opcode(Service::cnp, Operation::send, only, Trailer::none));
  CHECK_FALSE(data_opcode(Service::xrc, Operation::send, only, Trailer::none));
  CHECK_FALSE(data_opcode(Service::rc, Operation::rdma_read_request, only, Trailer::none));
  CHECK_FALSE(data_opcode(Service::rc, Operation::congestion_notification, only, Trailer::none));
}

TEST_CASE("read responses have an opcode for every place") {
  CHECK(read_response_opcode(Position::first) == Opcode::rc_read_response_first);
  CHECK(read_response_opcode(Position::middle) == Opcode::rc_read_response_middle);
  CHECK(read_response_opcode(Position::last) == Opcode::rc_read_response_last);
  CHECK(read_response_opcode(Position::only) == Opcode::rc_read_response_only);
}

TEST_CASE("a message of n packets is first, middles and last, and of one packet only") {
  CHECK(position_of(0, 1) == Position::only);
  for (std::uint32_t count = 2; count < 6; ++count) {
    for (std::uint32_t index = 0; index < count; ++index) {
      INFO(index << " of " << count);
      CHECK((position_of(index, count) == Position::first) == (index == 0));
      CHECK((position_of(index, count) == Position::last) == (index == count - 1));
      CHECK((position_of(index, count) == Position::middle) == (index > 0 && index < count - 1));
    }
  }
}

}  // namespace
}  // namespace urxe::wire
