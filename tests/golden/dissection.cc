#include "tests/golden/dissection.h"

#include <cstdio>
#include <sstream>

#include "net/wire/icrc.h"
#include "tests/support/hex.h"

namespace urxe::golden {
namespace {

using wire::Header;

constexpr std::size_t kBytesPerLine = 32;

// Collects fields. `digits` is the width of a number in hexadecimal digits; 0 writes it in decimal.
class Writer {
 public:
  void number(const char* key, std::uint64_t value, int digits = 0) {
    char text[24];
    const auto wide = static_cast<unsigned long long>(value);
    if (digits == 0) {
      std::snprintf(text, sizeof(text), "%llu", wide);
    } else {
      std::snprintf(text, sizeof(text), "0x%0*llx", digits, wide);
    }
    fields_.push_back({key, text});
  }
  void text(const char* key, std::string value) { fields_.push_back({key, std::move(value)}); }
  Dissection take() { return std::move(fields_); }

 private:
  Dissection fields_;
};

void describe_path(Writer& out, const wire::Path& path, wire::Ipv4Fragment fragment) {
  out.text("ip.source", path.source.to_string());
  out.text("ip.destination", path.destination.to_string());
  out.number("ip.traffic_class", path.traffic_class, 2);
  out.number("ip.hop_limit", path.hop_limit);
  if (path.source.is_v4()) {
    out.number("ip.id", fragment.id, 4);
    out.number("ip.dont_fragment", fragment.dont_fragment ? 1 : 0);
  } else {
    out.number("ip.flow_label", path.flow_label, 5);
  }
  out.number("udp.source_port", path.source_port);
}

void describe_bth(Writer& out, const wire::Bth& bth) {
  out.number("bth.opcode", bth.opcode, 2);
  out.number("bth.solicited", bth.solicited ? 1 : 0);
  out.number("bth.migration", bth.migration ? 1 : 0);
  out.number("bth.pad_count", bth.pad_count);
  out.number("bth.pkey", bth.pkey.value(), 4);
  out.number("bth.fecn", bth.fecn ? 1 : 0);
  out.number("bth.becn", bth.becn ? 1 : 0);
  out.number("bth.destination", bth.destination.value(), 6);
  out.number("bth.ack_request", bth.ack_request ? 1 : 0);
  out.number("bth.psn", bth.psn.value(), 6);
}

void describe_requests(Writer& out, const wire::Packet& packet) {
  const wire::OpcodeInfo& info = *packet.info;
  if (info.has(Header::deth)) {
    out.number("deth.qkey", packet.deth.qkey.value(), 8);
    out.number("deth.source", packet.deth.source.value(), 6);
  }
  if (info.has(Header::feth)) {
    out.number("feth.placement", packet.feth.placement);
    out.number("feth.selectivity", packet.feth.selectivity);
  }
  if (info.has(Header::reth)) {
    out.number("reth.address", packet.reth.address, 16);
    out.number("reth.rkey", packet.reth.rkey.value(), 8);
    out.number("reth.length", packet.reth.length);
  }
  if (info.has(Header::atomic_eth)) {
    out.number("atomiceth.address", packet.atomic.address, 16);
    out.number("atomiceth.rkey", packet.atomic.rkey.value(), 8);
    out.number("atomiceth.swap_or_add", packet.atomic.swap_or_add, 16);
    out.number("atomiceth.compare", packet.atomic.compare, 16);
  }
}

void describe_responses(Writer& out, const wire::Packet& packet) {
  const wire::OpcodeInfo& info = *packet.info;
  if (info.has(Header::aeth)) {
    out.number("aeth.syndrome", packet.aeth.syndrome.bits(), 2);
    out.number("aeth.msn", packet.aeth.msn.value(), 6);
  }
  if (info.has(Header::atomic_ack_eth)) {
    out.number("atomicacketh.original", packet.atomic_result, 16);
  }
  if (info.has(Header::immediate)) out.number("immdt.data", packet.immediate, 8);
  if (info.has(Header::ieth)) out.number("ieth.rkey", packet.invalidate.value(), 8);
}

// Reads blocks line by line.
class BlockReader {
 public:
  tl::expected<std::vector<Block>, std::string> read(std::string_view text) {
    std::istringstream lines{std::string(text)};
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
      if (line.empty()) {
        end_block();
      } else if (line[0] != '#' && !take(line)) {
        return tl::unexpected("line " + std::to_string(number) + ": neither a field nor hex");
      }
    }
    end_block();
    return std::move(blocks_);
  }

 private:
  bool take(const std::string& line) {
    if (line == "hex:") return in_hex_ = true;
    if (in_hex_) return take_hex(line);
    const auto colon = line.find(": ");
    if (colon == std::string::npos) return false;
    const Field field{line.substr(0, colon), line.substr(colon + 2)};
    if (field.key == "packet") {
      block_.name = field.value;
    } else {
      block_.fields.push_back(field);
    }
    return true;
  }

  bool take_hex(const std::string& line) {
    const auto bytes = test::from_hex(line);
    if (!bytes) return false;
    block_.bytes.insert(block_.bytes.end(), bytes->begin(), bytes->end());
    return true;
  }

  void end_block() {
    if (!block_.bytes.empty()) blocks_.push_back(std::move(block_));
    block_ = {};
    in_hex_ = false;
  }

  std::vector<Block> blocks_;
  Block block_;
  bool in_hex_ = false;
};

}  // namespace

Dissection describe(const wire::Path& path, wire::Ipv4Fragment fragment, const wire::Packet& packet,
                    std::uint32_t icrc) {
  Writer out;
  describe_path(out, path, fragment);
  describe_bth(out, packet.bth);
  describe_requests(out, packet);
  describe_responses(out, packet);
  out.text("payload", test::to_hex(packet.payload));
  out.number("icrc", icrc, 8);
  return out.take();
}

tl::expected<Dissection, std::string> dissect(wire::Bytes ip_packet) {
  const auto frame = wire::parse_frame(ip_packet);
  if (!frame) return tl::unexpected(std::string(to_string(frame.error())));
  const auto packet = wire::parse_packet(frame->roce);
  if (!packet) return tl::unexpected(std::string(to_string(packet.error())));
  return describe(frame->path, frame->fragment, *packet, wire::load_icrc(frame->roce));
}

std::string to_text(const Block& block) {
  std::string text = "packet: " + block.name + '\n';
  for (const Field& field : block.fields) text += field.key + ": " + field.value + '\n';
  text += "hex:\n";
  const wire::Bytes bytes = block.bytes;
  for (std::size_t at = 0; at < bytes.size(); at += kBytesPerLine) {
    const std::size_t size = std::min(kBytesPerLine, bytes.size() - at);
    text += "  " + test::to_hex(bytes.subspan(at, size)) + '\n';
  }
  return text;
}

tl::expected<std::vector<Block>, std::string> parse_blocks(std::string_view text) {
  return BlockReader().read(text);
}

}  // namespace urxe::golden
