#include "emulator/memory.h"

#include <map>
#include <random>
#include <set>

#include <catch2/catch.hpp>

namespace urxe::emulator {
namespace {

constexpr std::uint64_t kStart = 0x10000;
constexpr std::uint64_t kLength = 0x1000;
constexpr std::uint64_t kIova = 0xFF00000000;
constexpr Access kAll = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kWindowBind;
constexpr wire::Qpn kQpn{0x11};

struct Table {
  ProtectionDomain pd;
  ProtectionDomain other_pd;
  KeyTable keys{100, 100, 1};  // its regions use the domains

  MemoryRegion& region(Access access = kAll, std::uint64_t iova = kIova) {
    return **keys.register_region(
        pd, {.start = kStart, .length = kLength, .iova = iova, .access = access});
  }
  MemoryWindow& window(WindowType type) { return **keys.create_window(pd, type); }
  auto local(std::uint32_t key, std::uint64_t address, std::uint64_t length,
             Access needs = kLocalRead) {
    return keys.resolve_local(pd, key, address, length, needs);
  }
  auto remote(std::uint32_t key, std::uint64_t address, std::uint64_t length,
              Access needs = kRemoteRead, wire::Qpn qpn = kQpn) {
    return keys.resolve_remote(pd, qpn, wire::RKey{key}, address, length, needs);
  }
  WindowBind bind_of(const MemoryWindow& window, const MemoryRegion& region) const {
    return {.address = kIova + 0x100,
            .length = 0x200,
            .region = wire::LKey{region.key()},
            .window = wire::RKey{window.key()},
            .new_key = wire::RKey{(window.key() & ~0xFFU) | ((window.key() + 7) & 0xFF)},
            .access = kRemoteRead | kRemoteWrite};
  }
};

MemoryFault fault_of(const tl::expected<std::uint64_t, MemoryFault>& result) {
  REQUIRE_FALSE(result);
  return result.error();
}

// --- regions

TEST_CASE("addresses are translated from the I/O address to the program's") {
  Table t;
  const auto key = t.region().key();
  CHECK(t.local(key, kIova, kLength) == kStart);
  CHECK(t.local(key, kIova + 0x123, 1) == kStart + 0x123);
  CHECK(t.remote(key, kIova + kLength - 8, 8) == kStart + kLength - 8);
}

TEST_CASE("nothing outside of a region is reached, not even by overflow") {
  Table t;
  const auto key = t.region().key();
  struct Range {
    std::uint64_t address;
    std::uint64_t length;
  };
  const Range range =
      GENERATE(Range{kIova - 1, 1}, Range{kIova - 1, 2}, Range{kIova, kLength + 1},
               Range{kIova + kLength, 1}, Range{kIova + kLength - 1, 2}, Range{0, 1},
               Range{kIova + 1, ~std::uint64_t{0}}, Range{~std::uint64_t{0}, 1},
               Range{~std::uint64_t{0} - 7, 8}, Range{kIova, ~std::uint64_t{0} - kIova + 2});
  CHECK(fault_of(t.local(key, range.address, range.length)) == MemoryFault::out_of_bounds);
  CHECK(fault_of(t.remote(key, range.address, range.length)) == MemoryFault::out_of_bounds);
}

TEST_CASE("a region at the end of the address space ends there") {
  Table t;
  const std::uint64_t start = ~std::uint64_t{0} - 0xFFF;
  const auto region = t.keys.register_region(
      t.pd, {.start = start, .length = 0x1000, .iova = start, .access = kAll});
  REQUIRE(region);
  CHECK(t.local((*region)->key(), start + 0xFFF, 1) == ~std::uint64_t{0});
  CHECK(fault_of(t.local((*region)->key(), start + 0xFFF, 2)) == MemoryFault::out_of_bounds);
  CHECK_FALSE(t.keys.register_region(
      t.pd, {.start = start, .length = 0x1001, .iova = start, .access = kAll}));
}

TEST_CASE("permissions are those of the region") {
  Table t;
  const auto key = t.region(kLocalWrite | kRemoteRead).key();
  CHECK(t.local(key, kIova, 1, kLocalWrite));
  CHECK(t.remote(key, kIova, 1, kRemoteRead));
  CHECK(fault_of(t.remote(key, kIova, 1, kRemoteWrite)) == MemoryFault::no_permission);
  CHECK(fault_of(t.remote(key, kIova, 1, kRemoteAtomic)) == MemoryFault::no_permission);
  const auto read_only = t.region(Access{}).key();
  CHECK(t.local(read_only, kIova, 1));
  CHECK(fault_of(t.local(read_only, kIova, 1, kLocalWrite)) == MemoryFault::no_permission);
}

TEST_CASE("peers may write only where the program may") {
  Table t;
  for (const Access access : {kRemoteWrite, kRemoteAtomic, kRemoteWrite | kRemoteRead}) {
    const auto refused =
        t.keys.register_region(t.pd, {.start = kStart, .length = 1, .access = access});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().failure == Failure::invalid);
  }
}

TEST_CASE("keys of another protection domain do not open anything") {
  Table t;
  const auto key = t.region().key();
  CHECK(fault_of(t.keys.resolve_local(t.other_pd, key, kIova, 1, kLocalRead)) ==
        MemoryFault::other_domain);
  CHECK(fault_of(t.keys.resolve_remote(t.other_pd, kQpn, wire::RKey{key}, kIova, 1, kRemoteRead)) ==
        MemoryFault::other_domain);
}

TEST_CASE("an unknown key opens nothing") {
  Table t;
  const auto key = t.region().key();
  for (const std::uint32_t wrong : {0U, key ^ 1, key ^ 0x80, key + 0x100, 0xFFFFFFFFU}) {
    CHECK(fault_of(t.local(wrong, kIova, 1)) == MemoryFault::unknown_key);
    CHECK(fault_of(t.remote(wrong, kIova, 1)) == MemoryFault::unknown_key);
  }
}

TEST_CASE("the whole address space may be registered") {
  Table t;
  const auto region = t.keys.register_region(t.pd, {.access = kAll, .whole_address_space = true});
  REQUIRE(region);
  CHECK(t.remote((*region)->key(), 0x123456789A, 100) == 0x123456789A);
}

TEST_CASE("reregistering changes what is given and the key, and keeps the rest") {
  Table t;
  MemoryRegion& region = t.region();
  const auto old_key = region.key();
  REQUIRE(t.keys.reregister(region, nullptr, std::nullopt, kLocalWrite));
  CHECK(region.key() != old_key);
  CHECK(fault_of(t.local(old_key, kIova, 1)) == MemoryFault::unknown_key);
  CHECK(t.local(region.key(), kIova, 1) == kStart);
  CHECK(fault_of(t.remote(region.key(), kIova, 1)) == MemoryFault::no_permission);
  REQUIRE(t.keys.reregister(region, &t.other_pd, std::nullopt, std::nullopt));
  CHECK(fault_of(t.local(region.key(), kIova, 1)) == MemoryFault::other_domain);
  CHECK(t.other_pd.users() == 1);
  CHECK_FALSE(t.pd.in_use());
  REQUIRE_FALSE(t.keys.reregister(region, nullptr, std::nullopt, kRemoteWrite));
  CHECK(t.other_pd.users() == 1);
}

TEST_CASE("a deregistered key stays invalid while it rests") {
  Table t;
  std::set<std::uint32_t> stale;
  for (int i = 0; i < 2000; ++i) {
    MemoryRegion& region = t.region();
    const std::uint32_t key = region.key();
    // A byte of 256 values changes with each use of an index, and an index rests for 256 others.
    CHECK_FALSE(stale.contains(key));
    stale.insert(key);
    REQUIRE(t.keys.deregister(region));
    CHECK(fault_of(t.local(key, kIova, 1)) == MemoryFault::unknown_key);
  }
  CHECK(t.keys.regions() == 0);
}

TEST_CASE("the limits on regions and windows hold") {
  ProtectionDomain pd;
  KeyTable keys(2, 1, 0);
  const RegionSpec spec{.start = kStart, .length = 1};
  const auto first = keys.register_region(pd, spec);
  REQUIRE(first);
  REQUIRE(keys.register_region(pd, spec));
  const auto refused = keys.register_region(pd, spec);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().failure == Failure::no_memory);
  REQUIRE(keys.create_window(pd, WindowType::type1));
  CHECK_FALSE(keys.create_window(pd, WindowType::type1));
  REQUIRE(keys.deregister(**first));
  CHECK(keys.register_region(pd, spec));
}

