#include "emulator/scatter_gather.h"

#include <numeric>
#include <random>

#include <catch2/catch.hpp>

#include "tests/support/work_doubles.h"

namespace urxe::test {
namespace {

using namespace emulator;

struct Lists {
  Lists() {
    start = memory.map(4096);
    region = *keys.register_region(
        pd, {.start = start, .length = 4096, .iova = start, .access = kLocalWrite});
    std::uint8_t* bytes = memory.at(start, 4096);
    std::iota(bytes, bytes + 4096, std::uint8_t{0});
  }
  Sge sge(std::uint64_t offset, std::uint32_t length) const {
    return {start + offset, length, region->key()};
  }
  SgePosition::Memory access() { return {.keys = keys, .program = memory, .pd = pd}; }

  MemoryDouble memory;
  ProtectionDomain pd;
  KeyTable keys{10, 10, 0};
  std::uint64_t start;
  MemoryRegion* region;
};

TEST_CASE("pieces of a list are joined in order, whatever the sizes") {
  std::mt19937 random(GENERATE(1, 2, 3, 4, 5));
  Lists t;
  std::vector<Sge> list;
  std::vector<std::uint8_t> expected;
  for (int i = 0; i < 8; ++i) {
    const auto length = static_cast<std::uint32_t>(random() % 4 == 0 ? 0 : random() % 100);
    const auto offset = static_cast<std::uint32_t>(random() % 3900);
    list.push_back(t.sge(offset, length));
    const std::uint8_t* bytes = t.memory.at(t.start + offset, length);
    expected.insert(expected.end(), bytes, bytes + length);
  }
  std::vector<std::uint8_t> gathered;
  SgePosition position;
  while (gathered.size() < expected.size()) {
    std::vector<std::uint8_t> part(
        std::min<std::size_t>(1 + random() % 64, expected.size() - gathered.size()));
    REQUIRE_FALSE(position.gather(list, t.access(), part));
    gathered.insert(gathered.end(), part.begin(), part.end());
    if (random() % 3 == 0) position.seek(list, gathered.size());  // the same place
  }
  CHECK(gathered == expected);
}

TEST_CASE("what is scattered is gathered again") {
  std::mt19937 random(GENERATE(1, 2, 3));
  Lists t;
  const std::vector<Sge> list{t.sge(0, 10), t.sge(100, 0), t.sge(200, 33), t.sge(300, 57)};
  std::vector<std::uint8_t> data(100);
  std::generate(data.begin(), data.end(), [&] { return static_cast<std::uint8_t>(random()); });
  SgePosition position;
  for (std::size_t done = 0; done < data.size();) {
    const std::size_t part = std::min<std::size_t>(1 + random() % 40, data.size() - done);
    REQUIRE_FALSE(position.scatter(list, t.access(), std::span(data).subspan(done, part)));
    done += part;
  }
  std::vector<std::uint8_t> back(100);
  position.rewind();
  REQUIRE_FALSE(position.gather(list, t.access(), back));
  CHECK(back == data);
  CHECK(*t.memory.at(t.start + 10, 1) == 10);  // untouched
}

TEST_CASE("a list that is too short, an unknown key and lost memory are faults") {
  Lists t;
  std::vector<std::uint8_t> data(20);
  SgePosition position;
  SECTION("short") {
    const std::vector<Sge> list{t.sge(0, 19)};
    CHECK(position.gather(list, t.access(), data)->fault == MemoryFault::out_of_bounds);
  }
  SECTION("key") {
    std::vector<Sge> list{t.sge(0, 10), t.sge(10, 10)};
    list[1].lkey ^= 1;
    const auto fault = position.gather(list, t.access(), data);
    REQUIRE(fault);
    CHECK(fault->fault == MemoryFault::unknown_key);
    CHECK(fault->sge.lkey == list[1].lkey);
  }
  SECTION("bounds") {
    const std::vector<Sge> list{t.sge(4090, 20)};
    CHECK(position.scatter(list, t.access(), data)->fault == MemoryFault::out_of_bounds);
  }
  SECTION("memory") {
    t.memory.unmap(t.start);
    const std::vector<Sge> list{t.sge(0, 20)};
    CHECK(position.scatter(list, t.access(), data)->fault == MemoryFault::gone);
  }
}

TEST_CASE("a program that changes a list meanwhile is caught, not believed") {
  Lists t;
  std::vector<Sge> list{t.sge(0, 16), t.sge(100, 16)};
  std::vector<std::uint8_t> data(8);
  SgePosition position;
  REQUIRE_FALSE(position.gather(list, t.access(), data));
  SECTION("an element shrinks below the position") {
    list[0].length = 4;
    REQUIRE_FALSE(position.gather(list, t.access(), data));
    CHECK(data[0] == 100);
  }
  SECTION("an element points elsewhere") {
    list[0].address = 0x1000;
    CHECK(position.gather(list, t.access(), data)->fault == MemoryFault::out_of_bounds);
  }
  SECTION("an element grows beyond the region") {
    list[0].length = 0xFFFFFFFF;
    data.resize(5000);
    CHECK(position.gather(list, t.access(), data)->fault == MemoryFault::out_of_bounds);
  }
}

TEST_CASE("a list is checked as a whole, but for empty elements") {
  Lists t;
  std::vector<Sge> list{t.sge(0, 16), t.sge(4000, 96), {0xDEAD, 0, 0xBEEF}};
  CHECK_FALSE(check_list(list, t.keys, t.pd, kLocalWrite));
  list[1].length = 97;
  const auto fault = check_list(list, t.keys, t.pd, kLocalRead);
  REQUIRE(fault);
  CHECK(fault->fault == MemoryFault::out_of_bounds);
  CHECK(fault->sge.length == 97);
}

}  // namespace
}  // namespace urxe::test
