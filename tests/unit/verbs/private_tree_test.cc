#include "verbs/sysfs/private_tree.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs/sysfs/device_tree.h"

namespace urxe::verbs {
namespace {

namespace fs = std::filesystem;

// A place for private directories that nobody else uses.
class Base {
 public:
  Base() : path_(fs::temp_directory_path() / "urxe-test-XXXXXX") {
    std::string name = path_.string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  Base(const Base&) = delete;
  Base& operator=(const Base&) = delete;
  ~Base() { fs::remove_all(path_); }

  [[nodiscard]] std::vector<std::string> list() const { return {path_.string()}; }
  [[nodiscard]] std::size_t count() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

PrivateTree make_tree(const Base& base) {
  auto directory = PrivateDirectory::create(base.list());
  REQUIRE(directory);
  return PrivateTree(*std::move(directory));
}

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_CASE("a private directory is closed to others, and vanishes with its owner") {
  const Base base;
  {
    const auto directory = PrivateDirectory::create(base.list());
    REQUIRE(directory);
    struct stat status {};
    REQUIRE(stat((*directory)->path().c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0700);
    CHECK((*directory)->is_reachable());
    std::ofstream((*directory)->path() + "/file") << "text";
    fs::create_directories((*directory)->path() + "/a/b/c");
  }
  CHECK(base.count() == 0);
}

TEST_CASE("a private directory is made in the first place where that works") {
  const Base base;
  const auto directory = PrivateDirectory::create({"/nonexistent", base.list()[0]});
  REQUIRE(directory);
  CHECK((*directory)->path().starts_with(base.list()[0]));
  const auto failed = PrivateDirectory::create({"/nonexistent"});
  REQUIRE_FALSE(failed);
  CHECK(failed.error() == ENOENT);
}

TEST_CASE("a leftover of a process that was killed is removed by the next, a live one is not") {
  const Base base;
  const auto living = PrivateDirectory::create(base.list());
  const pid_t child = fork();
  if (child == 0) {
    const auto killed = PrivateDirectory::create(base.list());
    fs::create_directories((*killed)->path() + "/sys/class");
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  CHECK(base.count() == 2);
  const auto next = PrivateDirectory::create(base.list());
  CHECK(base.count() == 2);
  CHECK((*living)->is_reachable());
}

TEST_CASE("a leftover that is the working directory stays for the time being") {
  const Base base;
  const fs::path before = fs::current_path();
  const fs::path leftover = base.path() / "urxe-tree.abcdef";
  fs::create_directories(leftover / "sys");
  fs::current_path(leftover / "sys");
  {
    const auto directory = PrivateDirectory::create(base.list());
    CHECK(fs::exists(leftover));
  }
  fs::current_path(before);
  const auto directory = PrivateDirectory::create(base.list());
  CHECK_FALSE(fs::exists(leftover));
}

TEST_CASE("a forked child does not remove its parent's directory") {
  const Base base;
  auto directory = PrivateDirectory::create(base.list());
  const pid_t child = fork();
  if (child == 0) {
    directory->reset();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  CHECK((*directory)->is_reachable());
}

TEST_CASE("a directory that was removed is not reachable") {
  const Base base;
  const auto directory = PrivateDirectory::create(base.list());
  fs::remove((*directory)->path());
  CHECK_FALSE((*directory)->is_reachable());
}

TEST_CASE("files have the kernel's modes, whatever the umask") {
  const Base base;
  const mode_t before = umask(0077);
  PrivateTree tree = make_tree(base);
  tree.add_file("/sys/file", "text\n");
  tree.add_device("/dev/infiniband/uverbs0", makedev(231, 192));
  umask(before);
  CHECK(tree.error() == 0);
  struct stat status {};
  REQUIRE(stat(tree.locate("/sys/file").c_str(), &status) == 0);
  CHECK(status.st_mode == (S_IFREG | 0444));
  REQUIRE(stat(tree.locate("/dev/infiniband/uverbs0").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0666);
  CHECK(tree.device_number(status.st_ino) == makedev(231, 192));
}

TEST_CASE("a live file shows what is true when it is used, also where it is open already") {
  const Base base;
  PrivateTree tree = make_tree(base);
  std::string state = "4: ACTIVE\n";
  tree.add_live_file("/sys/state", [&] { return state; });
  const std::string path = tree.locate("/sys/state");
  CHECK(read(path) == "4: ACTIVE\n");
  std::ifstream open_already(path);
  state = "1: DOWN\n";
  CHECK(tree.prepare("/sys/state"));
  CHECK(read(path) == "1: DOWN\n");
  std::string line;
  std::getline(open_already, line);
  CHECK(line == "1: DOWN");
  state = "4: ACTIVE\n";
  struct stat status {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  tree.prepare(status.st_ino);
  CHECK(read(path) == "4: ACTIVE\n");
}

TEST_CASE("a lazy directory is told which entry is wanted") {
  const Base base;
  PrivateTree tree = make_tree(base);
  std::vector<std::string> wanted;
  tree.add_lazy_directory("/sys/lazy", [&](std::string_view name) {
    wanted.emplace_back(name);
    if (!name.empty()) tree.add_file("/sys/lazy/" + std::string(name), "");
  });
  CHECK(wanted.empty());
  CHECK(tree.prepare("/sys/lazy/one"));
  CHECK(tree.prepare("/sys/lazy/one"));
  CHECK(tree.prepare("/sys/lazy"));
  CHECK_FALSE(tree.prepare("/sys/other/one"));
  CHECK(wanted == std::vector<std::string>{"one", ""});
}

TEST_CASE("all lazy directories below a directory can be filled at once") {
  const Base base;
  PrivateTree tree = make_tree(base);
  int filled = 0;
  for (const char* path : {"/sys/a/lazy", "/sys/a/b/lazy", "/sys/ab/lazy"}) {
    tree.add_lazy_directory(path, [&](auto) { ++filled; });
  }
  tree.prepare_below("/sys/a");
  CHECK(filled == 2);
}

TEST_CASE("what a link out of the tree leads to is none of our files") {
  const Base base;
  PrivateTree tree = make_tree(base);
  tree.add_link("/sys/out", "/proc/self");
  CHECK(tree.prepare("/sys/out") == 0);
}

TEST_CASE("a tree that cannot be completed says so") {
  const Base base;
  PrivateTree tree = make_tree(base);
  tree.add_file("/sys/file", "");
  tree.add_file("/sys/file", "");
  CHECK(tree.error() == EEXIST);
}

class FakeProvider : public SysfsProvider {
 public:
  PortStatus port_status(std::size_t) override { return status; }
  std::vector<wire::IpAddress> gids(std::size_t) override { return gids_; }
  std::uint64_t counter(std::size_t, CounterSet set, std::string_view name) override {
    return set == CounterSet::hardware && name == "sent_pkts" ? sent : 0;
  }

  PortStatus status;
  std::uint64_t sent = 0;
  std::vector<wire::IpAddress> gids_{wire::IpAddress::from_v4(0x7F000001)};
};

struct DeviceTree {
  Base base;
  std::vector<DeviceConfig> devices{{.name = "rxe7",
                                     .netdev = "lo",
                                     .addresses = {wire::IpAddress::from_v4(0x7F000001)},
                                     .guid = 0x505400fffe880002,
                                     .uverbs_number = 2}};
  FakeProvider provider;
  std::unique_ptr<PrivateTree> tree;

  explicit DeviceTree(bool rdma_cm = true) {
    auto made = make_device_tree(
        base.list(),
        {.devices = devices, .provider = provider, .rdma_cm = rdma_cm, .hide_real = true});
    REQUIRE(made);
    tree = *std::move(made);
  }
  std::string text(const std::string& path) {
    CAPTURE(path);
    REQUIRE(tree->prepare(path));
    return read(tree->locate(path));
  }
};

TEST_CASE("a device's files say what the kernel's would") {
  DeviceTree tree;
  const std::string ib = "/sys/class/infiniband/rxe7/";
  CHECK(tree.text(ib + "node_type") == "1: CA\n");
  CHECK(tree.text(ib + "node_guid") == "5054:00ff:fe88:0002\n");
  CHECK(tree.text(ib + "sys_image_guid") == "5054:00ff:fe88:0002\n");
  CHECK(tree.text(ib + "parent") == "lo\n");
  CHECK(tree.text(ib + "ports/1/link_layer") == "Ethernet\n");
  CHECK(tree.text(ib + "ports/1/pkeys/0") == "0xffff\n");
  CHECK(tree.text(ib + "ports/1/cap_mask") == "0x00010000\n");
  const std::string verbs = "/sys/class/infiniband_verbs/";
  CHECK(tree.text(verbs + "abi_version") == "6\n");
  CHECK(tree.text(verbs + "uverbs2/ibdev") == "rxe7\n");
  CHECK(tree.text(verbs + "uverbs2/dev") == "231:194\n");
  CHECK(tree.text(verbs + "uverbs2/abi_version") == "2\n");
  CHECK(tree.text("/sys/class/misc/rdma_cm/abi_version") == "4\n");
}

TEST_CASE("nothing tells of a vendor by whose provider libibverbs could take the device") {
  DeviceTree tree;
  const std::string device = "/sys/class/infiniband/rxe7/device";
  CHECK(tree.text(device + "/numa_node") == "-1\n");
  for (const char* name : {"/modalias", "/vendor", "/device", "/driver", "/subsystem"}) {
    CHECK_FALSE(tree.tree->prepare(device + name));
  }
}

TEST_CASE("the files of a port follow its state") {
  DeviceTree tree;
  const std::string port = "/sys/class/infiniband/rxe7/ports/1/";
  CHECK(tree.text(port + "state") == "1: DOWN\n");
  CHECK(tree.text(port + "phys_state") == "3: Disabled\n");
  tree.provider.status = {
      PortState::active, PhysicalState::link_up, {LinkWidth::x4, LinkSpeed::edr}};
  CHECK(tree.text(port + "state") == "4: ACTIVE\n");
  CHECK(tree.text(port + "phys_state") == "5: LinkUp\n");
  CHECK(tree.text(port + "rate") == "100 Gb/sec (4X EDR)\n");
}

TEST_CASE("counters count") {
  DeviceTree tree;
  const std::string counter = "/sys/class/infiniband/rxe7/ports/1/hw_counters/sent_pkts";
  CHECK(tree.text(counter) == "0\n");
  tree.provider.sent = 18446744073709551615U;
  CHECK(tree.text(counter) == "18446744073709551615\n");
}

TEST_CASE("a GID table shows 1024 entries with type and interface, and follows changes") {
  DeviceTree tree;
  const std::string port = "/sys/class/infiniband/rxe7/ports/1/";
  const std::string unused = "0000:0000:0000:0000:0000:0000:0000:0000\n";
  CHECK(tree.text(port + "gids/0") == "0000:0000:0000:0000:0000:ffff:7f00:0001\n");
  CHECK(tree.text(port + "gid_attrs/types/0") == "RoCE v2\n");
  CHECK(tree.text(port + "gid_attrs/ndevs/0") == "lo\n");
  CHECK(tree.text(port + "gids/1") == unused);
  CHECK(tree.text(port + "gid_attrs/types/1").empty());
  CHECK(tree.text(port + "gids/1023") == unused);
  CHECK_FALSE(tree.tree->prepare(port + "gids/1024"));
  CHECK_FALSE(tree.tree->prepare(port + "gids/x"));
  REQUIRE(tree.tree->prepare(port + "gids"));
  const fs::path gids = tree.tree->locate(port + "gids");
  CHECK(std::distance(fs::directory_iterator(gids), fs::directory_iterator()) == 1024);

  tree.provider.gids_ = {wire::IpAddress(), *wire::IpAddress::parse("fe80::1")};
  CHECK(tree.text(port + "gids/0") == unused);
  CHECK(tree.text(port + "gids/1") == "fe80:0000:0000:0000:0000:0000:0000:0001\n");
  CHECK(tree.text(port + "gid_attrs/types/1") == "RoCE v2\n");
  CHECK(tree.text(port + "gid_attrs/types/0").empty());
}

TEST_CASE("without a connection manager there is no rdma_cm") {
  DeviceTree tree(false);
  CHECK_FALSE(tree.tree->prepare("/sys/class/misc/rdma_cm"));
  CHECK_FALSE(tree.tree->prepare("/dev/infiniband/rdma_cm"));
  CHECK(tree.tree->prepare("/dev/infiniband/uverbs2"));
}

}  // namespace
}  // namespace urxe::verbs