// --- windows

TEST_CASE("a window opens its part of the region, by its own key") {
  Table t;
  MemoryRegion& region = t.region();
  MemoryWindow& window = t.window(WindowType::type2);
  const auto old_key = window.key();
  const WindowBind bind = t.bind_of(window, region);
  REQUIRE(t.keys.bind_window(t.pd, kQpn, bind));
  CHECK(window.key() == bind.new_key.value());
  CHECK(t.remote(window.key(), kIova + 0x100, 0x200) == kStart + 0x100);
  CHECK(fault_of(t.remote(window.key(), kIova + 0xFF, 1)) == MemoryFault::out_of_bounds);
  CHECK(fault_of(t.remote(window.key(), kIova + 0x100, 0x201)) == MemoryFault::out_of_bounds);
  CHECK(fault_of(t.remote(window.key(), kIova + 0x100, 8, kRemoteAtomic)) ==
        MemoryFault::no_permission);
  CHECK(fault_of(t.remote(old_key, kIova + 0x100, 1)) == MemoryFault::unknown_key);
  CHECK(fault_of(t.local(window.key(), kIova + 0x100, 1)) == MemoryFault::unknown_key);
}

TEST_CASE("a type 2 window opens memory through its queue pair only, a type 1 window through any") {
  Table t;
  MemoryRegion& region = t.region();
  const auto type = GENERATE(WindowType::type1, WindowType::type2);
  MemoryWindow& window = t.window(type);
  REQUIRE(t.keys.bind_window(t.pd, kQpn, t.bind_of(window, region)));
  const auto other = t.remote(window.key(), kIova + 0x100, 1, kRemoteRead, wire::Qpn{0x12});
  CHECK(other.has_value() == (type == WindowType::type1));
}

