#include "verbs/config/environment.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

#include <dirent.h>
#include <unistd.h>

namespace urxe::verbs {
namespace {

constexpr std::string_view kUverbs = "uverbs";

// An emulated device: this program itself may run with the library preloaded.
bool is_emulated(const std::string& link) {
  std::array<char, 256> target{};
  const ssize_t size = readlink(link.c_str(), target.data(), target.size());
  if (size <= 0) return false;
  const std::string_view text(target.data(), static_cast<std::size_t>(size));
  return text.find("/virtual/urxe/") != std::string_view::npos;
}

std::vector<std::string> real_names_in(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(directory.c_str()), &closedir);
  if (!stream) return names;
  while (const dirent* entry = readdir(stream.get())) {
    if (entry->d_name[0] == '.' || is_emulated(directory + '/' + entry->d_name)) continue;
    names.emplace_back(entry->d_name);
  }
  return names;
}

}  // namespace

tl::expected<Environment, std::string> read_environment(
    const std::function<const char*(const char*)>& variable) {
  Environment environment;
  if (const char* devices = variable("URXE_DEVICES")) environment.devices = devices;
  const char* hide = variable("URXE_HIDE_REAL");
  const std::string hide_real = hide != nullptr ? hide : "0";
  if (hide_real != "" && hide_real != "0" && hide_real != "1") {
    return tl::unexpected("URXE_HIDE_REAL is \"" + hide_real + "\": expected 0 or 1");
  }
  environment.hide_real = hide_real == "1";
  return environment;
}

RealDevices find_real_devices() {
  RealDevices real;
  real.names = real_names_in("/sys/class/infiniband");
  for (const std::string& name : real_names_in("/sys/class/infiniband_verbs")) {
    if (!name.starts_with(kUverbs)) continue;
    unsigned number = 0;
    std::from_chars(name.data() + kUverbs.size(), name.data() + name.size(), number);
    real.next_uverbs = std::max(real.next_uverbs, number + 1);
  }
  return real;
}

tl::expected<std::vector<DeviceConfig>, std::string> find_devices(const Environment& environment) {
  const auto interfaces = list_interfaces();
  if (!interfaces) return tl::unexpected(interfaces.error());
  std::optional<std::string_view> request;
  if (environment.devices) request = *environment.devices;
  return choose_devices(request, *interfaces,
                        environment.hide_real ? RealDevices{} : find_real_devices(),
                        made_up_guid());
}

}  // namespace urxe::verbs
