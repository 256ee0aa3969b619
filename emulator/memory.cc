#include "emulator/memory.h"

#include <fmt/core.h>

#include "emulator/assert.h"

namespace urxe::emulator {
namespace {

constexpr std::uint32_t kIndexShift = 8;
constexpr std::uint32_t kKeyByteMask = 0xFF;
constexpr std::uint32_t kMaxIndex = (1U << 24) - 1;
// An index rests until this many others were freed after it, so that stale keys stay invalid.
constexpr std::size_t kRestingIndexes = 256;

constexpr Access kWritesOfPeers = kRemoteWrite | kRemoteAtomic;

// Whether [address, address + length) lies within [start, start + size), without overflow.
constexpr bool contains(std::uint64_t start, std::uint64_t size, std::uint64_t address,
                        std::uint64_t length) {
  return address >= start && length <= size && address - start <= size - length;
}

Result<void> check_spec(const RegionSpec& spec) {
  if (spec.access.has_any(kWritesOfPeers) && !spec.access.has(kLocalWrite)) {
    return fail(Failure::invalid,
                fmt::format("access flags {:#x}: REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE",
                            spec.access.bits()));
  }
  if (spec.length > 0 && spec.start + (spec.length - 1) < spec.start) {
    return fail(Failure::invalid, fmt::format("region {:#x} + {:#x} exceeds the address space",
                                              spec.start, spec.length));
  }
  return {};
}

}  // namespace

std::string_view to_string(MemoryFault fault) {
  switch (fault) {
    case MemoryFault::unknown_key:
      return "no memory region or window has this key";
    case MemoryFault::other_domain:
      return "the key belongs to another protection domain or queue pair";
    case MemoryFault::no_permission:
      return "its access flags do not allow this";
    case MemoryFault::out_of_bounds:
      return "the range exceeds it";
    case MemoryFault::gone:
      return "the program no longer has this memory mapped, or not with this permission";
  }
  return "";
}

// --- keys

// Windows first: they use regions.
KeyTable::~KeyTable() {
  for (Slot& slot : slots_) slot.window.reset();
}

std::optional<std::uint32_t> KeyTable::allocate_index() {
  if (free_.size() > kRestingIndexes || (slots_.size() > kMaxIndex && !free_.empty())) {
    const std::uint32_t index = free_.front();
    free_.pop_front();
    return index;
  }
  if (slots_.size() > kMaxIndex) return std::nullopt;
  slots_.emplace_back();
  slots_.back().next_key_byte =
      static_cast<std::uint8_t>((slots_.size() * 0x9E3779B1U ^ seed_) >> 11);
  return static_cast<std::uint32_t>(slots_.size() - 1);
}

void KeyTable::release_index(std::uint32_t key) { free_.push_back(key >> kIndexShift); }

std::uint32_t KeyTable::next_key(std::uint32_t index) {
  return index << kIndexShift | slots_[index].next_key_byte++;
}

const KeyTable::Slot* KeyTable::find(std::uint32_t key) const {
  const std::uint32_t index = key >> kIndexShift;
  return index < slots_.size() ? &slots_[index] : nullptr;
}

MemoryRegion* KeyTable::find_region(std::uint32_t key) const {
  const Slot* slot = find(key);
  const bool found = slot != nullptr && slot->region != nullptr && slot->region->key_ == key;
  return found ? slot->region.get() : nullptr;
}

MemoryWindow* KeyTable::find_window(std::uint32_t key) const {
  const Slot* slot = find(key);
  const bool found = slot != nullptr && slot->window != nullptr && slot->window->key_ == key;
  return found ? slot->window.get() : nullptr;
}

// --- regions

Result<MemoryRegion*> KeyTable::register_region(ProtectionDomain& pd, const RegionSpec& spec) {
  if (auto checked = check_spec(spec); !checked) return tl::unexpected(checked.error());
  if (region_count_ >= max_regions_) {
    return fail(Failure::no_memory, fmt::format("all {} memory regions are in use", max_regions_));
  }
  const auto index = allocate_index();
  if (!index) return fail(Failure::no_memory, "all memory keys are in use");
  auto region = std::make_unique<MemoryRegion>(pd, spec, next_key(*index));
  ++region_count_;
  return (slots_[*index].region = std::move(region)).get();
}

Result<void> KeyTable::reregister(MemoryRegion& region, ProtectionDomain* pd,
                                  const std::optional<RegionSpec>& where,
                                  std::optional<Access> access) {
  if (region.in_use()) {
    return fail(Failure::in_use, fmt::format("memory region {:#x} has {} windows bound to it",
                                             region.key_, region.users()));
  }
  RegionSpec spec = where.value_or(region.spec_);
  spec.access = access.value_or(region.spec_.access);
  if (auto checked = check_spec(spec); !checked) return checked;
  region.spec_ = spec;
  if (pd != nullptr) region.pd_ = Use<ProtectionDomain>(*pd);
  region.key_ = next_key(region.key_ >> kIndexShift);
  return {};
}

Result<void> KeyTable::deregister(MemoryRegion& region) {
  if (region.in_use()) {
    return fail(Failure::in_use, fmt::format("memory region {:#x} has {} windows bound to it",
                                             region.key_, region.users()));
  }
  const std::uint32_t key = region.key_;
  slots_[key >> kIndexShift].region.reset();
  release_index(key);
  --region_count_;
  return {};
}

// --- windows

Result<MemoryWindow*> KeyTable::create_window(ProtectionDomain& pd, WindowType type) {
  if (window_count_ >= max_windows_) {
    return fail(Failure::no_memory, fmt::format("all {} memory windows are in use", max_windows_));
  }
  const auto index = allocate_index();
  if (!index) return fail(Failure::no_memory, "all memory keys are in use");
  auto window = std::make_unique<MemoryWindow>(pd, type, next_key(*index));
  ++window_count_;
  return (slots_[*index].window = std::move(window)).get();
}

void KeyTable::destroy_window(MemoryWindow& window) {
  const std::uint32_t key = window.key_;
  Slot& slot = slots_[key >> kIndexShift];
  slot.window.reset();
  // The program chose the last key's byte: the next one differs from it.
  slot.next_key_byte = static_cast<std::uint8_t>(key + 1);
  release_index(key);
  --window_count_;
}

namespace {

Result<void> check_window_state(const MemoryWindow& window, const ProtectionDomain& pd,
                                const WindowBind& bind) {
  if (window.type() == WindowType::type1) {
    if (bind.access.has(kZeroBased)) {  // IBA o10-36.2.2
      return fail(Failure::invalid, "a type 1 memory window cannot be zero-based");
    }
    return {};
  }
  if (window.binding()) {  // IBA o10-37.2.30
    return fail(Failure::invalid,
                fmt::format("type 2 memory window {:#x} is bound: invalidate first", window.key()));
  }
  if (&window.pd() != &pd) {  // IBA C10-72
    return fail(Failure::invalid, "memory window and queue pair have different protection domains");
  }
  if (bind.length == 0) {  // IBA o10-37.2.40
    return fail(Failure::invalid, "a type 2 memory window cannot be bound to nothing");
  }
  if (((bind.new_key.value() ^ window.key()) & kKeyByteMask) == 0) {
    return fail(Failure::invalid, "the new key of a memory window equals the old one");
  }
  return {};
}

Result<void> check_bound_region(const MemoryRegion& region, const WindowBind& bind) {
  const RegionSpec& spec = region.spec();
  if (spec.access.has(kZeroBased)) {
    return fail(Failure::invalid, "a memory window cannot be bound to a zero-based region");
  }
  if (!spec.access.has(kWindowBind)) {  // IBA C10-73
    return fail(Failure::invalid,
                fmt::format("memory region {:#x} was registered without MW_BIND", region.key()));
  }
  if (bind.access.has_any(kWritesOfPeers) && !spec.access.has(kLocalWrite)) {  // IBA C10-74
    return fail(Failure::invalid, "a writable memory window needs a region with LOCAL_WRITE");
  }
  if (!contains(spec.iova, spec.length, bind.address, bind.length)) {  // IBA C10-75
    return fail(Failure::invalid,
                fmt::format("window {:#x} + {:#x} exceeds its region {:#x} + {:#x}", bind.address,
                            bind.length, spec.iova, spec.length));
  }
  return {};
}

}  // namespace

Result<void> KeyTable::bind_window(const ProtectionDomain& pd, wire::Qpn qpn,
                                   const WindowBind& bind) {
  MemoryWindow* window = find_window(bind.window.value());
  if (window == nullptr) {
    return fail(Failure::invalid,
                fmt::format("no memory window has key {:#x}", bind.window.value()));
  }
  if (auto checked = check_window_state(*window, pd, bind); !checked) return checked;
  std::optional<WindowBinding> binding;
  if (bind.length != 0) {
    MemoryRegion* region = find_region(bind.region.value());
    if (region == nullptr || &region->pd() != &window->pd()) {
      return fail(Failure::invalid,
                  fmt::format("no memory region of the window's protection domain "
                              "has key {:#x}",
                              bind.region.value()));
    }
    if (auto checked = check_bound_region(*region, bind); !checked) return checked;
    binding.emplace(WindowBinding{.region = Use<MemoryRegion>(*region),
                                  .address = bind.address,
                                  .length = bind.length,
                                  .access = bind.access,
                                  .qpn = qpn});
  }
  window->binding_ = std::move(binding);
  window->key_ = (window->key_ & ~kKeyByteMask) | (bind.new_key.value() & kKeyByteMask);
  return {};
}

Result<void> KeyTable::invalidate(const ProtectionDomain& pd, wire::Qpn qpn, wire::RKey key) {
  MemoryWindow* window = find_window(key.value());
  if (window == nullptr) {
    return fail(Failure::invalid,
                fmt::format("no memory window has key {:#x}, and memory regions of "
                            "programs cannot be invalidated",
                            key.value()));
  }
  if (window->type() == WindowType::type1) {  // IBA o10-37.2.26
    return fail(Failure::invalid, "a type 1 memory window cannot be invalidated");
  }
  if (!window->binding() || window->binding()->qpn != qpn || &window->pd() != &pd) {
    return fail(Failure::invalid, fmt::format("memory window {:#x} is not bound through queue pair "
                                              "{:#x}",
                                              key.value(), qpn.value()));
  }
  window->binding_.reset();
  return {};
}

// --- access

tl::expected<std::uint64_t, MemoryFault> KeyTable::resolve_local(const ProtectionDomain& pd,
                                                                 std::uint32_t lkey,
                                                                 std::uint64_t address,
                                                                 std::uint64_t length,
                                                                 Access needs) const {
  const MemoryRegion* region = find_region(lkey);
  if (region == nullptr) return tl::unexpected(MemoryFault::unknown_key);
  if (&region->pd() != &pd) return tl::unexpected(MemoryFault::other_domain);
  const RegionSpec& spec = region->spec();
  if (!spec.access.has(needs)) return tl::unexpected(MemoryFault::no_permission);
  if (spec.whole_address_space) return address;
  if (!contains(spec.iova, spec.length, address, length)) {
    return tl::unexpected(MemoryFault::out_of_bounds);
  }
  return spec.start + (address - spec.iova);
}

tl::expected<std::uint64_t, MemoryFault> KeyTable::resolve_window(
    const MemoryWindow& window, const ProtectionDomain& pd, wire::Qpn qpn, std::uint64_t address,
    std::uint64_t length, Access needs) const {
  if (!window.binding()) return tl::unexpected(MemoryFault::unknown_key);
  const WindowBinding& binding = *window.binding();
  const bool others = window.type() == WindowType::type2 && binding.qpn != qpn;
  if (others || &window.pd() != &pd) return tl::unexpected(MemoryFault::other_domain);
  if (!binding.access.has(needs)) return tl::unexpected(MemoryFault::no_permission);
  const std::uint64_t base = binding.access.has(kZeroBased) ? 0 : binding.address;
  if (!contains(base, binding.length, address, length)) {
    return tl::unexpected(MemoryFault::out_of_bounds);
  }
  const RegionSpec& spec = binding.region->spec();
  return spec.start + (binding.address - spec.iova) + (address - base);
}

tl::expected<std::uint64_t, MemoryFault> KeyTable::resolve_remote(const ProtectionDomain& pd,
                                                                  wire::Qpn qpn, wire::RKey rkey,
                                                                  std::uint64_t address,
                                                                  std::uint64_t length,
                                                                  Access needs) const {
  if (const MemoryWindow* window = find_window(rkey.value()); window != nullptr) {
    return resolve_window(*window, pd, qpn, address, length, needs);
  }
  return resolve_local(pd, rkey.value(), address, length, needs);
}

tl::expected<std::uint64_t, MemoryFault> KeyTable::resolve_whole(const ProtectionDomain& pd,
                                                                 wire::Qpn qpn, wire::RKey rkey,
                                                                 Access needs) const {
  const MemoryWindow* window = find_window(rkey.value());
  if (window == nullptr || !window->binding()) {
    const MemoryRegion* region = find_region(rkey.value());
    const std::uint64_t start = region == nullptr ? 0 : region->spec().iova;
    return resolve_local(pd, rkey.value(), start, 0, needs);
  }
  const WindowBinding& binding = *window->binding();
  const std::uint64_t start = binding.access.has(kZeroBased) ? 0 : binding.address;
  return resolve_window(*window, pd, qpn, start, 0, needs);
}

}  // namespace urxe::emulator
