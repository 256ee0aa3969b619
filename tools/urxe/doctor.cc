#include "tools/urxe/doctor.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "net/wire/path.h"
#include "tools/urxe/run.h"
#include "verbs/config/device_config.h"
#include "verbs/config/environment.h"
#include "verbs/config/port_status.h"

namespace urxe::tools {
namespace {

namespace fs = std::filesystem;

enum class Verdict { good, note, bad };

struct Finding {
  Verdict verdict;
  std::string subject;
  std::string sentence;
};
using Findings = std::vector<Finding>;

constexpr std::array kLibraryFolders{"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                     "/usr/lib64", "/usr/lib", "/usr/local/lib"};

// The first file whose name starts and ends like this, in a folder below the library folders.
std::optional<fs::path> find_file(const std::string& folder, const std::string& begin,
                                  const std::string& end) {
  std::error_code error;
  for (const char* base : kLibraryFolders) {
    for (const auto& entry : fs::directory_iterator(fs::path(base) / folder, error)) {
      const std::string name = entry.path().filename();
      if (name.starts_with(begin) && name.find(end) != std::string::npos) return entry.path();
    }
  }
  return std::nullopt;
}

void check_library(Findings& findings) {
  const std::string library = find_library();
  if (library.empty()) {
    findings.push_back({Verdict::bad, "liburxe.so",
                        "not found beside this program: build it, or set URXE_LIBRARY"});
  } else {
    findings.push_back({Verdict::good, "liburxe.so", library});
  }
}

void check_rdma_core(Findings& findings) {
  const auto verbs = find_file("", "libibverbs.so.1", "");
  findings.push_back(verbs ? Finding{Verdict::good, "libibverbs", verbs->string()}
                           : Finding{Verdict::bad, "libibverbs",
                                     "missing: install libibverbs1 (Debian, Ubuntu) or rdma-core"});
  const auto provider = find_file("libibverbs", "librxe-rdmav", ".so");
  if (!provider) {
    findings.push_back({Verdict::bad, "provider",
                        "librxe-rdmavNN.so is missing, without which libibverbs shows no device: "
                        "install ibverbs-providers (Debian, Ubuntu) or rdma-core"});
  } else {
    findings.push_back({Verdict::good, "provider", provider->string()});
  }
  std::error_code error;
  if (provider && !fs::exists("/etc/libibverbs.d/rxe.driver", error)) {
    findings.push_back({Verdict::bad, "provider",
                        "/etc/libibverbs.d/rxe.driver is missing, so libibverbs does not load the "
                        "provider: reinstall ibverbs-providers"});
  }
}

// 0, or the errno of binding the RoCE port at an address.
int bind_error(const wire::IpAddress& address, unsigned interface) {
  const bool v4 = address.is_v4();
  const int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
  int failed = 0;
  if (v4) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(wire::kRoceUdpPort);
    to.sin_addr.s_addr = htonl(address.v4());
    failed = bind(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
  } else {
    sockaddr_in6 to{};
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(wire::kRoceUdpPort);
    to.sin6_scope_id = address.is_link_local() ? interface : 0;
    std::copy(address.bytes().begin(), address.bytes().end(), to.sin6_addr.s6_addr);
    failed = bind(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
  }
  const int error = failed != 0 ? errno : 0;
  close(fd);
  return error;
}

// The kernel's own rxe devices hold the port on all addresses of the network namespace.
bool kernel_rxe_is_loaded() {
  std::error_code error;
  return fs::exists("/sys/module/rdma_rxe", error);
}

void check_port(const verbs::DeviceConfig& device, Findings& findings) {
  for (const wire::IpAddress& address : device.addresses) {
    const int error = bind_error(address, device.ifindex);
    if (error == 0) continue;
    const char* reason = std::strerror(error);
    if (error == EADDRINUSE) {
      reason =
          kernel_rxe_is_loaded()
              ? "in use, probably by the kernel's rdma_rxe: rdma link delete its devices, or "
                "run in another network namespace"
              : "in use by another user's process or by a program that does not share it: stop "
                "it, or use another address or network namespace";
    }
    findings.push_back(
        {Verdict::bad, device.name,
         fmt::format("UDP port 4791 at {} cannot be bound: {}", address.to_string(), reason)});
  }
}

void check_device(const verbs::DeviceConfig& device, Findings& findings) {
  if (verbs::port_status(device).state != verbs::PortState::active) {
    findings.push_back({Verdict::bad, device.name,
                        fmt::format("{} is down or has no carrier: ip link set {} up",
                                    device.netdev, device.netdev)});
  }
  constexpr unsigned kLargest = 4096;
  constexpr unsigned kHeaders = 80;
  if (device.active_mtu < kLargest) {
    findings.push_back(
        {Verdict::note, device.name,
         fmt::format("path MTU at most {}, because {} has MTU {}; 4096 needs {} on the whole path",
                     device.active_mtu, device.netdev, device.netdev_mtu, kLargest + kHeaders)});
  }
  check_port(device, findings);
}

std::optional<long> read_number(const char* path) {
  std::ifstream file(path);
  long number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

void check_buffers(Findings& findings) {
  constexpr long kGood = 4 << 20;
  const auto limit = read_number("/proc/sys/net/core/rmem_max");
  if (!limit || *limit >= kGood || geteuid() == 0) return;
  findings.push_back(
      {Verdict::note, "receive buffer",
       fmt::format("net.core.rmem_max is {} bytes, so transfers run with small windows; for speed: "
                   "sysctl -w net.core.rmem_max={}",
                   *limit, kGood)});
}

void check_devices(const DoctorOptions& options, Findings& findings) {
  auto environment = verbs::read_environment([](const char* name) { return std::getenv(name); });
  if (!environment) {
    findings.push_back({Verdict::bad, "environment", environment.error()});
    return;
  }
  if (!options.devices.empty()) {
    environment->devices = fmt::format("{}", fmt::join(options.devices, ","));
  }
  const auto devices = verbs::find_devices(*environment);
  if (!devices) {
    findings.push_back({Verdict::bad, "devices", devices.error()});
    return;
  }
  for (const verbs::DeviceConfig& device : *devices) {
    std::vector<std::string> gids;
    for (const auto& address : device.addresses) gids.push_back(address.to_string());
    findings.push_back({Verdict::good, device.name,
                        fmt::format("on {}, GIDs {}", device.netdev, fmt::join(gids, ", "))});
    check_device(device, findings);
    if (device.loopback) {
      findings.push_back(
          {Verdict::note, device.name, "on the loopback interface: peers must be on this host"});
    }
  }
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::good:
      return "ok";
    case Verdict::note:
      return "note";
    case Verdict::bad:
      break;
  }
  return "PROBLEM";
}

}  // namespace

int examine(const DoctorOptions& options) {
  Findings findings;
  check_library(findings);
  check_rdma_core(findings);
  check_devices(options, findings);
  check_buffers(findings);
  bool healthy = true;
  nlohmann::json all = nlohmann::json::array();
  for (const Finding& finding : findings) {
    healthy = healthy && finding.verdict != Verdict::bad;
    if (options.json) {
      all.push_back({{"verdict", name_of(finding.verdict)},
                     {"subject", finding.subject},
                     {"sentence", finding.sentence}});
    } else {
      fmt::print("{:<8} {}: {}\n", name_of(finding.verdict), finding.subject, finding.sentence);
    }
  }
  if (options.json) {
    fmt::print("{}\n", all.dump(2));
  } else {
    fmt::print("{}\n", healthy ? "RDMA programs should work here: urxe run -- PROGRAM"
                               : "Mend the problems above first.");
  }
  return healthy ? 0 : 1;
}

}  // namespace urxe::tools
