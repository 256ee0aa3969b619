#include "verbs/sysfs/device_tree.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <dirent.h>
#include <sys/sysmacros.h>

#include "verbs/config/interface.h"
#include "verbs/sysfs/counters.h"
#include "verbs/sysfs/gid_directory.h"

namespace urxe::verbs {
namespace {

using std::string_literals::operator""s;

constexpr std::string_view kIbClass = "/sys/class/infiniband";
constexpr std::string_view kVerbsClass = "/sys/class/infiniband_verbs";
constexpr std::string_view kMadClass = "/sys/class/infiniband_mad";
constexpr std::string_view kRdmaCmClass = "/sys/class/misc/rdma_cm";
constexpr std::string_view kRdmaCmHome = "/sys/devices/virtual/misc/rdma_cm";
constexpr std::string_view kDevicesHome = "/sys/devices/virtual/urxe";
constexpr std::string_view kDev = "/dev/infiniband";

constexpr std::array kRoots = {kIbClass,    kVerbsClass,  kMadClass, kRdmaCmClass,
                               kRdmaCmHome, kDevicesHome, kDev};

// Versions of the ABI between kernel and user space that we speak.
constexpr std::string_view kVerbsAbi = "6\n";   // IB_USER_VERBS_ABI_VERSION
constexpr std::string_view kRxeAbi = "2\n";     // RXE_UVERBS_ABI_VERSION
constexpr std::string_view kMadAbi = "5\n";     // IB_USER_MAD_ABI_VERSION
constexpr std::string_view kRdmaCmAbi = "4\n";  // RDMA_USER_CM_ABI_VERSION

struct TextFile {
  std::string_view name;
  std::string text;
};

std::string path(std::string_view directory, std::string_view name) {
  return std::string(directory) + '/' + std::string(name);
}

std::string number_text(dev_t device) {
  return std::to_string(major(device)) + ':' + std::to_string(minor(device)) + '\n';
}

std::string node_uevent(dev_t device, std::string_view name) {
  return "MAJOR=" + std::to_string(major(device)) + "\nMINOR=" + std::to_string(minor(device)) +
         "\nDEVNAME=infiniband/" + std::string(name) + "\nDEVMODE=0666\n";
}

// 5054:00ff:fe88:0002
std::string guid_text(std::uint64_t guid) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) {
    text += kDigits[guid >> shift & 15];
    if (shift % 16 == 0 && shift != 0) text += ':';
  }
  return text + '\n';
}

std::string state_text(PortState state) {
  return state == PortState::active ? "4: ACTIVE\n" : "1: DOWN\n";
}

std::string state_text(PhysicalState state) {
  switch (state) {
    case PhysicalState::polling:
      return "2: Polling\n";
    case PhysicalState::disabled:
      return "3: Disabled\n";
    case PhysicalState::link_up:
      return "5: LinkUp\n";
  }
  return "";
}

// Adds the files of one device.
class DeviceFiles {
 public:
  DeviceFiles(PrivateTree& tree, const TreeContents& contents, std::size_t index)
      : tree_(tree),
        provider_(contents.provider),
        device_(contents.devices[index]),
        index_(index),
        home_(path(kDevicesHome, device_.name)),
        ib_(home_ + "/infiniband/" + device_.name),
        port_(ib_ + "/ports/" + std::to_string(kPort)) {}

  void add() {
    add_parent();
    add_ib_device();
    add_port();
    add_live_port_files();
    add_counters();
    add_gids();
    add_verbs_device();
  }

 private:
  // What would be the PCI device: only what tells where to run, and nothing by which another
  // vendor's provider could claim the device (modalias, vendor, driver).
  void add_parent() {
    const std::string real = "/sys/class/net/" + device_.netdev;
    const std::string cpus = read_small_file("/sys/devices/system/cpu/online").value_or("0\n");
    tree_.add_file(home_ + "/numa_node",
                   read_small_file(real + "/device/numa_node").value_or("-1\n"));
    tree_.add_file(home_ + "/local_cpulist",
                   read_small_file(real + "/device/local_cpulist").value_or(cpus));
    tree_.add_file(home_ + "/uevent", "");
    tree_.add_link(home_ + "/net/" + device_.netdev, real);
  }

  void add_ib_device() {
    const std::string guid = guid_text(device_.guid);
    for (const TextFile& file : {TextFile{"node_type", "1: CA\n"},
                                 {"node_guid", guid},
                                 {"sys_image_guid", guid},
                                 {"node_desc", "urxe\n"},
                                 {"fw_ver", "0.0.0\n"},
                                 {"hca_type", "urxe\n"},
                                 {"hw_rev", "0\n"},
                                 {"board_id", "urxe\n"},
                                 {"parent", device_.netdev + '\n'},
                                 {"uevent", "NAME=" + device_.name + '\n'}}) {
      tree_.add_file(path(ib_, file.name), file.text);
    }
    tree_.add_link(ib_ + "/device", "../../../" + device_.name);
    tree_.add_link(ib_ + "/subsystem", "../../../../../../class/infiniband");
    tree_.add_link(path(kIbClass, device_.name),
                   "../../devices/virtual/urxe/" + device_.name + "/infiniband/" + device_.name);
  }

  void add_port() {
    for (const TextFile& file : {TextFile{"lid", "0x0\n"},
                                 {"lid_mask_count", "0\n"},
                                 {"sm_lid", "0x0\n"},
                                 {"sm_sl", "0\n"},
                                 {"cap_mask", "0x00010000\n"},  // IB_PORT_CM_SUP
                                 {"has_smi", "0\n"},
                                 {"link_layer", "Ethernet\n"},
                                 {"pkeys/0", "0xffff\n"}}) {
      tree_.add_file(path(port_, file.name), file.text);
    }
  }

