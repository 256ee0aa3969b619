// A file of captured packets.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "net/capture/libpcap.h"
#include "net/descriptor.h"
#include "net/error.h"
#include "net/wire/bytes.h"
#include "net/wire/path.h"
#include "net/wire/time.h"

namespace urxe::net {

// A pcap file with nanoseconds. Any thread may call; several devices share one.
//
// The name of a file to which another process captures at this time gets a full stop and this
// process's number: "NAME.4711". A file of a process that has ended is continued, so that all of a
// script's programs are in it, one after the other; whoever wants a new one removes it before.
class CaptureFile {
 public:
  // `epoch` is added to packets' times: what makes them times since 1970.
  [[nodiscard]] static tl::expected<std::shared_ptr<CaptureFile>, Error> open(
      const std::string& name, Duration epoch, KeepDescriptor keep = nullptr);
  ~CaptureFile();

  // Writes a packet as it would look on Ethernet, with an IPv4 identification of 0 and all
  // checksums. `packet` is BTH to pad; `icrc_error` is exclusive-ored into the ICRC.
  void write(Time time, const wire::Path& path, wire::Bytes packet, std::uint32_t icrc_error);
  // Gives the file all that was written. Nothing is kept back afterwards, however the process ends.
  void flush();

  // Where it is: `name`, or that with this process's number.
  [[nodiscard]] const std::string& path() const { return path_; }
  // Packets that are missing because the file could not be written.
  [[nodiscard]] std::uint64_t lost_packets() const;

  // What makes times of CLOCK_MONOTONIC times since 1970, as of now.
  [[nodiscard]] static Duration epoch_of_monotonic_clock();

 private:
  CaptureFile(const Libpcap& pcap, Duration epoch) : pcap_(pcap), epoch_(epoch) {}

  // The errno and a sentence, or nothing.
  [[nodiscard]] Error open_file(const std::string& name, KeepDescriptor keep);
  [[nodiscard]] Error open_dumper();
  [[nodiscard]] Error continue_file();
  [[nodiscard]] bool write_all(wire::Bytes bytes);
  [[nodiscard]] wire::Bytes pending();
  void forget_pending();

  Libpcap pcap_;
  Duration epoch_;
  std::string path_;
  Descriptor file_;
  pcap_t* handle_ = nullptr;
  pcap_dumper_t* dumper_ = nullptr;
  // libpcap writes into memory, and flush() into the file: in a forked child nothing may remain in
  // a stdio buffer that its exit would write once more.
  std::FILE* memory_ = nullptr;
  char* memory_bytes_ = nullptr;
  std::size_t memory_size_ = 0;

  mutable std::mutex mutex_;
  std::vector<std::uint8_t> frame_;
  std::uint64_t pending_packets_ = 0;
  std::uint64_t lost_packets_ = 0;
};

}  // namespace urxe::net
