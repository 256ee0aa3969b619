#include "net/capture/capture_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/capture/ethernet_frame.h"

namespace urxe::net {
namespace {

constexpr int kSnapLength = 65535;
constexpr mode_t kMode = 0644;
// Written at once, so that much is not kept in memory.
constexpr std::size_t kMaxPending = 256 * 1024;

Error failure(const std::string& path, int code) {
  return {code, fmt::format("cannot capture into {}: {}", path, std::strerror(code))};
}

Descriptor open_locked(const std::string& path, KeepDescriptor keep, int& error) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, kMode), keep);
  error = file.is_open() ? 0 : errno;
  if (error == 0 && flock(file.number(), LOCK_EX | LOCK_NB) != 0) error = errno;
  return file;
}

}  // namespace

tl::expected<std::shared_ptr<CaptureFile>, Error> CaptureFile::open(const std::string& name,
                                                                    Duration epoch,
                                                                    KeepDescriptor keep) {
  const auto pcap = Libpcap::load();
  if (!pcap) return tl::unexpected(pcap.error());
  std::shared_ptr<CaptureFile> file(new CaptureFile(*pcap, epoch));
  if (const Error error = file->open_file(name, keep); error.code != 0) {
    return tl::unexpected(error);
  }
  if (const Error error = file->open_dumper(); error.code != 0) return tl::unexpected(error);
  if (const Error error = file->continue_file(); error.code != 0) return tl::unexpected(error);
  return file;
}

// Writes nothing: in a forked child the file is the parent's.
CaptureFile::~CaptureFile() {
  if (dumper_ != nullptr) {
    pcap_.dump_close(dumper_);  // and memory_ with it
  } else if (memory_ != nullptr) {
    std::fclose(memory_);
  }
  if (handle_ != nullptr) pcap_.close(handle_);
  std::free(memory_bytes_);
}

Error CaptureFile::open_file(const std::string& name, KeepDescriptor keep) {
  int error = 0;
  path_ = name;
  file_ = open_locked(path_, keep, error);
  if (error == EWOULDBLOCK) {
    path_ = name + "." + std::to_string(getpid());
    file_ = open_locked(path_, keep, error);
  }
  return error == 0 ? Error{} : failure(path_, error);
}

Error CaptureFile::open_dumper() {
  memory_ = open_memstream(&memory_bytes_, &memory_size_);
  if (memory_ == nullptr) return failure(path_, errno);
  handle_ = pcap_.open_dead(DLT_EN10MB, kSnapLength, PCAP_TSTAMP_PRECISION_NANO);
  if (handle_ == nullptr) return failure(path_, ENOMEM);
  dumper_ = pcap_.dump_fopen(handle_, memory_);
  return dumper_ == nullptr ? failure(path_, EIO) : Error{};
}

// libpcap has written the file's header into memory: a file that is not empty must begin with it.
Error CaptureFile::continue_file() {
  struct stat status {};
  if (fstat(file_.number(), &status) != 0) return failure(path_, errno);
  if (!S_ISREG(status.st_mode) || status.st_size == 0) {
    flush();
    return {};
  }
  const wire::Bytes header = pending();
  std::vector<std::uint8_t> found(header.size());
  const ssize_t size = pread(file_.number(), found.data(), found.size(), 0);
  if (size != static_cast<ssize_t>(header.size()) ||
      !std::equal(header.begin(), header.end(), found.begin())) {
    return {EEXIST, fmt::format("cannot capture into {}: it exists, and is no capture that can be "
                                "continued; remove it, or choose another name",
                                path_)};
  }
  forget_pending();
  return {};
}

void CaptureFile::write(Time time, const wire::Path& path, wire::Bytes packet,
                        std::uint32_t icrc_error) {
  const std::scoped_lock lock(mutex_);
  write_ethernet_frame(path, packet, icrc_error, frame_);
  const Duration since_1970 = time.time_since_epoch() + epoch_;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_1970);
  pcap_pkthdr header{};
  header.ts.tv_sec = seconds.count();
  header.ts.tv_usec = (since_1970 - seconds).count();  // nanoseconds, in such files
  header.caplen = header.len = static_cast<bpf_u_int32>(frame_.size());
  pcap_.dump(reinterpret_cast<u_char*>(dumper_), &header, frame_.data());
  ++pending_packets_;
  if (pending_packets_ * frame_.size() < kMaxPending) return;
  if (!write_all(pending())) lost_packets_ += pending_packets_;
  forget_pending();
}

void CaptureFile::flush() {
  const std::scoped_lock lock(mutex_);
  const wire::Bytes bytes = pending();
  if (bytes.empty()) return;
  if (!write_all(bytes)) lost_packets_ += pending_packets_;
  forget_pending();
}

std::uint64_t CaptureFile::lost_packets() const {
  const std::scoped_lock lock(mutex_);
  return lost_packets_;
}

wire::Bytes CaptureFile::pending() {
  pcap_.dump_flush(dumper_);
  return {reinterpret_cast<const std::uint8_t*>(memory_bytes_), memory_size_};
}

void CaptureFile::forget_pending() {
  pending_packets_ = 0;
  std::rewind(memory_);
}

bool CaptureFile::write_all(wire::Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t size = ::write(file_.number(), bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(size));
  }
  return true;
}

Duration CaptureFile::epoch_of_monotonic_clock() {
  timespec monotonic{};
  timespec real{};
  clock_gettime(CLOCK_MONOTONIC, &monotonic);
  clock_gettime(CLOCK_REALTIME, &real);
  return std::chrono::seconds(real.tv_sec - monotonic.tv_sec) +
         std::chrono::nanoseconds(real.tv_nsec - monotonic.tv_nsec);
}

}  // namespace urxe::net
