// The parsers of the wire layer on arbitrary bytes, as a whole IP packet and as a UDP payload.
//
// What they take must lie within the input and account for every byte of it, and must come out the
// same when it is written and parsed again.
#include <array>
#include <vector>

#include "net/wire/frame.h"
#include "net/wire/icrc.h"
#include "net/wire/packet.h"
#include "tests/fuzz/fuzz.h"

namespace {

using urxe::fuzz::require;
using namespace urxe::wire;

bool lies_within(Bytes inner, Bytes outer) {
  return inner.data() >= outer.data() && inner.data() + inner.size() <= outer.data() + outer.size();
}

bool same_headers(const Packet& a, const Packet& b) {
  return a.bth == b.bth && a.info == b.info && a.deth == b.deth && a.reth == b.reth &&
         a.atomic == b.atomic && a.aeth == b.aeth && a.feth == b.feth &&
         a.atomic_result == b.atomic_result && a.immediate == b.immediate &&
         a.invalidate == b.invalidate;
}

void check_packet(Bytes bytes) {
  const auto packet = parse_packet(bytes);
  if (!packet) {
    require(!to_string(packet.error()).empty(), "an error has a sentence");
    return;
  }
  const std::size_t headers = packet->info->header_size();
  require(lies_within(packet->payload, bytes), "the payload lies within the packet");
  require(headers + packet->payload.size() + packet->bth.pad_count + kIcrcSize == bytes.size(),
          "every byte of the packet is accounted for");
  std::array<std::uint8_t, kMaxHeaderSize> written{};
  require(write_headers(*packet, written) == headers, "the headers are written in full");
  std::vector<std::uint8_t> again(written.begin(),
                                  written.begin() + static_cast<std::ptrdiff_t>(headers));
  again.insert(again.end(), bytes.begin() + static_cast<std::ptrdiff_t>(headers), bytes.end());
  const auto reparsed = parse_packet(again);
  require(reparsed.has_value() && same_headers(*packet, *reparsed),
          "headers that were written are read the same");
}

void check_solver(const Frame& frame) {
  const IcrcSeed seed(frame.path, frame.roce.size());
  const Bytes covered = frame.roce.first(frame.roce.size() - kIcrcSize);
  const std::uint32_t received = load_icrc(frame.roce);
  Ipv4IdSolver solver;
  const auto solved = solver.solve(icrc(seed.value({}), covered), received, frame.roce.size());
  if (!seed.depends_on_id() || !solved) return;
  require(icrc_matches(seed.value(*solved), frame.roce), "a solved identification is right");
}

void check_frame(Bytes bytes) {
  const auto frame = parse_frame(bytes);
  if (!frame) {
    require(!to_string(frame.error()).empty(), "an error has a sentence");
    return;
  }
  require(lies_within(frame->roce, bytes), "the UDP payload lies within the frame");
  std::vector<std::uint8_t> again(ip_udp_size(frame->path.source.is_v4()));
  write_ip_udp(again, frame->path, frame->fragment, frame->roce.size());
  again.insert(again.end(), frame->roce.begin(), frame->roce.end());
  const auto reparsed = parse_frame(again);
  require(reparsed.has_value() && reparsed->path == frame->path,
          "a frame that was written is read the same");
  if (frame->roce.size() >= kBthSize + kIcrcSize) check_solver(*frame);
  check_packet(frame->roce);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes(data, size);
  check_frame(bytes);
  check_packet(bytes);
  return 0;
}
