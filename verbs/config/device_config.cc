#include "verbs/config/device_config.h"

#include <algorithm>
#include <array>
#include <utility>

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace urxe::verbs {
namespace {

// linux/drivers/infiniband/core/uverbs_main.c: IB_UVERBS_MAJOR and IB_UVERBS_BASE_MINOR.
constexpr unsigned kUverbsMajor = 231;
constexpr unsigned kUverbsFirstMinor = 192;
// A misc device with a minor number that rdma_cm is often given (it is a dynamic one).
constexpr unsigned kMiscMajor = 10;
constexpr unsigned kRdmaCmMinor = 124;

constexpr std::string_view kNamePrefix = "rxe";
constexpr std::size_t kMaxNameSize = 63;  // IB_DEVICE_NAME_MAX, with the terminating zero
constexpr unsigned kHeadersSize = 80;     // what rxe_net.c leaves for headers

// One entry of URXE_DEVICES.
struct Request {
  std::string_view text;  // all of it
  std::string_view name;
  std::string_view netdev;
  std::optional<wire::IpAddress> address;
};

tl::unexpected<std::string> refuse(std::string sentence) {
  return tl::unexpected<std::string>(std::move(sentence));
}

std::string quoted(std::string_view text) { return '"' + std::string(text) + '"'; }

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

std::optional<std::string> fault_of_name(std::string_view name) {
  if (!name.starts_with(kNamePrefix)) {
    return "the device's name must begin with \"rxe\", because libibverbs picks the provider by it";
  }
  if (name.size() > kMaxNameSize) {
    return "the device's name is longer than " + std::to_string(kMaxNameSize) + " characters";
  }
  if (!std::all_of(name.begin(), name.end(), is_name_character)) {
    return "a device's name may hold letters, digits, '.', '_' and '-'";
  }
  return std::nullopt;
}

tl::expected<Request, std::string> parse_entry(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return refuse("expected NAME=NETDEV[/ADDRESS]");
  Request request{.text = text, .name = text.substr(0, equals), .netdev = {}, .address = {}};
  if (const auto fault = fault_of_name(request.name)) return refuse(*fault);
  const std::string_view rest = text.substr(equals + 1);
  const std::size_t slash = rest.find('/');
  request.netdev = rest.substr(0, slash);
  if (request.netdev.empty()) return refuse("expected the name of a network interface after '='");
  if (slash == std::string_view::npos) return request;
  const std::string address(rest.substr(slash + 1));
  request.address = wire::IpAddress::parse(address);
  if (!request.address) return refuse(quoted(address) + " is no IPv4 or IPv6 address");
  return request;
}

std::string names_of(const std::vector<Interface>& interfaces) {
  std::string names;
  for (const Interface& interface : interfaces) {
    names += (names.empty() ? "" : ", ") + interface.name;
  }
  return names;
}

// IPv6 link-local, IPv4, other IPv6: the order in which the kernel's GID table usually has them.
int rank(const wire::IpAddress& address) {
  if (address.is_v4()) return 1;
  return address.is_link_local() ? 0 : 2;
}

std::vector<wire::IpAddress> in_gid_order(std::vector<wire::IpAddress> addresses) {
  std::stable_sort(addresses.begin(), addresses.end(),
                   [](const auto& a, const auto& b) { return rank(a) < rank(b); });
  if (addresses.size() > kGidTableSize) addresses.resize(kGidTableSize);
  return addresses;
}

bool can_use(const Interface& interface, const wire::IpAddress& address) {
  if (interface.loopback && address.is_v4() && address.is_loopback()) return true;
  const auto& all = interface.addresses;
  return std::find(all.begin(), all.end(), address) != all.end();
}

DeviceConfig make_device(const Interface& interface, std::string name,
                         std::vector<wire::IpAddress> addresses, std::uint64_t loopback_guid) {
  DeviceConfig device;
  device.name = std::move(name);
  device.netdev = interface.name;
  device.ifindex = interface.index;
  device.netdev_mtu = interface.mtu;
  device.active_mtu = active_mtu(interface.mtu);
  device.loopback = interface.loopback;
  device.addresses = in_gid_order(std::move(addresses));
  device.guid = interface.mac == MacAddress{} ? loopback_guid : guid_of(interface.mac);
  return device;
}

tl::expected<DeviceConfig, std::string> fulfil(const Request& request,
                                               const std::vector<Interface>& interfaces,
                                               std::uint64_t loopback_guid) {
  const auto interface = std::find_if(interfaces.begin(), interfaces.end(),
                                      [&](const auto& i) { return i.name == request.netdev; });
  if (interface == interfaces.end()) {
    return refuse("there is no network interface " + quoted(request.netdev) + " (there are " +
                  names_of(interfaces) + ")");
  }
  if (!request.address) {
    if (interface->addresses.empty()) return refuse(interface->name + " has no IP address");
    return make_device(*interface, std::string(request.name), interface->addresses, loopback_guid);
  }
  if (!can_use(*interface, *request.address)) {
    return refuse(request.address->to_string() + " is no address of " + interface->name);
  }
  DeviceConfig device =
      make_device(*interface, std::string(request.name), {*request.address}, loopback_guid);
  device.fixed_addresses = true;
  return device;
}

// Two devices on one address would both get its packets.
std::optional<std::string> clash(const DeviceConfig& device, const DeviceConfig& earlier) {
  if (device.name == earlier.name) return "the name " + device.name + " is taken already";
  for (const wire::IpAddress& address : device.addresses) {
    const auto& taken = earlier.addresses;
    if (std::find(taken.begin(), taken.end(), address) != taken.end()) {
      return "the address " + address.to_string() + " belongs to " + earlier.name + " already";
    }
  }
  return std::nullopt;
}

std::optional<std::string> clash(const DeviceConfig& device,
                                 const std::vector<DeviceConfig>& earlier,
                                 const RealDevices& real) {
  if (std::find(real.names.begin(), real.names.end(), device.name) != real.names.end()) {
    return "the kernel has a device " + device.name + " already (URXE_HIDE_REAL=1 hides it)";
  }
  for (const DeviceConfig& other : earlier) {
    if (auto reason = clash(device, other)) return reason;
  }
  return std::nullopt;
}

tl::expected<std::vector<DeviceConfig>, std::string> chosen_devices(
    std::string_view text, const std::vector<Interface>& interfaces, const RealDevices& real,
    std::uint64_t loopback_guid) {
  std::vector<DeviceConfig> devices;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::string_view entry = text.substr(begin, text.find(',', begin) - begin);
    begin += entry.size() + 1;
    auto device = parse_entry(entry).and_then(
        [&](const Request& request) { return fulfil(request, interfaces, loopback_guid); });
    if (device) {
      if (const auto reason = clash(*device, devices, real)) device = refuse(*reason);
    }
    if (!device) {
      return refuse("URXE_DEVICES, entry " + std::to_string(devices.size() + 1) + " (" +
                    quoted(entry) + "): " + device.error());
    }
    devices.push_back(*std::move(device));
  }
  return devices;
}

std::vector<DeviceConfig> default_devices(const std::vector<Interface>& interfaces,
                                          const RealDevices& real, std::uint64_t loopback_guid) {
  std::vector<DeviceConfig> devices;
  unsigned number = 0;
  const auto next_free_name = [&] {
    std::string name = "rxe" + std::to_string(number++);
    const bool taken = std::find(real.names.begin(), real.names.end(), name) != real.names.end();
    return taken ? std::string() : name;
  };
  const auto add_all = [&](bool loopback) {
    for (const Interface& interface : interfaces) {
      if (!interface.up || interface.loopback != loopback || interface.addresses.empty()) continue;
      std::string name;
      while (name.empty()) name = next_free_name();
      devices.push_back(make_device(interface, name, interface.addresses, loopback_guid));
    }
  };
  add_all(false);
  if (devices.empty()) add_all(true);
  return devices;
}

// librdmacm tells devices apart by their GUID; several on one interface would share it.
void make_guid_unique(std::vector<DeviceConfig>& devices, std::size_t index) {
  const auto same = [&](const DeviceConfig& other) { return other.guid == devices[index].guid; };
  const auto earlier_end = devices.begin() + static_cast<std::ptrdiff_t>(index);
  while (std::any_of(devices.begin(), earlier_end, same)) ++devices[index].guid;
}

}  // namespace

