// What a program sees of the files of emulated devices. Runs with a library preloaded that has fake
// devices rxe0 and rxe1 on lo.
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/compat/preload/fake_device.h"
#include "tests/support/skip.h"

namespace urxe::test {
namespace {

using Names = std::set<std::string>;

const std::string kDevice = "/sys/class/infiniband/rxe0";

int in_child(const std::function<int()>& check) {
  const pid_t child = fork();
  if (child == 0) exit(check());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string text_of(int fd) {
  std::array<char, 256> buffer{};
  const ssize_t size = fd < 0 ? -1 : read(fd, buffer.data(), buffer.size());
  if (fd >= 0) close(fd);
  return size < 0 ? "(no file)" : std::string(buffer.data(), static_cast<std::size_t>(size));
}

std::string text_of(const std::string& path) { return text_of(open(path.c_str(), O_RDONLY)); }

std::string text_of(FILE* stream) {
  if (stream == nullptr) return "(no file)";
  std::array<char, 256> buffer{};
  const std::size_t size = fread(buffer.data(), 1, buffer.size(), stream);
  fclose(stream);
  return {buffer.data(), size};
}

Names names_in(DIR* directory) {
  REQUIRE(directory != nullptr);
  Names names;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') names.insert(entry->d_name);
  }
  closedir(directory);
  return names;
}

TEST_CASE("every way to open a file reads it") {
  const std::string path = kDevice + "/node_type";
  const std::string expected = "1: CA\n";
  CHECK(text_of(open(path.c_str(), O_RDONLY)) == expected);
  CHECK(text_of(open64(path.c_str(), O_RDONLY)) == expected);
  CHECK(text_of(openat(AT_FDCWD, path.c_str(), O_RDONLY)) == expected);
  CHECK(text_of(openat64(-1, path.c_str(), O_RDONLY)) == expected);
  CHECK(text_of(fopen(path.c_str(), "r")) == expected);
  CHECK(text_of(fopen64(path.c_str(), "re")) == expected);
  CHECK(text_of(freopen(path.c_str(), "r", fopen("/dev/null", "r"))) == expected);
  CHECK(text_of(freopen64(path.c_str(), "r", fopen("/dev/null", "r"))) == expected);
  const int directory = open(kDevice.c_str(), O_RDONLY | O_DIRECTORY);
  CHECK(text_of(openat(directory, "node_type", O_RDONLY)) == expected);
  close(directory);
  const int sys = open("/sys", O_RDONLY | O_DIRECTORY);
  CHECK(text_of(openat(sys, "class/infiniband/rxe0/node_type", O_RDONLY)) == expected);
  close(sys);
}

TEST_CASE("every spelling of a path leads to the file") {
  for (const char* path :
       {"/sys/class/infiniband/rxe0/node_type", "//sys///class/./infiniband/rxe0/node_type",
        "/sys/class/infiniband/../infiniband/rxe0/node_type",
        "/sys/class/infiniband_verbs/../infiniband/rxe0/node_type",
        "/sys/class/infiniband/rxe0/../rxe0/node_type",
        "/sys/class/infiniband/rxe0/device/infiniband/rxe0/node_type",
        "/sys/class/net/../infiniband/rxe0/node_type",
        "/sys/class/infiniband_verbs/uverbs0/device/infiniband/rxe0/node_type",
        "/sys/devices/virtual/urxe/rxe0/infiniband/rxe0/node_type"}) {
    CAPTURE(path);
    CHECK(text_of(path) == "1: CA\n");
  }
}

TEST_CASE("a way through our directories may lead out again") {
  CHECK(access("/sys/class/infiniband/../net/lo/address", R_OK) == 0);
  CHECK(text_of("/sys/class/infiniband/../net/lo/ifindex") == text_of("/sys/class/net/lo/ifindex"));
  CHECK(access("/sys/class/infiniband/rxe0/device/net/lo/ifindex", R_OK) == 0);
}

TEST_CASE("what does not exist gives ENOENT, what is no directory ENOTDIR") {
  CHECK(access("/sys/class/infiniband/mlx5_0", F_OK) == -1);
  CHECK(errno == ENOENT);
  CHECK(access("/sys/class/infiniband/rxe0/../../nothing", F_OK) == -1);
  CHECK(errno == ENOENT);
  CHECK(open("/sys/class/infiniband/rxe0/node_type/x", O_RDONLY) == -1);
  CHECK(errno == ENOTDIR);
  CHECK(opendir("/sys/class/infiniband/rxe0/node_type") == nullptr);
  CHECK(errno == ENOTDIR);
}

TEST_CASE("every way to list a directory lists the devices") {
  const Names expected = {"rxe0", "rxe1"};
  CHECK(names_in(opendir("/sys/class/infiniband")) == expected);
  CHECK(names_in(opendir("/sys/class/infiniband/")) == expected);
  const int fd = open("/sys/class/infiniband", O_RDONLY | O_DIRECTORY);
  CHECK(names_in(fdopendir(fd)) == expected);
  dirent** list = nullptr;
  const auto visible = [](const dirent* entry) { return entry->d_name[0] != '.' ? 1 : 0; };
  REQUIRE(scandir("/sys/class/infiniband", &list, visible, &alphasort) == 2);
  CHECK(std::string(list[0]->d_name) == "rxe0");
  free(list[0]);
  free(list[1]);
  free(list);
}

TEST_CASE("glob finds devices and ports") {
  glob_t found{};
  REQUIRE(glob("/sys/class/infiniband/*/ports/1/sta*", 0, nullptr, &found) == 0);
  REQUIRE(found.gl_pathc == 2);
  CHECK(std::string(found.gl_pathv[1]) == "/sys/class/infiniband/rxe1/ports/1/state");
  globfree(&found);
  glob64_t found64{};
  REQUIRE(glob64("/dev/infiniband/uverbs[0-9]", 0, nullptr, &found64) == 0);
  CHECK(found64.gl_pathc == 2);
  globfree64(&found64);
  CHECK(glob("/etc/passw*", 0, nullptr, &found) == 0);
  CHECK(found.gl_pathc >= 1);
  globfree(&found);
}

TEST_CASE("symbolic links read and resolve as the kernel's, and never show our place") {
  std::array<char, PATH_MAX> name{};
  const std::string home = "/sys/devices/virtual/urxe/rxe0";
  ssize_t size = readlink(kDevice.c_str(), name.data(), name.size());
  CHECK(std::string(name.data(), static_cast<std::size_t>(size)) ==
        "../../devices/virtual/urxe/rxe0/infiniband/rxe0");
  CHECK(realpath(kDevice.c_str(), name.data()) == home + "/infiniband/rxe0");
  const std::unique_ptr<char, decltype(&free)> device(
      realpath((kDevice + "/device").c_str(), nullptr), &free);
  CHECK(std::string(device.get()) == home);
  const std::unique_ptr<char, decltype(&free)> canonical(
      canonicalize_file_name((kDevice + "/device/").c_str()), &free);
  CHECK(std::string(canonical.get()) == home);
  CHECK(access((std::string(device.get()) + "/numa_node").c_str(), R_OK) == 0);
  const int fd = open(kDevice.c_str(), O_RDONLY);
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  size = readlinkat(AT_FDCWD, link.c_str(), name.data(), name.size());
  CHECK(std::string(name.data(), static_cast<std::size_t>(size)) == home + "/infiniband/rxe0");
  close(fd);
}

TEST_CASE("the working directory may be in the tree, and has its public name") {
  REQUIRE(chdir((kDevice + "/ports/1").c_str()) == 0);
  std::array<char, PATH_MAX> name{};
  const std::string expected = "/sys/devices/virtual/urxe/rxe0/infiniband/rxe0/ports/1";
  CHECK(getcwd(name.data(), name.size()) == expected);
  const std::unique_ptr<char, decltype(&free)> current(::get_current_dir_name(), &free);
  CHECK(std::string(current.get()) == expected);
  CHECK(chdir("") == -1);
  CHECK(errno == ENOENT);
  CHECK(text_of("link_layer") == "Ethernet\n");
  CHECK(text_of("gids/0") == "0000:0000:0000:0000:0000:ffff:7f00:0001\n");
  CHECK(text_of("gid_attrs/types/0") == "RoCE v2\n");
  CHECK(text_of("../../node_type") == "1: CA\n");
  CHECK(names_in(opendir("gids")).size() == 1024);
  CHECK(realpath(".", name.data()) == expected);
  REQUIRE(chdir("/") == 0);
}

TEST_CASE("files that change are read anew, however they are opened") {
  const std::string counter = kDevice + "/ports/1/hw_counters/sent_pkts";
  Names seen;
  seen.insert(text_of(counter));
  seen.insert(text_of(fopen(counter.c_str(), "r")));
  const int directory = open((kDevice + "/ports/1/hw_counters").c_str(), O_RDONLY);
  seen.insert(text_of(openat(directory, "sent_pkts", O_RDONLY)));
  close(directory);
  REQUIRE(chdir((kDevice + "/ports/1/hw_counters").c_str()) == 0);
  seen.insert(text_of("sent_pkts"));
  seen.insert(text_of(fopen("sent_pkts", "r")));
  REQUIRE(chdir("/") == 0);
  CHECK(seen.size() == 5);
}

TEST_CASE("a forked child reads its parent's tree, and makes one of its own when that is gone") {
  REQUIRE(text_of(kDevice + "/node_type") == "1: CA\n");
  struct stat before {};
  REQUIRE(stat(kDevice.c_str(), &before) == 0);
  CHECK(in_child([&] {
          struct stat status {};
          if (stat(kDevice.c_str(), &status) != 0) return 1;
          return status.st_ino == before.st_ino ? 0 : 2;
        }) == 0);
  CHECK(text_of(kDevice + "/node_type") == "1: CA\n");
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  // A child makes a tree, forks, and exits before its child looks.
  CHECK(in_child([&] {
          std::array<int, 2> gone{};
          if (pipe(gone.data()) != 0) return 1;
          if (fork() == 0) {
            close(gone[1]);
            char byte = 0;
            [[maybe_unused]] const auto none = read(gone[0], &byte, 1);
            byte = text_of(kDevice + "/node_type") == "1: CA\n" ? 'y' : 'n';
            [[maybe_unused]] const auto written = write(ends[1], &byte, 1);
            exit(0);
          }
          return 0;
        }) == 0);
  char byte = 0;
  REQUIRE(read(ends[0], &byte, 1) == 1);
  CHECK(byte == 'y');
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("a process that gave up its user id can still read") {
  if (geteuid() != 0) return skip("needs root to become another user");
  REQUIRE(text_of(kDevice + "/node_type") == "1: CA\n");
  CHECK(in_child([] {
          if (setresuid(65534, 65534, 65534) != 0) return 1;
          if (text_of(kDevice + "/node_type") != "1: CA\n") return 2;
          return text_of(kDevice + "/ports/1/hw_counters/rcvd_pkts") != "(no file)" ? 0 : 3;
        }) == 0);
}

TEST_CASE("threads may look at everything at once") {
  std::vector<std::thread> readers;
  std::atomic<int> good{0};
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        good += text_of(kDevice + "/node_type") == "1: CA\n" ? 1 : 0;
        good += text_of(kDevice + "/ports/1/counters/symbol_error") != "(no file)" ? 1 : 0;
        struct stat status {};
        good += stat("/dev/infiniband/uverbs1", &status) == 0 && S_ISCHR(status.st_mode) ? 1 : 0;
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  CHECK(good == 4 * 50 * 3);
}

}  // namespace
}  // namespace urxe::test
