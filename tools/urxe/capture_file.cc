#include "tools/urxe/capture_file.h"

#include <array>
#include <memory>

#include <fmt/format.h>
#include <pcap/pcap.h>

#include "net/wire/icrc.h"

namespace urxe::tools {
namespace {

struct Closer {
  void operator()(pcap_t* file) const { pcap_close(file); }
};

constexpr std::uint16_t kVlan = 0x8100;
constexpr std::uint16_t kServiceVlan = 0x88A8;
constexpr std::uint16_t kIpv4 = 0x0800;
constexpr std::uint16_t kIpv6 = 0x86DD;

// The IP packet in a frame of this link type; empty if there is none.
wire::Bytes ip_packet(int link_type, wire::Bytes frame) {
  std::size_t type_at = 0;
  switch (link_type) {
    case DLT_EN10MB:
      type_at = 12;
      break;
    case DLT_LINUX_SLL:
      type_at = 14;
      break;
    case DLT_LINUX_SLL2:
      return frame.size() > 20 ? frame.subspan(20) : wire::Bytes{};
    case DLT_RAW:
    case DLT_IPV4:
    case DLT_IPV6:
      return frame;
    case DLT_NULL:
      return frame.size() > 4 ? frame.subspan(4) : wire::Bytes{};
    default:
      return {};
  }
  while (frame.size() >= type_at + 2) {
    const auto type = wire::load_be<std::uint16_t>(frame, type_at);
    if (type == kIpv4 || type == kIpv6) return frame.subspan(type_at + 2);
    if (type != kVlan && type != kServiceVlan) return {};
    type_at += 4;
  }
  return {};
}

bool icrc_is_right(const wire::Frame& frame) {
  if (frame.roce.size() < wire::kBthSize + wire::kIcrcSize) return false;
  const wire::IcrcSeed seed(frame.path, frame.roce.size());
  return wire::icrc_matches(seed.value(frame.fragment), frame.roce);
}

}  // namespace

tl::expected<CaptureTotals, std::string> read_capture(
    const std::string& path, const std::function<void(const CapturedPacket&)>& visit) {
  std::array<char, PCAP_ERRBUF_SIZE> error{};
  const std::unique_ptr<pcap_t, Closer> file(pcap_open_offline_with_tstamp_precision(
      path.c_str(), PCAP_TSTAMP_PRECISION_NANO, error.data()));
  if (file == nullptr) return tl::unexpected(fmt::format("{}: {}", path, error.data()));
  const int link_type = pcap_datalink(file.get());
  CaptureTotals totals;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  int status = 0;
  while ((status = pcap_next_ex(file.get(), &header, &data)) == 1) {
    ++totals.frames;
    const auto frame = wire::parse_frame(ip_packet(link_type, {data, header->caplen}));
    if (!frame) continue;
    ++totals.roce;
    CapturedPacket captured;
    captured.time =
        std::chrono::seconds(header->ts.tv_sec) + std::chrono::nanoseconds(header->ts.tv_usec);
    captured.frame = *frame;
    captured.packet = wire::parse_packet(frame->roce);
    captured.icrc_is_right = icrc_is_right(*frame);
    visit(captured);
  }
  if (status == PCAP_ERROR)
    return tl::unexpected(fmt::format("{}: {}", path, pcap_geterr(file.get())));
  return totals;
}

}  // namespace urxe::tools
