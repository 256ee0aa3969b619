// Packets in words: the text format of the golden files, which README.md describes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "net/wire/bytes.h"
#include "net/wire/frame.h"
#include "net/wire/packet.h"

namespace urxe::golden {

struct Field {
  std::string key;
  std::string value;
  friend bool operator==(const Field&, const Field&) = default;
};
using Dissection = std::vector<Field>;

// All that the headers say, in their order. `packet.payload` is without the pad.
[[nodiscard]] Dissection describe(const wire::Path& path, wire::Ipv4Fragment fragment,
                                  const wire::Packet& packet, std::uint32_t icrc);

// The same for bytes. The error is the parser's sentence.
[[nodiscard]] tl::expected<Dissection, std::string> dissect(wire::Bytes ip_packet);

// One block of a golden file.
struct Block {
  Dissection fields;  // without `packet`
  std::string name;   // of the `packet` line
  std::vector<std::uint8_t> bytes;
};

[[nodiscard]] std::string to_text(const Block& block);
// The error is a sentence with the line's number.
[[nodiscard]] tl::expected<std::vector<Block>, std::string> parse_blocks(std::string_view text);

}  // namespace urxe::golden