dev_t DeviceConfig::uverbs_device() const {
  return makedev(kUverbsMajor, kUverbsFirstMinor + uverbs_number);
}

dev_t rdma_cm_device() { return makedev(kMiscMajor, kRdmaCmMinor); }

tl::expected<std::vector<DeviceConfig>, std::string> choose_devices(
    std::optional<std::string_view> request, const std::vector<Interface>& interfaces,
    const RealDevices& real, std::uint64_t loopback_guid) {
  std::vector<DeviceConfig> devices;
  if (request && !request->empty()) {
    auto chosen = chosen_devices(*request, interfaces, real, loopback_guid);
    if (!chosen) return chosen;
    devices = *std::move(chosen);
  } else {
    devices = default_devices(interfaces, real, loopback_guid);
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i].uverbs_number = real.next_uverbs + static_cast<unsigned>(i);
    make_guid_unique(devices, i);
  }
  return devices;
}

unsigned active_mtu(unsigned netdev_mtu) {
  for (unsigned mtu = 4096; mtu > 256; mtu /= 2) {
    if (mtu + kHeadersSize <= netdev_mtu) return mtu;
  }
  return 256;
}

std::uint64_t guid_of(const MacAddress& mac) {
  const std::array<std::uint8_t, 8> eui = {
      static_cast<std::uint8_t>(mac[0] ^ 2), mac[1], mac[2], 0xFF, 0xFE, mac[3], mac[4], mac[5]};
  return wire::load_be<std::uint64_t>(eui, 0);
}

// FNV-1a over the host's name and the namespace, made a locally administered EUI-64.
std::uint64_t made_up_guid() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  std::string seed = host.data();
  struct stat network_namespace {};
  if (stat("/proc/self/ns/net", &network_namespace) == 0) {
    seed += '/' + std::to_string(network_namespace.st_ino);
  }
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char c : seed) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001B3;
  return (hash & ~(std::uint64_t{0x01} << 56)) | std::uint64_t{0x02} << 56;
}

}  // namespace urxe::verbs