TEST_CASE("a zero-based window counts from its beginning") {
  Table t;
  MemoryRegion& region = t.region();
  MemoryWindow& window = t.window(WindowType::type2);
  WindowBind bind = t.bind_of(window, region);
  bind.access |= kZeroBased;
  REQUIRE(t.keys.bind_window(t.pd, kQpn, bind));
  CHECK(t.remote(window.key(), 0, 0x200) == kStart + 0x100);
  CHECK(fault_of(t.remote(window.key(), 1, 0x200)) == MemoryFault::out_of_bounds);
  CHECK(fault_of(t.remote(window.key(), kIova + 0x100, 1)) == MemoryFault::out_of_bounds);
}

TEST_CASE("binds that the rules forbid are refused and change nothing") {
  Table t;
  MemoryRegion& region = t.region();
  MemoryRegion& not_bindable = t.region(kLocalWrite | kRemoteRead);
  MemoryRegion& read_only = t.region(kWindowBind | kRemoteRead);
  MemoryWindow& window = t.window(WindowType::type2);
  const auto key = window.key();
  WindowBind bind = t.bind_of(window, region);
  SECTION("no such window") { bind.window = wire::RKey{key ^ 1}; }
  SECTION("no such region") { bind.region = wire::LKey{region.key() ^ 1}; }
  SECTION("a region that allows none") { bind.region = wire::LKey{not_bindable.key()}; }
  SECTION("a writable window on a read-only region") { bind.region = wire::LKey{read_only.key()}; }
  SECTION("outside of the region") { bind.address = kIova + kLength - 0x1FF; }
  SECTION("no length") { bind.length = 0; }
  SECTION("the same key again") { bind.new_key = wire::RKey{key}; }
  REQUIRE_FALSE(t.keys.bind_window(t.pd, kQpn, bind));
  CHECK(window.key() == key);
  CHECK_FALSE(window.binding());
  CHECK_FALSE(region.in_use());
}

TEST_CASE("a type 2 window is bound once, and again only after it was invalidated") {
  Table t;
  MemoryRegion& region = t.region();
  MemoryWindow& window = t.window(WindowType::type2);
  REQUIRE(t.keys.bind_window(t.pd, kQpn, t.bind_of(window, region)));
  CHECK_FALSE(t.keys.bind_window(t.pd, kQpn, t.bind_of(window, region)));
  CHECK_FALSE(t.keys.invalidate(t.pd, wire::Qpn{0x12}, wire::RKey{window.key()}));
  CHECK_FALSE(t.keys.invalidate(t.other_pd, kQpn, wire::RKey{window.key()}));
  REQUIRE(t.keys.invalidate(t.pd, kQpn, wire::RKey{window.key()}));
  CHECK(fault_of(t.remote(window.key(), kIova + 0x100, 1)) == MemoryFault::unknown_key);
  CHECK_FALSE(region.in_use());
  CHECK_FALSE(t.keys.invalidate(t.pd, kQpn, wire::RKey{window.key()}));
  CHECK(t.keys.bind_window(t.pd, kQpn, t.bind_of(window, region)));
}

