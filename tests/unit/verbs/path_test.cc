#include "verbs/preload/path.h"

#include <catch2/catch.hpp>

#include "verbs/sysfs/device_tree.h"
#include "verbs/sysfs/private_directory.h"

namespace urxe::verbs {
namespace {

TEST_CASE("absolute paths outside of /sys and /dev do not concern us") {
  CHECK_FALSE(may_concern("/etc/infiniband"));
  CHECK_FALSE(may_concern("/usr/lib/urxe/rdma_cm"));
  CHECK_FALSE(may_concern("/"));
  CHECK_FALSE(may_concern(""));
  CHECK_FALSE(may_concern(nullptr));
}

TEST_CASE("of /sys and /dev only what has to do with RDMA concerns us") {
  CHECK_FALSE(may_concern("/sys/class/net/eth0/address"));
  CHECK_FALSE(may_concern("/dev/null"));
  CHECK(may_concern("/sys/class/infiniband"));
  CHECK(may_concern("/sys/class/infiniband_verbs/uverbs0/ibdev"));
  CHECK(may_concern("/sys/class/misc/rdma_cm/abi_version"));
  CHECK(may_concern("/sys/devices/virtual/urxe/rxe0/numa_node"));
  CHECK(may_concern("/dev/infiniband/uverbs0"));
  CHECK(may_concern("//sys//class/./infiniband"));
}

TEST_CASE("every place in the tree is one that may concern us") {
  for (const char* path :
       {"/sys/class/infiniband", "/sys/class/infiniband_verbs", "/sys/class/infiniband_mad",
        "/sys/class/misc/rdma_cm", "/sys/devices/virtual/misc/rdma_cm", "/sys/devices/virtual/urxe",
        "/dev/infiniband"}) {
    CAPTURE(path);
    CHECK(belongs_to_tree(path));
    CHECK(may_concern(path));
    CHECK(belongs_to_tree(path + std::string("/x")));
    CHECK_FALSE(belongs_to_tree(path + std::string("x")));
  }
  CHECK_FALSE(belongs_to_tree("/sys/class"));
}

TEST_CASE("relative paths concern us by their words, or all of them once there is a tree") {
  CHECK_FALSE(may_concern("main.c"));
  CHECK(may_concern("class/infiniband"));
  CHECK(may_concern("gids/0"));
  CHECK(may_concern("hw_counters/sent_pkts"));
  tree_in_use = true;
  CHECK(may_concern("main.c"));
  tree_in_use = false;
}

TEST_CASE("a tidy path has no empty components and no dots") {
  CHECK(tidy_path("/") == "/");
  CHECK(tidy_path("//") == "/");
  CHECK(tidy_path("/sys//class/./infiniband") == "/sys/class/infiniband");
  CHECK(tidy_path("/sys/.hidden/...") == "/sys/.hidden/...");
}

TEST_CASE("a tidy path ends with a slash if it must be a directory") {
  CHECK(tidy_path("/sys/class/") == "/sys/class/");
  CHECK(tidy_path("/sys/class//") == "/sys/class/");
  CHECK(tidy_path("/sys/class/.") == "/sys/class/");
}

TEST_CASE("only a whole component of two dots leads up") {
  CHECK(find_dot_dot("/a/../b") == 2);
  CHECK(find_dot_dot("/a/..") == 2);
  CHECK(find_dot_dot("/..a/.../../b") == 8);
  CHECK_FALSE(find_dot_dot("/a/..b/c.."));
}

TEST_CASE("the parent of the root is the root") {
  CHECK(parent_of("/a/b") == "/a");
  CHECK(parent_of("/a") == "/");
  CHECK(parent_of("/") == "/");
}

TEST_CASE("the place of a private directory is recognised and taken off") {
  CHECK(inside_private_directory("/dev/shm/urxe-tree.aB3xyZ/sys/class/infiniband") ==
        "/sys/class/infiniband");
  CHECK(inside_private_directory("/tmp/a/urxe-tree.aB3xyZ/dev/infiniband/") == "/dev/infiniband/");
}

TEST_CASE("what only looks like a private directory is left alone") {
  CHECK(inside_private_directory("/dev/shm/urxe-tree.aB3xyZ").empty());
  CHECK(inside_private_directory("/dev/shm/urxe-tree.a/b3xyZ/sys").empty());
  CHECK(inside_private_directory("/dev/shm/my-urxe-tree.aB3xyZ/sys").empty());
  CHECK(inside_private_directory("urxe-tree.aB3xyZ/sys").empty());
  CHECK(inside_private_directory("/sys/class").empty());
  CHECK(inside_private_directory("").empty());
}

}  // namespace
}  // namespace urxe::verbs
