#include "tests/support/pcap_file.h"

#include <array>
#include <memory>
#include <string>

#include <pcap/pcap.h>

namespace urxe::test {
namespace {

constexpr std::size_t kMacPair = 12;
constexpr std::uint16_t kVlan = 0x8100;
constexpr std::uint16_t kIpv4 = 0x0800;
constexpr std::uint16_t kIpv6 = 0x86DD;
constexpr std::uint16_t kRoceV1 = 0x8915;

}  // namespace

tl::expected<std::vector<FrameBytes>, std::string> read_pcap(const std::filesystem::path& path) {
  std::array<char, PCAP_ERRBUF_SIZE> error{};
  const std::unique_ptr<pcap_t, decltype(&pcap_close)> file(
      pcap_open_offline(path.c_str(), error.data()), &pcap_close);
  if (!file) return tl::unexpected(std::string(error.data()));
  if (pcap_datalink(file.get()) != DLT_EN10MB) return tl::unexpected(std::string("not Ethernet"));
  std::vector<FrameBytes> frames;
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  int result = 0;
  while ((result = pcap_next_ex(file.get(), &header, &bytes)) == 1) {
    frames.emplace_back(bytes, bytes + header->caplen);
  }
  if (result != PCAP_ERROR_BREAK) return tl::unexpected(std::string(pcap_geterr(file.get())));
  return frames;
}

wire::Bytes ethernet_payload(wire::Bytes frame) {
  std::size_t at = kMacPair;
  while (at + 2 <= frame.size()) {
    const auto type = wire::load_be<std::uint16_t>(frame, at);
    at += 2;
    if (type == kIpv4 || type == kIpv6 || type == kRoceV1) return frame.subspan(at);
    if (type != kVlan) return {};
    at += 2;  // the tag
  }
  return {};
}

}  // namespace urxe::test