TEST_CASE("a type 1 window is bound anew and unbound by a bind, never invalidated") {
  Table t;
  MemoryRegion& region = t.region();
  MemoryWindow& window = t.window(WindowType::type1);
  REQUIRE(t.keys.bind_window(t.pd, kQpn, t.bind_of(window, region)));
  REQUIRE(t.keys.bind_window(t.pd, kQpn, t.bind_of(window, region)));
  CHECK_FALSE(t.keys.invalidate(t.pd, kQpn, wire::RKey{window.key()}));
  WindowBind unbind = t.bind_of(window, region);
  unbind.length = 0;
  REQUIRE(t.keys.bind_window(t.pd, kQpn, unbind));
  CHECK_FALSE(region.in_use());
  WindowBind zero_based = t.bind_of(window, region);
  zero_based.access |= kZeroBased;
  CHECK_FALSE(t.keys.bind_window(t.pd, kQpn, zero_based));
}

TEST_CASE("a region with windows bound to it neither goes nor changes") {
  Table t;
  MemoryRegion& region = t.region();
  MemoryWindow& window = t.window(WindowType::type2);
  REQUIRE(t.keys.bind_window(t.pd, kQpn, t.bind_of(window, region)));
  CHECK(t.keys.deregister(region).error().failure == Failure::in_use);
  CHECK(t.keys.reregister(region, nullptr, std::nullopt, kAll).error().failure == Failure::in_use);
  t.keys.destroy_window(window);
  CHECK(t.keys.deregister(region));
  CHECK_FALSE(t.pd.in_use());
}

TEST_CASE("the last key of a window that is gone is not the next key of its index") {
  ProtectionDomain pd;
  KeyTable keys(1000, 1000, 0);
  MemoryRegion& region = **keys.register_region(
      pd, {.start = kStart, .length = kLength, .iova = kIova, .access = kAll});
  MemoryWindow& window = **keys.create_window(pd, WindowType::type2);
  const std::uint32_t index = window.key() >> 8;
  // The program chooses the byte that the table would have given out next.
  const wire::RKey chosen{(window.key() & ~0xFFU) | ((window.key() + 1) & 0xFF)};
  REQUIRE(keys.bind_window(pd, kQpn,
                           {.address = kIova,
                            .length = 1,
                            .region = wire::LKey{region.key()},
                            .window = wire::RKey{window.key()},
                            .new_key = chosen,
                            .access = kRemoteRead}));
  keys.destroy_window(window);
  for (int i = 0; i < 600; ++i) {
    MemoryRegion& next = **keys.register_region(pd, {.start = kStart, .length = 1});
    if (next.key() >> 8 == index) {
      CHECK(next.key() != chosen.value());
      return;
    }
    REQUIRE(keys.deregister(next));
  }
  FAIL("the index was never used again");
}

TEST_CASE("keys agree with a plain list, whatever is done to them") {
  std::mt19937 random(GENERATE(1, 2, 3));
  Table t;
  std::map<std::uint32_t, MemoryRegion*> model;
  for (int i = 0; i < 5000; ++i) {
    if (model.size() < 50 && random() % 2 == 0) {
      MemoryRegion& region = t.region();
      CHECK_FALSE(model.contains(region.key()));
      model[region.key()] = &region;
    } else if (!model.empty()) {
      const auto chosen = std::next(model.begin(), static_cast<long>(random() % model.size()));
      REQUIRE(t.keys.deregister(*chosen->second));
      model.erase(chosen);
    }
    CHECK(t.keys.regions() == model.size());
    CHECK(t.pd.users() == model.size());
    const auto any = static_cast<std::uint32_t>(random()) & 0xFFFF;
    CHECK(t.local(any, kIova, 1).has_value() == model.contains(any));
  }
}

}  // namespace
}  // namespace urxe::emulator
