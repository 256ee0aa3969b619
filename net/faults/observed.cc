#include "net/faults/observed.h"

namespace urxe::net {

std::optional<Observed> observe(Direction direction, const wire::IpAddress& peer,
                                wire::Bytes bytes) {
  if (bytes.size() < wire::kBthSize) return std::nullopt;
  Observed observed{.direction = direction,
                    .peer = peer,
                    .bth = wire::Bth::parse(bytes),
                    .size = bytes.size() + wire::kIcrcSize};
  observed.info = wire::find_opcode(observed.bth.opcode);
  if (observed.info == nullptr || bytes.size() < observed.info->header_size()) return observed;
  const wire::Bytes extensions = bytes.subspan(wire::kBthSize);
  if (observed.info->has(wire::Header::aeth)) {
    observed.syndrome = wire::Aeth::parse(extensions).syndrome;
  }
  if (observed.info->operation == wire::Operation::rdma_read_request) {
    observed.read_length = wire::Reth::parse(extensions).length;
  }
  return observed;
}

}  // namespace urxe::net
