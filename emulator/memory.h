// Protection domains, memory regions, memory windows, and the table of their keys (IBTA 10.6).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "emulator/error.h"
#include "emulator/types.h"
#include "emulator/use_count.h"
#include "emulator/work.h"
#include "net/wire/numbers.h"

namespace urxe::emulator {

class ProtectionDomain : public Shared {};

// What a program registers: `length` bytes of its memory at `start`, which peers and work requests
// call `iova`.
struct RegionSpec {
  std::uint64_t start = 0;
  std::uint64_t length = 0;
  std::uint64_t iova = 0;
  Access access;
  bool whole_address_space = false;  // implicit on-demand paging
};

class MemoryRegion : public Shared {
 public:
  MemoryRegion(ProtectionDomain& pd, const RegionSpec& spec, std::uint32_t key)
      : pd_(pd), spec_(spec), key_(key) {}

  [[nodiscard]] ProtectionDomain& pd() const { return *pd_; }
  [[nodiscard]] const RegionSpec& spec() const { return spec_; }
  // One key for both uses, as in rxe.
  [[nodiscard]] std::uint32_t key() const { return key_; }

 private:
  friend class KeyTable;
  Use<ProtectionDomain> pd_;
  RegionSpec spec_;
  std::uint32_t key_;
};

enum class WindowType : std::uint8_t { type1 = 1, type2 = 2 };  // ib_mw_type; type 2 means 2B

// A window is bound to a part of a region, and a type 2 window also to the queue pair that bound
// it.
struct WindowBinding {
  Use<MemoryRegion> region;
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  Access access;
  wire::Qpn qpn;  // type 2
};

class MemoryWindow {
 public:
  MemoryWindow(ProtectionDomain& pd, WindowType type, std::uint32_t key)
      : pd_(pd), type_(type), key_(key) {}

  [[nodiscard]] ProtectionDomain& pd() const { return *pd_; }
  [[nodiscard]] WindowType type() const { return type_; }
  [[nodiscard]] std::uint32_t key() const { return key_; }
  [[nodiscard]] const std::optional<WindowBinding>& binding() const { return binding_; }

 private:
  friend class KeyTable;
  Use<ProtectionDomain> pd_;
  WindowType type_;
  std::uint32_t key_;
  std::optional<WindowBinding> binding_;
};

// Why memory may not be used.
enum class MemoryFault : std::uint8_t {
  unknown_key,    // no region or window has this key (now)
  other_domain,   // it belongs to another protection domain, or to another queue pair
  no_permission,  // its access flags do not allow this
  out_of_bounds,
  gone,  // the program unmapped it
};
[[nodiscard]] std::string_view to_string(MemoryFault fault);

// From keys to memory. A key is an index (24 bits, 0 never used) and a byte that changes each time
// an index is used again, so that a stale key does not open somebody else's memory.
//
// Owner: the device. Not thread-safe.
class KeyTable {
 public:
  // Limits on the number of objects. `seed` varies the keys from run to run.
  KeyTable(std::uint32_t max_regions, std::uint32_t max_windows, std::uint32_t seed)
      : max_regions_(max_regions), max_windows_(max_windows), seed_(seed) {}
  ~KeyTable();
  KeyTable(const KeyTable&) = delete;
  KeyTable& operator=(const KeyTable&) = delete;

  Result<MemoryRegion*> register_region(ProtectionDomain& pd, const RegionSpec& spec);
  // Changes a region in place; it gets a new key. What is not given stays.
  Result<void> reregister(MemoryRegion& region, ProtectionDomain* pd,
                          const std::optional<RegionSpec>& where, std::optional<Access> access);
  Result<void> deregister(MemoryRegion& region);

  Result<MemoryWindow*> create_window(ProtectionDomain& pd, WindowType type);
  void destroy_window(MemoryWindow& window);

  // The region that has this key; nullptr if there is none.
  [[nodiscard]] MemoryRegion* find_region(std::uint32_t key) const;

  // The program address of [address, address + length) for a local access: SGEs of a queue pair in
  // `pd`. `needs` is kLocalRead (nothing) or kLocalWrite.
  [[nodiscard]] tl::expected<std::uint64_t, MemoryFault> resolve_local(const ProtectionDomain& pd,
                                                                       std::uint32_t lkey,
                                                                       std::uint64_t address,
                                                                       std::uint64_t length,
                                                                       Access needs) const;
  // The same for a peer's access through queue pair `qpn`; windows count too.
  [[nodiscard]] tl::expected<std::uint64_t, MemoryFault> resolve_remote(
      const ProtectionDomain& pd, wire::Qpn qpn, wire::RKey rkey, std::uint64_t address,
      std::uint64_t length, Access needs) const;

  // The same for all that a key names, whatever its bounds.
  [[nodiscard]] tl::expected<std::uint64_t, MemoryFault> resolve_whole(const ProtectionDomain& pd,
                                                                       wire::Qpn qpn,
                                                                       wire::RKey rkey,
                                                                       Access needs) const;

  // Binds a window as a work request of queue pair `qpn` asks; length 0 unbinds a type 1 window.
  Result<void> bind_window(const ProtectionDomain& pd, wire::Qpn qpn, const WindowBind& bind);
  // Unbinds a type 2 window on a local request or a peer's. Regions that a program registered
  // cannot be invalidated (only a kernel's fast registration could).
  Result<void> invalidate(const ProtectionDomain& pd, wire::Qpn qpn, wire::RKey key);

  [[nodiscard]] std::size_t regions() const { return region_count_; }
  [[nodiscard]] std::size_t windows() const { return window_count_; }

 private:
  // One index of the key space: empty, a region or a window.
  struct Slot {
    std::unique_ptr<MemoryRegion> region;
    std::unique_ptr<MemoryWindow> window;
    std::uint8_t next_key_byte = 0;
  };

  [[nodiscard]] std::optional<std::uint32_t> allocate_index();
  void release_index(std::uint32_t key);
  std::uint32_t next_key(std::uint32_t index);
  [[nodiscard]] const Slot* find(std::uint32_t key) const;
  [[nodiscard]] MemoryWindow* find_window(std::uint32_t key) const;
  [[nodiscard]] tl::expected<std::uint64_t, MemoryFault> resolve_window(
      const MemoryWindow& window, const ProtectionDomain& pd, wire::Qpn qpn, std::uint64_t address,
      std::uint64_t length, Access needs) const;

  std::vector<Slot> slots_{1};      // index 0 is never given out
  std::deque<std::uint32_t> free_;  // oldest first: an index rests as long as possible
  std::uint32_t max_regions_;
  std::uint32_t max_windows_;
  std::uint32_t seed_;
  std::size_t region_count_ = 0;
  std::size_t window_count_ = 0;
};

}  // namespace urxe::emulator
