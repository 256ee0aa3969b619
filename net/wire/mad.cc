#include "net/wire/mad.h"

#include <algorithm>

namespace urxe::wire {

MadHeader MadHeader::parse(Bytes bytes) {
  return {
      .base_version = bytes[0],
      .management_class = bytes[1],
      .class_version = bytes[2],
      .method = bytes[3],
      .status = load_be<std::uint16_t>(bytes, 4),
      .transaction = load_be<std::uint64_t>(bytes, 8),
      .attribute = load_be<std::uint16_t>(bytes, 16),
      .attribute_modifier = load_be<std::uint32_t>(bytes, 20),
  };
}

void MadHeader::serialize(MutableBytes bytes) const {
  std::fill_n(bytes.begin(), kMadHeaderSize, std::uint8_t{0});
  bytes[0] = base_version;
  bytes[1] = management_class;
  bytes[2] = class_version;
  bytes[3] = method;
  store_be(bytes, 4, status);
  store_be(bytes, 8, transaction);
  store_be(bytes, 16, attribute);
  store_be(bytes, 20, attribute_modifier);
}

}  // namespace urxe::wire
