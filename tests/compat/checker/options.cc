#include "tests/compat/checker/options.h"

#include <cstring>

#include "tests/compat/checker/check.h"

namespace checker {
namespace {

constexpr const char* kUsage =
    "usage: verbs_checker [--port N] [--device NAME] [--gid INDEX] [--mtu BYTES] "
    "[--transport rc|uc|ud] [--extended] [--events] [--srq] [--odp] [--brief] [--lossy] "
    "[--threads N] [--qps N] [--seed N] [--pause FIFO] [HOST]";

ibv_mtu mtu_of(unsigned long bytes) {
  for (const ibv_mtu mtu : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096}) {
    if (bytes == 128UL << mtu) return mtu;
  }
  fail("--mtu %lu: not a path MTU", bytes);
}

ibv_qp_type transport_of(const std::string& name) {
  if (name == "rc") return IBV_QPT_RC;
  if (name == "uc") return IBV_QPT_UC;
  if (name == "ud") return IBV_QPT_UD;
  fail("--transport %s: rc, uc or ud", name.c_str());
}

bool read_flag(Options& options, const std::string& name) {
  if (name == "--extended") return options.extended = true;
  if (name == "--events") return options.events = true;
  if (name == "--srq") return options.shared_receive = true;
  if (name == "--odp") return options.on_demand = true;
  if (name == "--brief") return options.brief = true;
  if (name == "--lossy") return options.lossy = true;
  return false;
}

void read_value(Options& options, const std::string& name, const char* value) {
  if (value == nullptr) fail("%s", kUsage);
  const unsigned long number = std::strtoul(value, nullptr, 0);
  if (name == "--port")
    options.port = static_cast<std::uint16_t>(number);
  else if (name == "--device")
    options.device = value;
  else if (name == "--gid")
    options.gid_index = static_cast<int>(number);
  else if (name == "--mtu")
    options.mtu = mtu_of(number);
  else if (name == "--transport")
    options.transport = transport_of(value);
  else if (name == "--threads")
    options.threads = static_cast<unsigned>(number);
  else if (name == "--qps")
    options.queue_pairs = static_cast<unsigned>(number);
  else if (name == "--pause")
    options.pause = value;
  else if (name == "--seed")
    options.seed = number;
  else
    fail("%s", kUsage);
}

}  // namespace

std::string Options::contract() const {
  return text("mtu %u transport %d srq %d odp %d brief %d threads %u qps %u seed %llu", mtu_bytes(),
              transport, shared_receive, on_demand, brief, threads, queue_pairs,
              static_cast<unsigned long long>(seed));
}

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name.rfind("--", 0) != 0)
      options.host = name;
    else if (!read_flag(options, name))
      read_value(options, name, argv[++i]);
  }
  if (options.lossy && options.transport != IBV_QPT_RC)
    fail("--lossy is for RC: over UC and UD messages may be lost for good");
  return options;
}

}  // namespace checker
