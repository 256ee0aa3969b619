#include "tools/urxe/run.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "net/faults/rule_parser.h"

namespace urxe::tools {
namespace {

namespace fs = std::filesystem;

constexpr int kUsage = 2;
constexpr int kCannotExecute = 126;
constexpr int kNotFound = 127;
constexpr std::uint32_t kPcapNanoseconds = 0xA1B23C4D;  // the first word of our captures

void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

void preload(const std::string& library) {
  const char* before = std::getenv("LD_PRELOAD");
  const std::string rest = before != nullptr ? before : "";
  if (rest.find(library) != std::string::npos) return;
  set("LD_PRELOAD", rest.empty() ? library : library + ":" + rest);
}

// The file that execvp would run.
fs::path find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* variable = std::getenv("PATH");
  std::string path = variable != nullptr ? variable : "/usr/bin:/bin";
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const fs::path candidate = fs::path(path.substr(begin, end - begin)) / name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  return name;
}

// The loader ignores LD_PRELOAD for programs that gain privileges.
void warn_if_secure(const fs::path& program) {
  struct stat status {};
  if (stat(program.c_str(), &status) != 0) return;
  const bool set_id = (status.st_mode & (S_ISUID | S_ISGID)) != 0;
  const bool capable = getxattr(program.c_str(), "security.capability", nullptr, 0) > 0;
  if (!set_id && !capable) return;
  fmt::print(
      stderr,
      "urxe: {} is set-user-ID, set-group-ID or has file capabilities, and the loader preloads "
      "nothing into such programs: it will see no emulated device. Run a copy of it without "
      "these bits (cp keeps none).\n",
      program.string());
}

// False, and a sentence, if a rule cannot be read. The library would say the same, once for each
// program that a script starts.
bool faults_are_good(const std::vector<std::string>& faults) {
  for (const std::string& text : faults) {
    const auto rules = net::parse_rules(text);
    if (rules) continue;
    fmt::print(stderr, "urxe: {}\n", net::describe(rules.error(), text));
    return false;
  }
  return true;
}

// Programs continue a capture that exists (net/capture/capture_file.h), so that all of a script's
// are in it. A new run starts a new one.
void remove_capture(const fs::path& path) {
  std::uint32_t magic = 0;
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(&magic), sizeof(magic));
  std::error_code error;
  if (magic == kPcapNanoseconds) fs::remove(path, error);
}

}  // namespace

std::string find_library() {
  if (const char* named = std::getenv("URXE_LIBRARY")) return named;
  std::error_code error;
  const fs::path bin = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* relative : {"../lib/liburxe.so", "../lib/" URXE_LIBRARY_TRIPLET "/liburxe.so"}) {
    const fs::path candidate = fs::weakly_canonical(bin / relative, error);
    if (!error && fs::exists(candidate, error)) return candidate;
  }
  return {};
}

int run_program(const RunOptions& options) {
  if (!faults_are_good(options.faults)) return kUsage;
  const std::string library = find_library();
  if (library.empty() || access(library.c_str(), R_OK) != 0) {
    fmt::print(stderr,
               "urxe: liburxe.so is not beside this program{}: build it (cmake --build --preset "
               "release), or set URXE_LIBRARY to its path.\n",
               library.empty() ? "" : " (" + library + ")");
    return kNotFound;
  }
  preload(library);
  if (!options.devices.empty())
    set("URXE_DEVICES", fmt::format("{}", fmt::join(options.devices, ",")));
  if (options.pcap) {
    remove_capture(*options.pcap);
    set("URXE_PCAP", fs::absolute(*options.pcap));
  }
  if (options.log_level) set("URXE_LOG", *options.log_level);
  if (!options.faults.empty())
    set("URXE_FAULTS", fmt::format("{}", fmt::join(options.faults, "\n")));
  if (options.seed) set("URXE_FAULT_SEED", std::to_string(*options.seed));
  if (options.single_packets) set("URXE_SINGLE_PACKETS", "1");
  if (options.ecn) set("URXE_ECN", "1");
  if (options.hide_real) set("URXE_HIDE_REAL", "1");
  warn_if_secure(find_program(options.command.front()));

  std::vector<char*> arguments;
  for (const std::string& argument : options.command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  execvp(arguments.front(), arguments.data());
  const int failure = errno;
  fmt::print(stderr, "urxe: cannot run {}: {}\n", options.command.front(), std::strerror(failure));
  return failure == ENOENT ? kNotFound : kCannotExecute;
}

}  // namespace urxe::tools