  void add_live_port_files() {
    const auto status = [&provider = provider_, index = index_] {
      return provider.port_status(index);
    };
    tree_.add_live_file(port_ + "/state", [=] { return state_text(status().state); });
    tree_.add_live_file(port_ + "/phys_state", [=] { return state_text(status().physical); });
    tree_.add_live_file(port_ + "/rate", [=] { return to_string(status().rate) + '\n'; });
  }

  void add_counters() {
    for (const CounterDirectory& directory : kCounterDirectories) {
      const std::string home = path(port_, directory.name);
      tree_.add_lazy_directory(home, [&tree = tree_, &provider = provider_, index = index_,
                                      &directory, home, filled = false](auto) mutable {
        if (!filled) fill_counters(tree, provider, index, directory, home);
        filled = true;
      });
    }
  }

  static void fill_counters(PrivateTree& tree, SysfsProvider& provider, std::size_t index,
                            const CounterDirectory& directory, const std::string& home) {
    for (const std::string_view name : directory.counters) {
      tree.add_live_file(path(home, name), [&provider, index, set = directory.set, name] {
        return std::to_string(provider.counter(index, set, name)) + '\n';
      });
    }
    // How long the kernel may cache them, in milliseconds.
    if (directory.set == CounterSet::hardware) tree.add_file(home + "/lifespan", "10\n");
  }

  // An unused entry's type and interface are an error in the kernel (EINVAL); here they are empty.
  void add_gids() {
    const auto gids = [&provider = provider_, index = index_] { return provider.gids(index); };
    const std::string attributes = port_ + "/gid_attrs";
    GidDirectory::add(
        tree_, port_ + "/gids", gids, [](const auto& gid) { return gid_text(gid) + '\n'; },
        gid_text({}) + '\n');
    GidDirectory::add(
        tree_, attributes + "/types", gids, [](const auto&) { return "RoCE v2\n"s; }, "");
    GidDirectory::add(
        tree_, attributes + "/ndevs", gids,
        [netdev = device_.netdev](const auto&) { return netdev + '\n'; }, "");
  }

  void add_verbs_device() {
    const std::string name = device_.uverbs_name();
    const std::string home = home_ + "/infiniband_verbs/" + name;
    const dev_t number = device_.uverbs_device();
    tree_.add_file(home + "/ibdev", device_.name + '\n');
    tree_.add_file(home + "/dev", number_text(number));
    tree_.add_file(home + "/abi_version", std::string(kRxeAbi));
    tree_.add_file(home + "/uevent", node_uevent(number, name));
    tree_.add_link(home + "/device", "../../../" + device_.name);
    tree_.add_link(home + "/subsystem", "../../../../../../class/infiniband_verbs");
    tree_.add_link(path(kVerbsClass, name),
                   "../../devices/virtual/urxe/" + device_.name + "/infiniband_verbs/" + name);
    tree_.add_device(path(kDev, name), number);
  }

  PrivateTree& tree_;
  SysfsProvider& provider_;
  const DeviceConfig& device_;
  const std::size_t index_;
  const std::string home_;  // of what is the parent of the RDMA device
  const std::string ib_;    // of the RDMA device
  const std::string port_;
};

void add_rdma_cm(PrivateTree& tree) {
  const dev_t number = rdma_cm_device();
  tree.add_file(path(kRdmaCmHome, "abi_version"), std::string(kRdmaCmAbi));
  tree.add_file(path(kRdmaCmHome, "dev"), number_text(number));
  tree.add_file(path(kRdmaCmHome, "uevent"), node_uevent(number, "rdma_cm"));
  tree.add_link(std::string(kRdmaCmClass), "../../devices/virtual/misc/rdma_cm");
  tree.add_device(path(kDev, "rdma_cm"), number);
}

// Shows what the kernel has in `directory` beside ours, which win where the names are equal.
void add_real(PrivateTree& tree, std::string_view directory, bool rdma_cm) {
  DIR* stream = opendir(std::string(directory).c_str());
  if (stream == nullptr) return;
  while (const dirent* entry = readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name.starts_with('.') || name == "abi_version" || (rdma_cm && name == "rdma_cm")) continue;
    const std::string real = path(directory, name);
    tree.add_link(real, real);
  }
  closedir(stream);
}

void build(PrivateTree& tree, const TreeContents& contents) {
  tree.add_file(path(kVerbsClass, "abi_version"), std::string(kVerbsAbi));
  tree.add_file(path(kMadClass, "abi_version"), std::string(kMadAbi));
  for (std::size_t i = 0; i < contents.devices.size(); ++i) DeviceFiles(tree, contents, i).add();
  if (contents.rdma_cm) add_rdma_cm(tree);
  if (contents.hide_real) return;
  for (const std::string_view directory : {kIbClass, kVerbsClass, kMadClass, kDev}) {
    add_real(tree, directory, contents.rdma_cm);
  }
}

}  // namespace

bool belongs_to_tree(std::string_view path) {
  return std::any_of(kRoots.begin(), kRoots.end(), [&](std::string_view root) {
    return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
  });
}

tl::expected<std::unique_ptr<PrivateTree>, int> make_device_tree(
    const std::vector<std::string>& bases, const TreeContents& contents) {
  int error = ENOENT;
  for (const std::string& base : bases) {
    auto directory = PrivateDirectory::create({base});
    if (!directory) {
      error = directory.error();
      continue;
    }
    auto tree = std::make_unique<PrivateTree>(*std::move(directory));
    build(*tree, contents);
    if (tree->error() == 0) return tree;
    error = tree->error();
  }
  return tl::unexpected(error);
}

}  // namespace urxe::verbs
